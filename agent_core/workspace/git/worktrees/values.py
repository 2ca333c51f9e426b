"""Worktrees, their state and changes, and the errors of operations on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.values import Value

KEPT_REFS = "refs/tiller/kept/"
"""Where the content of worktrees is kept before they are removed."""
BRANCHES = "refs/heads/tiller/"


class WorktreeRefused(TillerError):
    """Nothing was done; the text says why, and what to do."""

    kind = "WorktreeRefused"


class WorktreeHolds(WorktreeRefused):
    """A worktree was not removed because it holds what nothing else has."""


class WorktreeUnknown(UsageError):
    """No worktree has that id."""


class MergeConflicted(WorktreeRefused):
    """Nothing was merged: files were changed here and there in ways that exclude one another."""

    kind = "MergeConflicted"

    def __init__(self, message: str, *, paths: Sequence[str]) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


class Worktree(Value, frozen=True, kw_only=True):
    """A worktree that Tiller made."""

    id: str
    path: Path
    """Its top folder, without links."""
    folder: Path
    """Where work begins in it: the folder that matches the one it was made from."""
    repository: Path
    """The top folder of the checkout that it was made from."""
    base: str
    """The commit that it was made from."""
    owner: str
    """A session."""
    created_ms: int
    base_is_dirty: bool
    """The checkout had changes that were not committed: the worktree does not have them."""
    included: tuple[str, ...] = ()
    """Ignored files that were copied into it when it was made; empty later on."""
    left_out: tuple[str, ...] = ()
    """Ignored files that were to be copied and were not, each with the reason; empty later on."""

    @property
    def branch(self) -> str:
        """The branch that it was made with."""
        return f"tiller/{self.id}"


class WorktreeStatus(Value, frozen=True, kw_only=True):
    """A worktree with what is in it now."""

    worktree: Worktree
    state: Literal["ready", "missing", "broken"]
    """`missing`: its folder is not there; `broken`: its repository cannot be used, see `problem`."""
    active: str | None = None
    """The session that works in it; None: none does."""
    changed_files: int = 0
    """Files with changes that are not committed, untracked ones included, ignored ones not."""
    own_commits: int = 0
    """Commits that no other ref reaches."""
    is_merged: bool = False
    """Everything in it was merged."""
    problem: str | None = None


class WorktreeChange(Value, frozen=True, kw_only=True):
    """A file that differs from the base commit."""

    path: str
    """From the top of the worktree, with slashes."""
    kind: Literal["added", "modified", "deleted"]
    old_text: str | None
    """None: there was none, or it is not text, or too large."""
    new_text: str | None
    is_text: bool
    """Whether both sides that are there are given as text."""
    old_blob: str | None
    """Hash of the content, for `Worktrees.contents`; None: there was none."""
    new_blob: str | None
    is_regular: bool
    """Whether both sides are regular files, not links."""
    is_executable: bool
    """Whether it is executable now."""


class MergedWorktree(Value, frozen=True, kw_only=True):
    """A finished merge; nothing was committed."""

    written: Sequence[str]
    """Files of the checkout that were written or deleted."""
    unchanged: Sequence[str]
    """Files that had the changes already."""
    kept_ref: str


class RemovedWorktree(Value, frozen=True, kw_only=True):
    """The remains of a removed worktree."""

    kept_ref: str
    kept_commit: str
    ignored: int
    """Ignored files and folders that were deleted with it; they are not kept."""
    leftover: Path | None
    """A folder that could not be deleted completely."""


class WorktreeOwners(Protocol):
    """Port that says who works in a worktree."""

    def this_process(self) -> str:
        """Return the identity of this process, for `active`. Blocking."""
        ...

    def active(self, folder: Path, *, owner: str, process: str, asking: str | None) -> str | None:
        """Return the session that works in a worktree, to be shown; None: none does. Blocking.

        Args:
            folder: The top folder of the worktree.
            owner: The session that it was made for.
            process: The answer of `this_process` when it was made.
            asking: A session that does not count as its owner, because it asks.
        """
        ...
