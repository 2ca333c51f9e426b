"""Where keys are found."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from agent_core.workspace.sandbox.guards import secret_places as module
from agent_core.workspace.sandbox.guards.secret_places import (
    NAMED_BY,
    SECRET_FILES,
    SECRET_FOLDERS,
    secret_places,
)


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "SYSTEM_FILES", ())
    monkeypatch.setattr(module, "SYSTEM_FOLDERS", ())
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("name", SECRET_FOLDERS)
def test_every_folder_of_keys_is_found(home: Path, name: str) -> None:
    put(home / name / "key")
    put(home / "code.py")
    found = secret_places(homes=[home], env={}, own=[])
    assert (found.folders, found.files) == ((home / name,), ())


@pytest.mark.parametrize("name", SECRET_FILES)
def test_every_file_of_keys_is_found(home: Path, name: str) -> None:
    put(home / name)
    found = secret_places(homes=[home.parent / "none", home], env={}, own=[])
    assert (found.folders, found.files) == ((), (home / name,))


@pytest.mark.parametrize("variable", NAMED_BY)
def test_what_a_variable_names_is_found(home: Path, variable: str) -> None:
    first, second = put(home / "a/first"), put(home / "b/second").parent
    value = os.pathsep.join([str(first), "relative", "/", "", str(second), str(home / "gone")])
    found = secret_places(homes=[], env={variable: value}, own=[])
    assert (found.folders, found.files) == ((second,), (first,))


def test_places_are_real_and_the_outermost(home: Path) -> None:
    put(home / "real/.ssh/id")
    put(home / "real/.ssh/inner/id")
    (home / ".ssh").symlink_to("real/.ssh")
    (home / ".aws").symlink_to("gone")
    os.mkfifo(home / ".netrc")
    own = [home / "real/.ssh/inner", put(home / "own/x").parent, home / "real/.ssh/id"]
    found = secret_places(homes=[home], env={}, own=own)
    assert (found.folders, found.files) == ((home / "own", home / "real/.ssh"), ())


def test_the_systems_own_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, folder = put(tmp_path / "shadow"), put(tmp_path / "keys/x").parent
    monkeypatch.setattr(module, "SYSTEM_FILES", (str(file),))
    monkeypatch.setattr(module, "SYSTEM_FOLDERS", (str(folder),))
    found = secret_places(homes=[], env={}, own=[])
    assert (found.folders, found.files) == ((folder,), (file,))


@pytest.mark.parametrize("place", ["shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "ssh"])
def test_what_this_machine_keeps_of_passwords_and_rights_is_found(place: str) -> None:
    whole = Path("/etc", place)
    if not whole.exists():
        pytest.skip(f"there is no {whole} here")
    found = secret_places(homes=[], env={}, own=[])
    assert whole.resolve() in (*found.folders, *found.files)


def test_a_home_that_nobody_may_list_is_looked_through_name_by_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / ".ssh/id")

    def refuse(folder: object) -> NoReturn:
        raise PermissionError(f"no list of {folder}")

    monkeypatch.setattr(os, "listdir", refuse)
    assert secret_places(homes=[home], env={}, own=[]).folders == (home / ".ssh",)


def test_names_of_homes_are_known_in_any_letter_case(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that does not tell them apart `.SSH` is what ssh reads."""
    put(home / ".ssh/id")
    monkeypatch.setattr(os, "listdir", lambda _folder: [".SSH"])
    assert secret_places(homes=[home], env={}, own=[]).folders == (home / ".ssh",)
