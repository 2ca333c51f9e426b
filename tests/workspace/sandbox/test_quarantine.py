"""What a command made is moved away by descriptors, and nothing else is."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.git import is_tame
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry
from agent_core.workspace.sandbox.quarantine import ROOT_QUARANTINE, Quarantine

OTHER_DISK = Path("/dev/shm")  # noqa: S108 - another file system, on most machines


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    root.mkdir()
    return root


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def seen(path: Path) -> GuardedEntry:
    found = path.lstat()
    return GuardedEntry("protected", found.st_dev, found.st_ino, found.st_mode)


def away(root: Path) -> list[str]:
    folder = root.parent / "away"
    return sorted(one.name.rpartition(".")[0] for one in folder.iterdir()) if folder.exists() else []  # fmt: skip


@pytest.fixture
def quarantine(root: Path) -> Quarantine:
    return Quarantine(root.parent / "away", (root,))


def test_what_was_seen_is_moved_under_a_name_that_means_nothing(
    root: Path, quarantine: Quarantine
) -> None:
    first, second = put(root / "a/b/AGENTS.md", "1"), put(root / "AGENTS.md", "2")
    link, folder = root / "CLAUDE.md", put(root / ".vscode/tasks.json").parent
    link.symlink_to("a")
    for path in (first, second, link, folder):
        assert quarantine.take(path, seen(path))
        assert not os.path.lexists(path)
    assert away(root) == [".vscode", "AGENTS.md", "AGENTS.md", "CLAUDE.md"]
    assert (root.parent / "away").stat().st_mode & 0o777 == 0o700
    assert (root / "a/b").is_dir()


def test_the_longest_name_is_moved_too(root: Path, quarantine: Quarantine) -> None:
    made = put(root / f"{'x' * 240}.code-workspace")
    assert quarantine.take(made, seen(made))
    assert away(root) == ["x" * 240]


def test_another_of_the_same_name_is_left_alone(root: Path, quarantine: Quarantine) -> None:
    made = put(root / "AGENTS.md", "evil")
    entry = seen(made)
    put(root / "new", "mine").rename(made)
    assert not quarantine.take(made, entry)
    made.unlink()
    assert not quarantine.take(made, entry)
    assert away(root) == []


def test_links_on_the_way_are_not_followed(root: Path, quarantine: Quarantine) -> None:
    mine = put(root.parent / "mine/sub/AGENTS.md", "mine")
    (root / "a").symlink_to("../mine")
    (root / "b").mkdir()
    (root / "b/sub").symlink_to("../../mine/sub")
    for path in (root / "a/sub/AGENTS.md", root / "b/sub/AGENTS.md"):
        assert not quarantine.take(path, seen(path))
        assert not quarantine.restore_link(path.with_name("x"), "evil", None)
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            quarantine.neutralize(path.with_name(".git"), seen(mine))
    assert not quarantine.make_readable(root / "a/sub", seen(mine.parent))
    assert os.listdir(mine.parent) == ["AGENTS.md"]  # noqa: PTH208 - names are enough


@pytest.mark.parametrize("place", ["../mine", "/etc/passwd", "."])
def test_nothing_outside_of_the_roots_is_touched(
    root: Path, quarantine: Quarantine, place: str
) -> None:
    put(root.parent / "mine")
    path = Path(os.path.normpath(root / place))
    assert not quarantine.take(path, seen(path))
    assert path.exists()


def test_a_folder_that_was_closed_for_writing_is_closed_again(
    root: Path, quarantine: Quarantine
) -> None:
    made = put(root / "a/AGENTS.md")
    entry = seen(made)
    made.parent.chmod(0o555)
    assert quarantine.take(made, entry)
    assert made.parent.stat().st_mode & 0o777 == 0o555


def test_where_the_quarantine_is_on_another_disk_it_stays_aside(root: Path) -> None:
    if not OTHER_DISK.is_dir() or OTHER_DISK.stat().st_dev == root.stat().st_dev:
        pytest.skip(f"{OTHER_DISK} is no other file system here")
    into = OTHER_DISK / f"tiller-test-{os.getpid()}"
    quarantine = Quarantine(into, (root,))
    paths = put(root / "a/.vscode/tasks.json").parent, put(root / "AGENTS.md")
    try:
        for path in paths:
            assert quarantine.take(path, seen(path))
            assert not path.exists()
    finally:
        into.rmdir()
    (aside,) = root.glob(f"{ROOT_QUARANTINE}-*")
    assert aside.stat().st_mode & 0o777 == 0o700
    assert sorted(one.name.rpartition(".")[0] for one in aside.iterdir()) == [".vscode", "AGENTS.md"]  # fmt: skip


def test_a_link_is_put_back_and_what_stands_there_moved_away(
    root: Path, quarantine: Quarantine
) -> None:
    link = root / "CLAUDE.md"
    assert quarantine.restore_link(link, "AGENTS.md", None)
    assert os.readlink(link) == "AGENTS.md"  # noqa: PTH115 - text
    link.unlink()
    new = seen(put(link, "evil"))
    assert quarantine.restore_link(link, "AGENTS.md", new)
    assert os.readlink(link) == "AGENTS.md"  # noqa: PTH115 - text
    assert away(root) == ["CLAUDE.md"]
    assert not quarantine.restore_link(link, "AGENTS.md", new)
    assert not quarantine.restore_link(link, "AGENTS.md", None)


# New repositories


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    for words in (["init", "-q"], ["commit", "-qm", "x", "--allow-empty"]):
        subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True)
    return folder / ".git"


def test_a_new_repository_keeps_its_objects_and_tame_settings(
    root: Path, quarantine: Quarantine
) -> None:
    git = repository(root / "a/b")
    with (git / "config").open("a") as config:
        config.write("\tfsmonitor = ./evil\n\tautocrlf = input\n[alias]\n\tx = !evil\n")
    put(git / "hooks/pre-commit")
    put(git / "info/attributes")
    put(git / "config.worktree")
    put(git / "commondir", "../evil")
    put(git / "gitdir", "x")
    put(git / "modules/x/config")
    (git / "link").symlink_to("/")
    names = {"config", "hooks", "info/attributes", "config.worktree", "commondir", "gitdir", "modules", "link"}  # fmt: skip
    assert set(quarantine.neutralize(git, seen(git))) == names
    assert is_tame(git)
    config = (git / "config").read_text("utf-8")
    assert ("autocrlf = input" in config, "fsmonitor" in config, "evil" in config) == (True, False, False)  # fmt: skip
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    log = subprocess.run(["git", "log", "--format=%s"], cwd=git.parent, env=env, check=True, capture_output=True)  # fmt: skip
    assert log.stdout == b"x\n"
    assert quarantine.neutralize(git, seen(git)) == ()


@pytest.mark.parametrize("name", ["config", "hooks", "modules", "config.worktree"])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_whatever_stands_there_the_repository_is_tame_afterwards(
    root: Path, quarantine: Quarantine, name: str, kind: str
) -> None:
    git = repository(root / "a")
    if (git / name).is_dir():
        (git / name).rename(root / "old")
    else:
        (git / name).unlink(missing_ok=True)
    match kind:
        case "file":
            put(git / name, "[core]\n\tpager = evil\n")
        case "folder":
            put(git / name / "evil")
        case "link":
            (git / name).symlink_to("/etc")
        case _:
            os.mkfifo(git / name)
    _ = quarantine.neutralize(git, seen(git))
    assert is_tame(git)


def test_another_repository_than_was_seen_is_left_alone(root: Path, quarantine: Quarantine) -> None:
    git = repository(root / "a")
    put(git / "hooks/pre-commit")
    assert quarantine.neutralize(git, seen(root)) == ()
    assert (git / "hooks/pre-commit").exists()


def test_a_new_folder_is_made_readable_once(root: Path, quarantine: Quarantine) -> None:
    made = root / "a/b"
    made.mkdir(parents=True)
    made.chmod(0o044)
    entry = seen(made)
    assert quarantine.make_readable(made, entry)
    assert made.stat().st_mode & 0o777 == 0o744
    assert not quarantine.make_readable(made, entry)
    assert not quarantine.make_readable(made, seen(root))
