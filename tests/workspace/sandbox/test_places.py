"""Where keys are found, and which protected names are new."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from agent_core.workspace.sandbox import secret_places as module
from agent_core.workspace.sandbox.git_folders import GitFolder
from agent_core.workspace.sandbox.guarded_names import (
    MOST_ENTRIES,
    MOST_FOLDERS,
    PASSED_BY,
    look,
    new_since,
    quarantine,
)
from agent_core.workspace.sandbox.secret_places import (
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


# Protected names


def names(*roots: Path, git: tuple[GitFolder, ...] = ()) -> set[Path]:
    return set(look(roots, git).names)


def test_names_are_found_in_the_root_and_in_folders_of_it(tmp_path: Path) -> None:
    wanted = {
        put(tmp_path / "AGENTS.md"), put(tmp_path / "sub/claude.MD"), put(tmp_path / "x.code-workspace"),
        put(tmp_path / ".github/workflows/ci.yml").parent, put(tmp_path / "sub/.vscode/x").parent,
    }  # fmt: skip
    put(tmp_path / "sub/deeper/AGENTS.md")
    put(tmp_path / "code.py")
    for folder in PASSED_BY - {".git"}:
        put(tmp_path / folder / "AGENTS.md")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    assert names(tmp_path) == wanted
    assert names(tmp_path / "none") == set()


def test_names_in_a_git_folder_are_those_that_run_programs(tmp_path: Path) -> None:
    wanted = {put(tmp_path / "g/config"), put(tmp_path / "g/hooks/x").parent}
    put(tmp_path / "g/HEAD")
    assert names(git=(GitFolder(path=tmp_path / "g", guarded=()),)) == wanted


def test_as_much_is_looked_at_as_is_said(tmp_path: Path) -> None:
    for number in range(MOST_FOLDERS + 20):
        put(tmp_path / f"d{number}/AGENTS.md")
    assert len(names(tmp_path)) == MOST_FOLDERS
    many = tmp_path / "d0"
    for number in range(MOST_ENTRIES + 20):
        (many / f"{number}.code-workspace").touch()
    assert len(names(many)) == MOST_ENTRIES


def test_new_is_what_was_not_there_or_was_something_else(tmp_path: Path) -> None:
    stays, goes = put(tmp_path / "AGENTS.md"), put(tmp_path / "sub/CLAUDE.md")
    before = look([tmp_path], ())
    stays.write_text("changed in place")
    goes.rename(tmp_path / "kept")
    put(goes)
    put(tmp_path / ".vscode/tasks.json")
    after = look([tmp_path], ())
    assert new_since(before, after) == (tmp_path / ".vscode", goes)
    assert new_since(after, after) == ()
    put(tmp_path / ".github/workflows/AGENTS.md")
    outer = look([tmp_path], (GitFolder(path=tmp_path / ".github/workflows", guarded=()),))
    assert tmp_path / ".github/workflows" in new_since(after, outer)


def test_what_is_new_is_moved_away_under_a_free_name(tmp_path: Path) -> None:
    into = tmp_path / "in/quarantine"
    first, second = put(tmp_path / "a/AGENTS.md", "1"), put(tmp_path / "b/AGENTS.md", "2")
    third = tmp_path / "c/AGENTS.md"
    third.parent.mkdir()
    third.symlink_to("gone")
    fourth = put(tmp_path / "d/AGENTS.md", "4")
    assert quarantine([first, second, third, tmp_path / "none", fourth], into=into) == (
        first, second, third, fourth,
    )  # fmt: skip
    assert sorted(one.name for one in into.iterdir()) == [
        "AGENTS.md", "AGENTS.md.1", "AGENTS.md.2", "AGENTS.md.3",
    ]  # fmt: skip
    assert into.stat().st_mode & 0o777 == 0o700
    assert (into / "AGENTS.md.3").read_text() == "4"


def test_a_new_repository_that_is_tame_stays(tmp_path: Path) -> None:
    tame, wild = tmp_path / "a/.git", tmp_path / "b/.git"
    put(tame / "config", "[core]\n\tbare = false\n")
    put(wild / "config", "[core]\n\tpager = x\n")
    assert quarantine([tame, wild], into=tmp_path / "q") == (wild,)
    assert tame.exists()
