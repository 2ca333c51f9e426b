"""Worktrees are made apart from the checkout, and only removed when nothing is lost."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agent_core.kernel.errors import TillerError
from agent_core.workspace.git.worktrees.values import (
    MergeConflicted,
    WorktreeRefused,
    WorktreeUnknown,
)
from tests.support.workspace.poisoned import POISONS
from tests.support.workspace.repositories import Repository
from tests.support.workspace.worktrees import Ground, ground

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


async def test_a_worktree_is_apart_locked_and_on_its_own_branch(here: Ground) -> None:
    base = here.repository.head()
    made = await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    inside = here.inside()
    assert made.path == made.folder == inside.root
    assert (made.repository, made.base, made.branch) == (here.repository.root, base, "tiller/w1")
    assert not made.base_is_dirty
    assert inside.git("symbolic-ref", "HEAD") == "refs/heads/tiller/w1"
    assert inside.git("status", "--porcelain", "--ignored") == ""
    assert "locked tiller worktree w1" in here.repository.git("worktree", "list", "--porcelain")
    assert here.repository.git("status", "--porcelain") == ""
    assert here.data.stat().st_mode & 0o777 == 0o700


async def test_changes_that_are_not_committed_are_not_in_it_and_it_says_so(here: Ground) -> None:
    here.repository.write("a.txt", "other\n")
    made = await here.worktrees.create(here.repository.root / "dir", id_="w1", owner="s1")
    assert made.base_is_dirty
    assert made.folder == made.path / "dir"
    assert here.inside().read("a.txt") == "one\ntwo\nthree\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def link_to(target: Path | str, path: Path) -> None:
    path.symlink_to(target)


def bare(here: Ground) -> None:
    here.repository.git("config", "core.bare", "true")


def sparse(here: Ground) -> None:
    here.repository.git("sparse-checkout", "set", "dir")


def partial(here: Ground) -> None:
    here.repository.git("config", "core.repositoryformatversion", "1")
    here.repository.git("config", "extensions.partialClone", "origin")


def submodule(here: Ground) -> None:
    sha = here.repository.head()
    here.repository.git("update-index", "--add", "--cacheinfo", f"160000,{sha},lib")
    here.repository.git("commit", "--quiet", "--message", "Link")


def large_files(here: Ground) -> None:
    here.repository.commit("Large", {"dir/.gitattributes": "*.bin filter=lfs diff=lfs\n"})


def other_filter(here: Ground) -> None:
    info = here.repository.root / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("*.txt filter=crypt\n")


def taken_branch(here: Ground) -> None:
    here.repository.git("branch", "tiller/w1")


def taken_folder(here: Ground) -> None:
    (here.data / "w1").mkdir(parents=True)
    here.data.chmod(0o700)


def link(here: Ground) -> None:
    here.data.parent.mkdir()
    here.data.symlink_to(here.repository.root)


def shared_folder(here: Ground) -> None:
    here.data.mkdir(parents=True)
    here.data.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (bare, "is a bare repository"),
        (sparse, "is a sparse checkout"),
        (partial, "is a partial clone"),
        (submodule, r"has submodules \(lib\)"),
        (large_files, r"with Git LFS \(dir/.gitattributes\)"),
        (other_filter, r"through the filter 'crypt' \(info/attributes\)"),
        (taken_branch, "Git does not make the worktree .*tiller/w1"),
        (taken_folder, "there is already a worktree 'w1'"),
        (link, "is a link or no folder"),
        (shared_folder, "can be written by other users"),
    ],
)
async def test_what_a_worktree_cannot_hold_is_refused_and_nothing_is_left(
    here: Ground, spoil: Callable[[Ground], None], why: str
) -> None:
    spoil(here)
    before = (here.refs(), sorted(here.data.parent.rglob("*")))
    with pytest.raises(WorktreeRefused, match=why):
        await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    after = [one for one in sorted(here.data.parent.rglob("*")) if one != here.data]
    assert (here.refs(), after) == (before[0], [one for one in before[1] if one != here.data])
    assert not (here.repository.root / ".git" / "worktrees").exists()


async def test_outside_of_a_repository_and_before_the_first_commit_it_is_refused(
    here: Ground, tmp_path: Path
) -> None:
    empty = Repository(tmp_path / "empty")
    for root, why in ((tmp_path, "is in no Git repository"), (empty.root, "has no commit yet")):
        with pytest.raises(WorktreeRefused, match=why):
            await here.worktrees.create(root, id_="w1", owner="s1")
    (here.repository.root / "new").mkdir()
    with pytest.raises(WorktreeRefused, match="has no file in the last commit"):
        await here.worktrees.create(here.repository.root / "new", id_="w1", owner="s1")
    with pytest.raises(WorktreeUnknown, match="is no id of a worktree"):
        await here.worktrees.create(here.repository.root, id_="../w1", owner="s1")


async def test_the_state_of_each_is_listed(here: Ground, tmp_path: Path) -> None:
    for id_ in ("clean", "busy", "gone", "torn"):
        await here.worktrees.create(here.repository.root, id_=id_, owner=id_)
    here.inside("busy").commit("Work", {"c.txt": "c\n"})
    here.inside("busy").write("d.txt", "d\n")
    here.inside("busy").write("x.log", "ignored\n")
    here.owners.open.add("busy")
    shutil.rmtree(here.data / "gone")
    here.repository.git("worktree", "unlock", "torn")
    shutil.move(here.data / "torn", tmp_path / "aside")
    here.repository.git("worktree", "prune")
    shutil.move(tmp_path / "aside", here.data / "torn")
    listed = await here.worktrees.list(here.repository.root / "dir")
    shown = {
        one.worktree.id: (one.state, one.active, one.changed_files, one.own_commits)
        for one in listed
    }
    assert shown == {
        "clean": ("ready", None, 0, 0),
        "busy": ("ready", "the session busy", 1, 1),
        "gone": ("missing", None, 0, 0),
        "torn": ("broken", None, 0, 0),
    }
    other = Repository(tmp_path / "other")
    assert await here.worktrees.list(other.root) == []
    assert len(await here.worktrees.list(None)) == 4


async def test_the_diff_has_everything_but_ignored_files(here: Ground) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    inside = here.inside()
    inside.commit("Work", {"a.txt": "one\nTWO\nthree\n"})
    inside.write("new.txt", "new\n")
    inside.write("x.log", "ignored\n")
    inside.write("data.bin", b"\0\1")
    (inside.root / "dir" / "b.txt").unlink()
    # A command may have hidden its change from `git status`.
    inside.git("update-index", "--assume-unchanged", ".gitignore")
    inside.write(".gitignore", "*.log\n*.tmp\n")
    patch = await here.worktrees.diff("w1")
    assert "-two\n+TWO\n" in patch
    assert "+new\n" in patch
    assert "+*.tmp\n" in patch
    assert "Binary files /dev/null and b/data.bin differ" in patch
    assert "x.log" not in patch
    changes = {
        one.path: (one.kind, one.old_text, one.new_text, one.is_text)
        for one in await here.worktrees.changes("w1")
    }
    assert changes == {
        ".gitignore": ("modified", "*.log\n", "*.log\n*.tmp\n", True),
        "a.txt": ("modified", "one\ntwo\nthree\n", "one\nTWO\nthree\n", True),
        "data.bin": ("added", None, None, False),
        "new.txt": ("added", None, "new\n", True),
        "dir/b.txt": ("deleted", "b\n", None, True),
    }
    assert inside.git("diff", "--cached", "--name-only") == ""


async def test_a_merge_takes_both_sides_and_leaves_index_and_branch(here: Ground) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    inside = here.inside()
    inside.commit("Work", {"a.txt": "one\ntwo\nTHREE\n", "deep/new.sh": "#!/bin/sh\n"})
    (inside.root / "deep" / "new.sh").chmod(0o755)
    (inside.root / "dir" / "b.txt").unlink()
    link_to("a.txt", inside.root / "link")
    here.repository.write("a.txt", "ONE\ntwo\nthree\n")
    here.repository.write("mine.txt", "mine\n")
    head, index = here.repository.head(), here.repository.git("ls-files", "--stage")
    merged = await here.worktrees.merge("w1")
    assert merged.written == ["a.txt", "deep/new.sh", "dir/b.txt", "link"]
    assert here.repository.read("a.txt") == "ONE\ntwo\nTHREE\n"
    assert here.repository.read("mine.txt") == "mine\n"
    assert (here.repository.root / "deep" / "new.sh").stat().st_mode & 0o111
    assert (here.repository.root / "link").readlink() == Path("a.txt")
    assert not (here.repository.root / "dir").exists()
    assert (head, index) == (here.repository.head(), here.repository.git("ls-files", "--stage"))
    again = await here.worktrees.merge("w1")
    assert (again.written, len(again.unchanged)) == ([], 4)
    assert (await here.worktrees.list(None))[0].is_merged
    removed = await here.worktrees.remove("w1")
    assert here.repository.git("show", f"{removed.kept_commit}:a.txt") == "one\ntwo\nTHREE"


def same_line(here: Ground) -> None:
    here.repository.write("a.txt", "one\n2\nthree\n")


def untracked(here: Ground) -> None:
    here.repository.write("new.txt", "mine\n")


def ignored(here: Ground) -> None:
    here.repository.write(".gitignore", "new.txt\n")
    here.repository.write("new.txt", "mine\n")


def folder(here: Ground) -> None:
    here.repository.write("new.txt/mine", "mine\n")


def led_away(here: Ground) -> None:
    shutil.move(here.repository.root / "dir", here.repository.root.parent / "elsewhere")
    Path(here.repository.root / "dir").symlink_to("../elsewhere")


def deleted(here: Ground) -> None:
    (here.repository.root / "a.txt").unlink()


@pytest.mark.parametrize(
    ("spoil", "path"),
    [
        (same_line, "a.txt"),
        (untracked, "new.txt"),
        (ignored, "new.txt"),
        (folder, "new.txt"),
        (led_away, "dir/b.txt"),
        (deleted, "a.txt"),
    ],
)
async def test_a_conflict_changes_nothing_and_names_the_file(
    here: Ground, spoil: Callable[[Ground], None], path: str
) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    for name, text in (("a.txt", "one\nTWO\nthree\n"), ("new.txt", "new\n"), ("dir/b.txt", "B\n")):
        here.inside().write(name, text)
    spoil(here)
    before = files(here.repository.root.parent)
    with pytest.raises(MergeConflicted, match=path) as caught:
        await here.worktrees.merge("w1")
    assert path in caught.value.paths
    assert files(here.repository.root.parent) == before


def files(top: Path) -> dict[str, bytes]:
    return {
        path.relative_to(top).as_posix(): path.read_bytes()
        for path in top.rglob("*")
        if path.is_file() and ".git" not in path.parts and "data" not in path.parts
    }


def uncommitted(inside: Repository) -> None:
    inside.write("a.txt", "other\n")


def unseen(inside: Repository) -> None:
    inside.write("a.txt", "other\n")
    inside.git("update-index", "--assume-unchanged", "a.txt")


def new_file(inside: Repository) -> None:
    inside.write("new.txt", "new\n")


def staged(inside: Repository) -> None:
    inside.write("a.txt", "other\n")
    inside.git("add", "a.txt")
    inside.write("a.txt", "one\ntwo\nthree\n")


def commits(inside: Repository) -> None:
    inside.commit("Work", {"a.txt": "other\n"})


def orphan(inside: Repository) -> None:
    inside.git("checkout", "--quiet", "--orphan", "fresh")


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (uncommitted, "other\n"),
        (unseen, "other\n"),
        (new_file, "new\n"),
        (staged, "other\n"),
        (commits, "other\n"),
        (orphan, "one\ntwo\nthree\n"),
    ],
)
async def test_what_nobody_else_has_is_not_removed_without_force_and_kept_with_it(
    here: Ground, work: Callable[[Repository], None], text: str
) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    work(here.inside())
    with pytest.raises(WorktreeRefused, match=r"holds .*merge w1.*--force"):
        await here.worktrees.remove("w1")
    assert (here.data / "w1").is_dir()
    removed = await here.worktrees.remove("w1", force=True)
    assert names(here.data) == []
    assert here.refs().split() == ["refs/heads/main", "refs/tiller/kept/w1"]
    blob = here.repository.git("hash-object", "--stdin", stdin=text.encode())
    assert blob in here.repository.git("rev-list", "--objects", removed.kept_ref)
    assert here.repository.git("worktree", "list").count("\n") == 0


async def test_an_unchanged_worktree_is_removed_and_ignored_files_are_counted(here: Ground) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    here.inside().write("x.log", "1\n")
    here.inside().write("y.log", "2\n")
    removed = await here.worktrees.remove("w1")
    assert (removed.ignored, removed.leftover) == (2, None)
    assert removed.kept_commit == here.repository.head()
    assert names(here.data) == []


async def test_force_does_not_remove_what_somebody_uses_locked_or_cannot_be_kept(
    here: Ground,
) -> None:
    for id_ in ("used", "locked", "nested"):
        await here.worktrees.create(here.repository.root, id_=id_, owner=id_)
    here.owners.open.add("used")
    here.repository.git("worktree", "unlock", "locked")
    here.repository.git("worktree", "lock", "--reason", "mine", "locked")
    Repository(here.data / "nested" / "x.log" / "inner").commit("Inner", {"f": "f\n"})
    for id_, why in (
        ("used", "the session used works in"),
        ("locked", r"locked by another program or a person \(mine\)"),
        ("nested", "repository of its own in 'x.log/inner'"),
    ):
        with pytest.raises(WorktreeRefused, match=why):
            await here.worktrees.remove(id_, force=True)
        assert (here.data / id_).is_dir()
    await here.worktrees.remove("used", asking="used")
    with pytest.raises(WorktreeUnknown, match="there is no worktree 'used'"):
        await here.worktrees.remove("used")


async def test_a_missing_folder_is_an_error_of_all_but_remove_which_keeps_its_commits(
    here: Ground,
) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    commit = here.inside().commit("Work", {"a.txt": "other\n"})
    shutil.rmtree(here.data / "w1")
    for call in (here.worktrees.diff, here.worktrees.changes, here.worktrees.merge):
        with pytest.raises(WorktreeRefused, match="is missing"):
            await call("w1")
    with pytest.raises(WorktreeRefused, match="1 commit that no other branch has"):
        await here.worktrees.remove("w1")
    assert (await here.worktrees.remove("w1", force=True)).kept_commit == commit


async def test_a_folder_that_became_a_link_is_not_touched(here: Ground, tmp_path: Path) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    shutil.move(here.data / "w1", tmp_path / "aside")
    link_to(here.repository.root, here.data / "w1")
    for force in (False, True):
        with pytest.raises(WorktreeRefused, match="is a link or no folder"):
            await here.worktrees.remove("w1", force=force)
    assert here.repository.read("a.txt")


@pytest.mark.parametrize("name", POISONS)
async def test_no_program_of_a_repository_is_run(here: Ground, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "mark"
    here.repository.commit("More", {"b.py": "one\n"})
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    POISONS[name].plant(here.repository, f"touch {mark}")
    mark.unlink(missing_ok=True)
    attributes = "* filter=e diff=e merge=e\n"
    for one in (here.inside(), here.repository):
        one.write(".gitattributes", attributes)
    here.inside().write("b.py", "two\n")
    inside = here.worktrees
    calls = (
        lambda: inside.create(here.repository.root, id_="w2", owner="s1"),
        lambda: inside.list(None),
        lambda: inside.diff("w1"),
        lambda: inside.merge("w1"),
        lambda: inside.remove("w1", force=True),
        lambda: inside.remove("w2", force=True),
    )
    for call in calls:
        # With objects or a configuration that cannot be used much is refused, and nothing is run.
        with suppress(TillerError):
            await call()
    assert not mark.exists()


def include(here: Ground, *patterns: str) -> None:
    here.repository.write(".gitignore", "*.log\n.env\nlocal/\nlink\n")
    here.repository.write(".worktreeinclude", "".join(f"{line}\n" for line in patterns))
    here.repository.git("add", ".gitignore", ".worktreeinclude")
    here.repository.git("commit", "--quiet", "--message", "Include")


async def test_ignored_files_are_copied_when_the_user_asks_for_it(here: Ground) -> None:
    include(here, "# local files", ".env", "local/*", "!local/private", "a.txt", "own.txt")
    here.repository.write(".env", "KEY=1\n")
    here.repository.write("dir/.env", "KEY=2\n")
    here.repository.write("local/conf/x y.json", "{}")
    here.repository.write("local/private", "not named")
    here.repository.write("own.txt", "untracked and not ignored")
    here.repository.write("x.log", "ignored and not named")
    (here.repository.root / ".env").chmod(0o640)
    (here.repository.root / "dir/.env").chmod(0o500)
    plain = await here.worktrees.create(here.repository.root, id_="w0", owner="s1")
    assert (plain.included, plain.left_out) == ((), ())
    assert not (plain.path / ".env").exists()
    made = await here.worktrees.create(
        here.repository.root / "dir", id_="w1", owner="s1", include=True
    )
    assert sorted(made.included) == [".env", "dir/.env", "local/conf/x y.json"]
    assert made.left_out == ()
    assert here.inside().read("local/conf/x y.json") == "{}"
    assert (made.path / ".env").stat().st_mode & 0o777 == 0o640
    assert (made.path / "dir/.env").stat().st_mode & 0o777 == 0o500
    absent = ("own.txt", "x.log", "local/private")
    assert not [name for name in absent if (made.path / name).exists()]
    assert here.inside().git("status", "--porcelain") == ""
    removed = await here.worktrees.remove("w1")
    assert removed.ignored == 3


async def test_links_large_files_and_what_is_there_already_are_left_out(here: Ground) -> None:
    include(here, ".env", "*.log", "local/", "link")
    outside = here.repository.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("secret", "utf-8")
    link_to(outside / "secret.log", here.repository.root / "link")
    link_to(outside, here.repository.root / "local")
    with (here.repository.root / "large.log").open("wb") as file:
        _ = file.truncate(16 * 1024 * 1024 + 1)
    os.mkfifo(here.repository.root / "pipe.log")
    here.repository.write("dir/.env", "KEY=1\n")
    here.repository.git("rm", "--quiet", "-r", "--cached", "dir")
    link_to("../elsewhere", here.repository.root / "real")
    here.repository.git("add", "real")
    here.repository.git("commit", "--quiet", "--message", "A link")
    (here.repository.root / "real").unlink()
    here.repository.write("real/.env", "KEY=2\n")
    made = await here.worktrees.create(here.repository.root, id_="w1", owner="s1", include=True)
    assert made.included == ("dir/.env",)
    left_out = dict(line.split(" (", 1) for line in made.left_out)
    assert left_out.pop("large.log") == "more than 16.0MB, the limit of a file)"
    assert left_out.pop("real/.env", None) is not None
    assert set(left_out) <= {"link", "local", "pipe.log"}
    assert not (here.repository.root.parent / "elsewhere").exists()
    kinds = {path.name for path in made.path.iterdir() if path.is_symlink()}
    assert kinds == {"real"}
    assert "secret" not in {path.read_text("utf-8") for path in made.path.glob("*.log")}


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda here: None, "there is no .worktreeinclude in "),
        (
            lambda here: link_to("a.txt", here.repository.root / ".worktreeinclude"),
            "cannot be read",
        ),
        (
            lambda here: here.repository.write(".worktreeinclude", "x" * 70_000),
            "cannot be read",
        ),
    ],
    ids=["missing", "link", "large"],
)
async def test_without_a_readable_file_of_patterns_nothing_is_made(
    here: Ground, prepare: Callable[[Ground], None], said: str
) -> None:
    prepare(here)
    refs = here.refs()
    with pytest.raises(WorktreeRefused, match=said):
        _ = await here.worktrees.create(here.repository.root, id_="w1", owner="s1", include=True)
    assert here.refs() == refs
    assert list(here.data.iterdir()) == []
