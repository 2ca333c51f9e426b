"""Whatever state a worktree is in, its removal loses nothing: it is refused, or everything is still reachable."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from agent_core.kernel.errors import TillerError
from tests.support.harness.sizes import at_size
from tests.support.workspace.repositories import Repository
from tests.support.workspace.worktrees import Ground, ground

pytestmark = pytest.mark.timeout(at_size(ci=60, campaign=3_600))

Step = Callable[[Repository, int], None]


def attempt(inside: Repository, *arguments: str) -> None:
    """Run git where a refusal is one of the states that are wanted."""
    with suppress(AssertionError):
        inside.git(*arguments)


def write_tracked(inside: Repository, number: int) -> None:
    inside.write("a.txt", f"one\n{number}\nthree\n")


def write_new(inside: Repository, number: int) -> None:
    inside.write(f"new{number % 3}.txt", f"new {number}\n")


def write_deep(inside: Repository, number: int) -> None:
    inside.write(f"deep/{number % 3}/x y\n.txt", f"deep {number}\n")


def write_ignored(inside: Repository, number: int) -> None:
    inside.write("x.log", f"ignored {number}\n")


def write_like_a_git_file(inside: Repository, number: int) -> None:
    inside.write("deep/.gitignore", f"*.txt\n# {number}\n")


def delete(inside: Repository, number: int) -> None:
    _ = number
    (inside.root / "a.txt").unlink(missing_ok=True)


def file_for_folder(inside: Repository, number: int) -> None:
    shutil.rmtree(inside.root / "dir", ignore_errors=True)
    if not (inside.root / "dir").exists():
        inside.write("dir", f"file {number}\n")


def make_link(inside: Repository, number: int) -> None:
    with suppress(FileExistsError):
        (inside.root / "link").symlink_to(f"target{number}")


def stage(inside: Repository, number: int) -> None:
    _ = number
    attempt(inside, "add", "--all")


def stage_ignored(inside: Repository, number: int) -> None:
    write_ignored(inside, number)
    attempt(inside, "add", "--force", "x.log")


def intend_to_add(inside: Repository, number: int) -> None:
    write_new(inside, number)
    attempt(inside, "add", "--intent-to-add", f"new{number % 3}.txt")


def unstage(inside: Repository, number: int) -> None:
    _ = number
    attempt(inside, "rm", "--quiet", "--cached", "a.txt")


def hide(inside: Repository, number: int) -> None:
    attempt(inside, "update-index", "--assume-unchanged", "a.txt")
    write_tracked(inside, number)


def skip(inside: Repository, number: int) -> None:
    attempt(inside, "update-index", "--skip-worktree", "a.txt")
    write_tracked(inside, number)


def commit(inside: Repository, number: int) -> None:
    attempt(inside, "add", "--all")
    attempt(inside, "commit", "--quiet", "--allow-empty", "--message", f"Commit {number}")


def commit_and_leave(inside: Repository, number: int) -> None:
    write_tracked(inside, number)
    commit(inside, number)
    attempt(inside, "reset", "--quiet", "--hard", "HEAD~1")


def amend(inside: Repository, number: int) -> None:
    write_tracked(inside, number)
    attempt(inside, "commit", "--quiet", "--all", "--amend", "--message", f"Amended {number}")


def publish(inside: Repository, number: int) -> None:
    attempt(inside, "branch", f"public{number}")


def detach(inside: Repository, number: int) -> None:
    _ = number
    attempt(inside, "checkout", "--quiet", "--detach")


def other_branch(inside: Repository, number: int) -> None:
    attempt(inside, "checkout", "--quiet", "-b", f"branch{number}")


def orphan(inside: Repository, number: int) -> None:
    attempt(inside, "checkout", "--quiet", "--orphan", f"orphan{number}")


def conflict(inside: Repository, number: int) -> None:
    """Stop in the middle of a merge of two changes of one line, with a commit that only MERGE_HEAD names."""
    attempt(inside, "stash", "--quiet", "--include-untracked")
    write_tracked(inside, number + 1)
    commit(inside, number + 1)
    attempt(inside, "checkout", "--quiet", "--detach", "HEAD~1")
    write_tracked(inside, number + 2)
    commit(inside, number + 2)
    attempt(inside, "merge", "--quiet", "tiller/w1")


def rebase(inside: Repository, number: int) -> None:
    conflict(inside, number)
    attempt(inside, "merge", "--abort")
    write_new(inside, number)
    attempt(inside, "add", "--all")
    attempt(inside, "rebase", "--quiet", "--autostash", "tiller/w1")


def own_ref(inside: Repository, number: int) -> None:
    write_tracked(inside, number)
    commit(inside, number)
    attempt(inside, "update-ref", "refs/worktree/mine", "HEAD")
    attempt(inside, "reset", "--quiet", "--hard", "HEAD~1")


def stop_reflogs(inside: Repository, number: int) -> None:
    _ = number
    attempt(inside, "reflog", "expire", "--expire=all", "--all")


def nest(inside: Repository, number: int) -> None:
    Repository(inside.root / "inner").commit("Inner", {"f.txt": f"{number}\n"})


def lock_anew(inside: Repository, number: int) -> None:
    attempt(inside, "worktree", "unlock", ".")
    attempt(inside, "worktree", "lock", "--reason", f"mine {number}", ".")


def unlock(inside: Repository, number: int) -> None:
    _ = number
    attempt(inside, "worktree", "unlock", ".")


def remove_folder(inside: Repository, number: int) -> None:
    _ = number
    shutil.rmtree(inside.root)


STEPS: tuple[Step, ...] = (
    *(write_tracked, write_new, write_deep, write_ignored, write_like_a_git_file, delete),
    *(file_for_folder, make_link, stage, stage_ignored, intend_to_add, unstage, hide, skip),
    *(commit, commit_and_leave, amend, publish, detach, other_branch, orphan, conflict, rebase),
    *(own_ref, stop_reflogs, nest, lock_anew, unlock, remove_folder),
)


@settings(max_examples=at_size(ci=6, campaign=300), deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6, unique=True),
    force=st.booleans(),
    is_merged=st.booleans(),
)
def test_a_removal_loses_nothing(steps: list[Step], force: bool, is_merged: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        here = ground(Path(folder))
        anyio.run(check, here, steps, force, is_merged)


async def check(here: Ground, steps: list[Step], force: bool, is_merged: bool) -> None:
    await here.worktrees.create(here.repository.root, id_="w1", owner="s1")
    inside = here.inside()
    for number, step in enumerate(steps, start=10):
        if inside.root.is_dir():
            step(inside, number)
    if is_merged:
        with suppress(TillerError):
            await here.worktrees.merge("w1")
    before = state(inside)
    held = contents(inside)
    unreachable = lost(here.repository)
    try:
        removed = await here.worktrees.remove("w1", force=force)
    except TillerError:
        assert state(inside) == before
        return
    assert not inside.root.exists()
    assert lost(here.repository) <= unreachable
    objects = reachable(here.repository)
    assert {name for name, blob in held.items() if blob not in objects} == set()
    assert removed.kept_commit in objects
    assert here.repository.git("worktree", "list").count("\n") == 0


def state(inside: Repository) -> Mapping[str, bytes]:
    """Return all files of a worktree."""
    found: dict[str, bytes] = {}
    for at, _, names in os.walk(inside.root):
        for name in names:
            path = Path(at) / name
            is_link = path.is_symlink()
            found[str(path)] = os.fsencode(path.readlink()) if is_link else path.read_bytes()
    return found


def contents(inside: Repository) -> Mapping[str, str]:
    """Return the blob of every file that lies in a worktree or is staged there, ignored ones excepted."""
    if not inside.root.is_dir():
        return {}
    listed = inside.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = {name for name in listed.split("\0") if os.path.lexists(inside.root / name) and name}
    found: dict[str, str] = {}
    for name in names:
        path = inside.root / name
        if path.is_symlink():
            found[name] = inside.git("hash-object", "--stdin", stdin=os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = inside.git("hash-object", "--stdin", stdin=path.read_bytes())
    for row in inside.git("ls-files", "-z", "--stage").split("\0"):
        about, _, name = row.partition("\t")
        # What is only intended to be added has no content yet.
        if about and not about.split()[1].startswith("e69de29"):
            found[f"{name} staged {about[-1]}"] = about.split()[1]
    return found


def reachable(repository: Repository) -> set[str]:
    listed = repository.git("rev-list", "--objects", "--all", "--no-object-names")
    return set(listed.split())


def lost(repository: Repository) -> set[str]:
    """Return the objects that nothing reaches, no index and no reflog."""
    return set(repository.git("fsck", "--unreachable", "--no-progress").splitlines())
