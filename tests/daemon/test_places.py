"""Editors find the daemon where the rest of Tiller says it is, in a place that a socket can have."""

import os
from pathlib import Path

import pytest

from agent_core.resources.paths import app_paths
from tiller_server.daemon import paths

DEEP = "/very" + "/deep" * 30


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"TILLER_RUNTIME_DIR": "/r"}, "/r"),
        ({"TILLER_RUNTIME_DIR": "/r/"}, "/r"),
        ({"TILLER_RUNTIME_DIR": "~/r", "HOME": "/home/ada"}, "/home/ada/r"),
        ({"XDG_RUNTIME_DIR": "/run/user/7"}, "/run/user/7/tiller"),
        ({"XDG_RUNTIME_DIR": "here", "TILLER_DATA_DIR": "/d"}, "/d/runtime"),
        ({"XDG_DATA_HOME": "/x/d"}, "/x/d/tiller/runtime"),
        ({"TILLER_DATA_DIR": "~/d", "HOME": "/home/ada"}, "/home/ada/d/runtime"),
        ({}, None),
    ],
    ids=["override", "slash", "home", "xdg", "relative xdg", "xdg data", "data", "nothing"],
)
@pytest.mark.skipif(os.name == "nt", reason="folders of other systems")
def test_both_sides_name_the_same_folder(env: dict[str, str], folder: str | None) -> None:
    assert paths.runtime_folder(env) == str(app_paths(env).runtime)
    if folder is not None:
        assert paths.runtime_folder(env) == folder


def test_a_path_too_long_for_a_socket_gets_a_short_stand_in() -> None:
    env = {"TILLER_RUNTIME_DIR": DEEP}
    folder = paths.runtime_folder(env)
    assert folder.startswith(f"/tmp/tiller-{os.getuid()}-")  # noqa: S108 - a name, not used here
    assert len(paths.socket_path(env)) < paths.MAX_SOCKET_PATH_BYTES
    assert folder == str(app_paths(env).runtime)
    assert folder != paths.runtime_folder({"TILLER_RUNTIME_DIR": DEEP + "er"})


def test_everything_lies_in_one_folder() -> None:
    env = {"TILLER_RUNTIME_DIR": "/r"}
    found = [
        paths.socket_path(env),
        paths.token_path(env),
        paths.lock_path(env),
        paths.log_path(env),
    ]
    assert found == ["/r/daemon.sock", "/r/daemon.token", "/r/daemon.lock", "/r/daemon.log"]
    assert {Path(one).parent for one in found} == {Path("/r")}


@pytest.mark.parametrize("name", ["TILLER_RUNTIME_DIR", "TILLER_DATA_DIR"])
def test_a_relative_folder_is_refused_in_words(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 'here', a relative path"):
        paths.runtime_folder({name: "here"})
