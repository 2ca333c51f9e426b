"""Removes a worktree, and only one that holds nothing that nobody else has, or whose content was kept."""

import os
import shutil
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from agent_core.workspace.git.client import Git
from agent_core.workspace.git.repository import RepositoryUnusable, read_part
from agent_core.workspace.git.worktrees.kept_commit import Tips
from agent_core.workspace.git.worktrees.records import WorktreeRecord
from agent_core.workspace.git.worktrees.trees import Snapshot
from agent_core.workspace.git.worktrees.values import BRANCHES, WorktreeRefused

MOST_LOCK_BYTES = 65_536


async def check_lock(record: WorktreeRecord) -> None:
    """Check that a worktree has no lock but ours.

    Raises:
        WorktreeRefused: Another program or a person has locked it.
    """
    path = record.git_dir / "locked"
    try:
        content = await to_thread.run_sync(lambda: read_part(path, most_bytes=MOST_LOCK_BYTES))
    except FileNotFoundError:
        return
    except (OSError, RepositoryUnusable) as error:
        message = (
            f"the lock {str(path)!r} of the worktree cannot be read ({error}), so it is not removed"
        )
        raise WorktreeRefused(message) from error
    reason = content.decode("utf-8", "replace").strip()
    if reason != record.lock_reason:
        message = f"the worktree {record.id!r} is locked by another program or a person ({reason or 'no reason given'}); `git worktree unlock` ends that"
        raise WorktreeRefused(message)


async def why_not_removed(
    git: Git, record: WorktreeRecord, snapshot: Snapshot, tips: Tips
) -> str | None:
    """Return what a worktree holds that nobody else has; None: nothing."""
    if record.merged == snapshot.tree:
        return None
    held: list[str] = []
    tree = None if tips.head is None else await git.text("rev-parse", f"{tips.head}^{{tree}}")
    if {snapshot.tree, snapshot.index} != {tree}:
        held.append("changes that are not committed")
    if tips.head is None:
        held.append("a branch without a commit")
    elif tips.own_of_head:
        count = tips.own_of_head
        held.append(f"{count} commit{'s' if count > 1 else ''} that no other branch has")
    if not held:
        return None
    return f"the worktree {record.id!r} holds {' and '.join(held)}; take them over with `tiller worktree merge {record.id}`, or remove it all the same with `--force`, which keeps them as a commit"


async def count_ignored(git: Git) -> int:
    """Return how many ignored files and folders lie in a worktree; a folder that is ignored as a whole is one."""
    listed = await git.output(
        "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"
    )
    return listed.count(b"\0")


async def forget_in_git(git: Git, path: Path, *, id_: str, tip: str | None) -> None:
    """End the registration of a worktree whose folder is gone, and delete its branch if it is still as it was kept.

    Args:
        git: With the repository of the worktree.
        path: Where the folder was.
        id_: The id of the worktree.
        tip: The commit of the branch that was kept; None: there is no such branch.

    Raises:
        WorktreeRefused: Git does not.
    """
    # With two `--force` also a locked one; that it is ours was checked. Without its folder nothing else is deleted.
    answer = await git.ask_in_place("worktree", "remove", "--force", "--force", str(path))
    if answer.code:
        message = (
            f"Git does not end the worktree {id_!r} ({answer.errors}); everything in it is kept"
        )
        raise WorktreeRefused(message)
    repository = git.repository
    # The worktree's own folder in the repository is gone now.
    git = git.of(replace(repository, git_dir=repository.common_dir))
    branch = BRANCHES + id_
    listed = await git.ask_in_place("worktree", "list", "--porcelain")
    is_used = f"branch {branch}".encode() in listed.output.splitlines()
    if tip is not None and not is_used:
        _ = await git.ask_in_place("update-ref", "-d", branch, tip)


def delete_folder(folder: Path) -> Path | None:
    """Delete a folder that was moved away with everything in it; return it if something is left. Blocking."""
    for at, folders, _ in os.walk(folder):
        # Folders without permission to write cannot be emptied; `os.walk` follows no links.
        for name in folders:
            path = Path(at) / name
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    return folder if os.path.lexists(folder) else None
