"""What the index of a workspace knows: everything, at any depth, however it got there."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from typing_extensions import override

from agent_core.workspace.files.folder_watch import FolderWatch
from agent_core.workspace.sandbox.guards.tree_index import (
    LONGEST_PATH_BYTES,
    GuardedEntry,
    TreeIndex,
)

DEEP = "/".join(f"d{number}" for number in range(30))
EVENTS_OF_A_QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


def no_watch() -> FolderWatch:
    """Be a system on which folders cannot be watched.

    Raises:
        OSError: Always.
    """
    raise OSError("folders cannot be watched here")


class FewWatches(FolderWatch):
    """Has room for three folders."""

    @override
    def add(self, folder: str) -> None:
        """Watch a folder, while there is room.

        Raises:
            OSError: There is none.
        """
        if len(self._folders) > 2:
            raise OSError(28, "no room for another watch")
        super().add(folder)


WATCHES: Mapping[str, Callable[[], FolderWatch]] = {
    "watched": FolderWatch,
    "unwatched": no_watch,
    "few watches": FewWatches,
}


@pytest.fixture(params=WATCHES)
def watch(request: pytest.FixtureRequest) -> Callable[[], FolderWatch]:
    return WATCHES[request.param]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    root.mkdir()
    return root


@pytest.fixture
def index(root: Path, watch: Callable[[], FolderWatch]) -> Iterator[TreeIndex]:
    made = TreeIndex((str(root),), watch=watch)
    yield made
    made.close()


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def bare(folder: Path) -> Path:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    put(folder / "HEAD")
    return folder


def fresh(root: Path) -> Mapping[str, GuardedEntry]:
    apart = TreeIndex((str(root),), watch=no_watch)
    found = dict(apart.refresh())
    apart.close()
    return found


def kinds(found: Mapping[str, GuardedEntry], root: Path) -> dict[str, str]:
    return {os.path.relpath(path, root): entry.kind for path, entry in found.items()}


def agree(index: TreeIndex, root: Path) -> dict[str, str]:
    now = index.refresh()
    assert now == fresh(root)
    return kinds(now, root)


def test_everything_is_found_at_any_depth(index: TreeIndex, root: Path) -> None:
    put(root / DEEP / "AGENTS.md")
    put(root / DEEP / ".git/config")
    put(root / DEEP / ".github/workflows/ci.yml")
    put(root / DEEP / ".env")
    put(root / DEEP / "code.py")
    bare(root / DEEP / "b")
    (root / DEEP / "l").symlink_to("code.py")
    assert agree(index, root) == {
        f"{DEEP}/AGENTS.md": "protected",
        f"{DEEP}/.git": "git",
        f"{DEEP}/.github/workflows": "protected",
        f"{DEEP}/.env": "secret",
        f"{DEEP}/b": "repository",
        **dict.fromkeys((f"{DEEP}/b/{name}" for name in ("HEAD", "objects", "refs")), "marker"),
        f"{DEEP}/l": "link",
    }


def test_while_nothing_happens_the_same_object_is_returned(index: TreeIndex, root: Path) -> None:
    put(root / "a/AGENTS.md")
    first = index.refresh()
    assert index.refresh() is first
    put(root / "a/code.py")
    assert index.refresh() is first
    put(root / "a/CLAUDE.md")
    assert index.refresh() is not first


def test_whether_the_system_says_where_something_happened_is_told(root: Path) -> None:
    watched, unwatched = TreeIndex((str(root),)), TreeIndex((str(root),), watch=no_watch)
    for one in (watched, unwatched):
        _ = one.refresh()
    assert (watched.is_watched, unwatched.is_watched) == (True, False)
    assert watched.folder_count == unwatched.folder_count == 1
    watched.close()
    watched.close()
    assert (watched.is_watched, watched.folder_count) == (False, 0)


def test_without_room_for_watches_times_are_compared(root: Path) -> None:
    put(root / "a/b/c/d/code.py")
    index = TreeIndex((str(root),), watch=FewWatches)
    _ = index.refresh()
    assert not index.is_watched
    put(root / "a/b/c/d/AGENTS.md")
    assert agree(index, root) == {"a/b/c/d/AGENTS.md": "protected"}


def test_a_renamed_folder_is_known_by_its_new_name(index: TreeIndex, root: Path) -> None:
    put(root / "a/b/c/AGENTS.md")
    assert agree(index, root) == {"a/b/c/AGENTS.md": "protected"}
    (root / "a").rename(root / "z")
    assert agree(index, root) == {"z/b/c/AGENTS.md": "protected"}
    put(root / "z/b/c/.envrc")
    put(root / "a/b/c/code.py")
    assert set(agree(index, root)) == {"z/b/c/AGENTS.md", "z/b/c/.envrc"}
    put(root / "a/b/c/CLAUDE.md")
    assert "a/b/c/CLAUDE.md" in agree(index, root)


def test_a_folder_is_exchanged_for_another_with_its_name(index: TreeIndex, root: Path) -> None:
    put(root / "a/x/AGENTS.md")
    put(root / "b/x/.envrc")
    _ = index.refresh()
    (root / "a/x").rename(root / "hold")
    (root / "b/x").rename(root / "a/x")
    (root / "hold").rename(root / "b/x")
    assert set(agree(index, root)) == {"a/x/.envrc", "b/x/AGENTS.md"}
    put(root / "a/x/y/CLAUDE.md")
    put(root / "b/x/y/GEMINI.md")
    assert {"a/x/y/CLAUDE.md", "b/x/y/GEMINI.md"} < set(agree(index, root))


def test_a_folder_moved_in_from_elsewhere_is_walked(index: TreeIndex, root: Path) -> None:
    put(root.parent / "elsewhere/deep/er/AGENTS.md")
    assert agree(index, root) == {}
    (root.parent / "elsewhere").rename(root / "here")
    assert agree(index, root) == {"here/deep/er/AGENTS.md": "protected"}
    (root / "here").rename(root.parent / "elsewhere")
    assert agree(index, root) == {}
    put(root.parent / "elsewhere/CLAUDE.md")
    assert agree(index, root) == {}


def test_a_folder_that_is_made_again_is_another(index: TreeIndex, root: Path) -> None:
    """The system may give it the number of the one that is gone."""
    for number in range(20):
        put(root / "a/b/AGENTS.md")
        assert "a/b/AGENTS.md" in agree(index, root)
        shutil.rmtree(root / "a")
        put(root / f"a/b/c{number % 2}/CLAUDE.md")
        assert set(agree(index, root)) == {f"a/b/c{number % 2}/CLAUDE.md"}
        shutil.rmtree(root / "a")


def test_a_root_that_is_exchanged_or_made_again_is_walked_again(
    index: TreeIndex, root: Path
) -> None:
    put(root / "a/AGENTS.md")
    _ = index.refresh()
    root.rename(root.parent / "old")
    put(root / "b/CLAUDE.md")
    assert agree(index, root) == {"b/CLAUDE.md": "protected"}
    put(root / "b/.envrc")
    put(root.parent / "old/a/.envrc")
    assert set(agree(index, root)) == {"b/CLAUDE.md", "b/.envrc"}
    shutil.rmtree(root)
    assert agree(index, root) == {}
    put(root / "c/AGENTS.md")
    assert agree(index, root) == {"c/AGENTS.md": "protected"}
    root.parent.rename(root.parent.with_name("up"))
    assert agree(index, root) == {}
    root.parent.with_name("up").rename(root.parent)
    assert agree(index, root) == {"c/AGENTS.md": "protected"}


def test_several_roots_are_one_index(root: Path, watch: Callable[[], FolderWatch]) -> None:
    first, second = root / "one", root / "two"
    put(first / "AGENTS.md")
    put(second / "CLAUDE.md")
    index = TreeIndex((str(first), str(second), str(root / "none")), watch=watch)
    assert set(kinds(index.refresh(), root)) == {"one/AGENTS.md", "two/CLAUDE.md"}
    put(root / "none/.envrc")
    assert "none/.envrc" in kinds(index.refresh(), root)
    index.close()


def test_in_dependencies_only_repositories_are_held(index: TreeIndex, root: Path) -> None:
    for folder in ("node_modules", "site-packages", ".venv"):
        put(root / folder / "p/AGENTS.md")
        put(root / folder / "p/.env")
        put(root / folder / "p/.git/config")
        bare(root / folder / "q")
        (root / folder / "l").symlink_to("p")
    put(root / "Node_Modules/AGENTS.md")
    found = agree(index, root)
    held = {path for path, kind in found.items() if kind != "marker"}
    assert held == {
        "Node_Modules/AGENTS.md",
        *(f"{one}/{what}" for one in ("node_modules", "site-packages", ".venv") for what in ("p/.git", "q")),
    }  # fmt: skip


def test_in_a_protected_folder_repositories_and_secrets_are_held(
    index: TreeIndex, root: Path
) -> None:
    put(root / ".claude/skills/AGENTS.md")
    put(root / ".claude/skills/.env")
    put(root / ".claude/skills/.git/config")
    assert agree(index, root) == {
        ".claude": "protected",
        ".claude/skills/.env": "secret",
        ".claude/skills/.git": "git",
    }


def test_links_are_known_by_where_they_lead_and_not_followed(index: TreeIndex, root: Path) -> None:
    put(root.parent / "outside/AGENTS.md")
    (root / "out").symlink_to("../outside")
    (root / "AGENTS.md").symlink_to("gone")
    (root / ".git").symlink_to("out")
    found = index.refresh()
    assert {(one.kind, one.target) for one in found.values()} == {
        ("link", "../outside"), ("protected", "gone"), ("git", "out"),
    }  # fmt: skip
    assert not any(one.is_folder for one in found.values())
    (root / "out").unlink()
    (root / "out").symlink_to("elsewhere")
    assert agree(index, root)["out"] == "link"
    assert index.refresh()[str(root / "out")].target == "elsewhere"


def test_a_folder_becomes_a_repository_and_is_none_again(index: TreeIndex, root: Path) -> None:
    (root / "a/objects").mkdir(parents=True)
    (root / "a/refs").mkdir()
    assert "a" not in agree(index, root)
    put(root / "a/head")
    assert agree(index, root)["a"] == "repository"
    (root / "a").rename(root / "b")
    assert agree(index, root)["b"] == "repository"
    (root / "b/head").unlink()
    assert "b" not in agree(index, root)
    (root / "b/HEAD").symlink_to("refs/heads/main")
    assert agree(index, root)["b"] == "repository"


def test_a_folder_that_lies_too_deep_to_be_looked_at_is_unreadable(
    index: TreeIndex, root: Path
) -> None:
    """A program gets there step by step, where no path leads at once."""
    opened = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=opened)
        inner = os.open("n" * 250, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.mkdir(".git", dir_fd=opened)
    os.close(opened)
    ((path, entry),) = index.refresh().items()
    assert entry.kind == "unreadable"
    assert len(path) > LONGEST_PATH_BYTES
    assert index.refresh() == fresh(root)
    Path(path).parent.rename(root / "short")
    inside = index.refresh()
    assert not any(one.startswith(f"{path}/") for one in inside)
    assert inside == fresh(root)
    shutil.rmtree(root / "short")


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111, 0o644])
def test_a_folder_that_cannot_be_looked_into_is_unreadable(
    index: TreeIndex, root: Path, mode: int
) -> None:
    put(root / "a/b/AGENTS.md")
    _ = index.refresh()
    with as_somebody(root.parent):
        (root / "a").chmod(mode)
        assert kinds(index.refresh(), root) == {"a": "unreadable"}
        assert index.refresh() == fresh(root)
        (root / "a").chmod(0o755)
        assert kinds(index.refresh(), root) == {"a/b/AGENTS.md": "protected"}


class as_somebody:  # noqa: N801 - reads as what it does
    """Give a folder to somebody whom permissions hold, and be them: root may look into everything."""

    def __init__(self, top: Path) -> None:
        self._top, self._was = top, os.geteuid()

    def __enter__(self) -> None:
        if self._was == 0:
            for place in (self._top, *self._top.rglob("*")):
                os.chown(place, 65534, 65534, follow_symlinks=False)
            for above in self._top.parents[:-1]:
                if above.stat().st_uid == 0 and not above.stat().st_mode & 1:
                    above.chmod(above.stat().st_mode | 0o011)
            os.seteuid(65534)

    def __exit__(self, *_error: object) -> None:
        os.seteuid(self._was)


def test_more_events_than_the_system_keeps_lose_nothing(root: Path) -> None:
    for name in ("a", "b", "c/d/e"):
        (root / name).mkdir(parents=True)
    index = TreeIndex((str(root),))
    _ = index.refresh()
    for number in range(int(EVENTS_OF_A_QUEUE.read_text("ascii")) // 2 + 100):
        (root / "a" / str(number)).touch()
    (root / "a/AGENTS.md").touch()
    (root / "b").rename(root / "c/d/b2")
    shutil.rmtree(root / "c/d/e")
    put(root / "c/d/e/f/CLAUDE.md")
    put(root / "c/d/b2/.envrc")
    assert set(agree(index, root)) == {"a/AGENTS.md", "c/d/e/f/CLAUDE.md", "c/d/b2/.envrc"}
    put(root / "c/d/e/f/.envrc")
    assert "c/d/e/f/.envrc" in agree(index, root)
    index.close()


@pytest.mark.parametrize("is_inner_first", [True, False])
def test_a_root_is_walked_whole_whatever_is_around_it(root: Path, is_inner_first: bool) -> None:
    put(root / "node_modules/p/AGENTS.md")
    put(root / "node_modules/q/AGENTS.md")
    roots = (str(root), str(root / "node_modules/p"))
    index = TreeIndex(roots[::-1] if is_inner_first else roots)
    assert kinds(index.refresh(), root) == {"node_modules/p/AGENTS.md": "protected"}
    put(root / "node_modules/p/a/CLAUDE.md")
    assert "node_modules/p/a/CLAUDE.md" in kinds(index.refresh(), root)
    index.close()
