"""A change of single settings leaves everything else in the file as it was, whoever else writes at the same time."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_core.kernel.errors import ConfigError
from agent_core.resources.settings.file import change_settings_now


def test_what_is_not_named_stays_also_within_objects_and_what_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark", "retry": {"jitter": 1, "maxRetries": 2}, "sandbox": "off"}')
    change_settings_now(path, {"retry": {"maxRetries": 5}, "sandbox": "auto", "new": [1]})
    assert json.loads(path.read_text()) == {
        "theme": "dark",
        "retry": {"jitter": 1, "maxRetries": 5},
        "sandbox": "auto",
        "new": [1],
    }


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.json"

    def write(number: int) -> None:
        change_settings_now(path, {"group": {f"key{number}": number}})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert json.loads(path.read_text()) == {"group": {f"key{one}": one for one in range(40)}}


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    path = tmp_path / "settings.json"
    path.symlink_to(real)
    change_settings_now(path, {"sandbox": "off"})
    assert path.is_symlink()
    assert (json.loads(real.read_text()), real.stat().st_mode & 0o777) == (
        {"sandbox": "off"},
        0o640,
    )


@pytest.mark.parametrize("text", ['{"a": ', "[]", '{"a": 1} x'])
def test_a_broken_file_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="nothing was changed"):
        change_settings_now(path, {"sandbox": "off"})
    assert path.read_text() == text
