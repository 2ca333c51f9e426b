"""Commands can read the environment that Tiller runs in, also below a home that is hidden from them."""

from pathlib import Path

import pytest

from agent_core.assembly.workspace import STANDALONE, own_environment


@pytest.mark.parametrize(
    ("place", "base", "has_marker", "is_readable"),
    [
        pytest.param("home/venv", "python", False, True, id="virtual environment"),
        pytest.param("home/tiller/python", "home/tiller/python", True, True, id="standalone"),
        pytest.param("home/.local", "home/.local", False, False, id="somebody's Python"),
        pytest.param("opt/tiller/python", "opt/tiller/python", True, False, id="nothing hides it"),
    ],
)
def test_only_an_environment_of_tiller_is_readable(
    tmp_path: Path, place: str, base: str, *, has_marker: bool, is_readable: bool
) -> None:
    prefix = tmp_path / place
    prefix.mkdir(parents=True)
    if has_marker:
        (prefix / STANDALONE).touch()
    env = {"HOME": str(tmp_path / "home")}
    readable = own_environment(env, prefix=prefix, base_prefix=tmp_path / base)
    assert readable == ((prefix,) if is_readable else ())
