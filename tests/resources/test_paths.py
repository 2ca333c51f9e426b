"""Tiller's own folders are where the platform or the user wants them."""

import sys
from pathlib import Path

import pytest

from agent_core.kernel.errors import UsageError
from agent_core.resources.paths import app_paths, project_folder


def test_overrides_win() -> None:
    paths = app_paths(
        {
            "HOME": "/home/ada",
            "TILLER_CONFIG_DIR": "~/c",
            "TILLER_DATA_DIR": "/d",
            "TILLER_RUNTIME_DIR": "/r",
            "XDG_CONFIG_HOME": "/xdg",
        }
    )
    assert (paths.config, paths.data, paths.runtime) == (
        Path("/home/ada/c"),
        Path("/d"),
        Path("/r"),
    )
    assert paths.settings == Path("/home/ada/c/settings.json")
    assert paths.models == Path("/home/ada/c/models.json")
    assert paths.auth == Path("/home/ada/c/auth.json")
    assert paths.sessions == Path("/d/sessions")
    assert paths.logs == Path("/d/logs")


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="XDG is of other systems")
def test_xdg_variables_count_when_they_are_absolute() -> None:
    paths = app_paths(
        {"XDG_CONFIG_HOME": "/x/c", "XDG_DATA_HOME": "/x/d", "XDG_RUNTIME_DIR": "/x/r"}
    )
    assert (paths.config, paths.data, paths.runtime) == (
        Path("/x/c/tiller"),
        Path("/x/d/tiller"),
        Path("/x/r/tiller"),
    )
    assert app_paths({"XDG_CONFIG_HOME": "x"}).config.is_absolute()


@pytest.mark.parametrize("name", ["TILLER_CONFIG_DIR", "TILLER_DATA_DIR", "TILLER_RUNTIME_DIR"])
def test_a_relative_override_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is 'here', a relative path"):
        app_paths({name: "here"})


def test_without_any_variable_there_are_still_folders() -> None:
    paths = app_paths({})
    assert [path.is_absolute() for path in (paths.config, paths.data, paths.runtime)] == [True] * 3
    assert paths.config.name == "tiller"


def test_a_projects_own_folder_is_below_its_root() -> None:
    assert project_folder(Path("/w")) == Path("/w/.tiller")
