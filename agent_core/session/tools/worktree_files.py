"""Files that differ in a worktree, and what the file of the workspace is to have after a merge: pure."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from agent_core.changes import FileVersion
from agent_core.changes.hunks import FileReview, HunkOrigin, Hunks, edited_by_agent, revert_hunks
from agent_core.kernel.values import Value
from agent_core.workspace import FileBytes, FileText
from agent_core.workspace.diff.merge import merge
from agent_core.workspace.files.text import encode_text, sha256_of
from agent_core.workspace.git.worktrees.values import WorktreeChange

Found: TypeAlias = FileText | FileBytes | None
Goal: TypeAlias = str | bytes | None
"""Content of a file; None: there is none."""


class ChangesExcluded(Exception):
    """The file of the workspace was changed in a way that excludes the change."""


class WorktreeFile(Value, frozen=True, kw_only=True):
    """A file that differs from the base commit of a worktree, or a part of its changes."""

    name: str
    """From the top of the repository."""
    review: FileReview
    """Its path is that of the file in the workspace."""
    old: Goal
    """Content in the base commit."""
    new: Goal
    """Content in the worktree."""
    is_regular: bool
    is_executable: bool

    def part(self, hunks: Collection[str], files: Collection[Path]) -> "WorktreeFile | None":
        """Return it with the chosen hunks only; None: nothing of it was chosen."""
        left = {one.id for one in self.review.hunks}.difference(hunks)
        if self.review.path in files or (self.review.hunks and not left):
            return self
        if not isinstance(self.new, str) or len(left) == len(self.review.hunks):
            return None
        text, _ = revert_hunks(self.new, self.review.hunks, left)
        return replace(self, new=text)

    def goal(self, found: Found) -> Goal:
        """Return what the file of the workspace is to have.

        Raises:
            ChangesExcluded: It was changed in a way that excludes the change.
        """
        if isinstance(self.old, str) and isinstance(self.new, str) and isinstance(found, FileText):
            return _merged(self.old, self.new, found.text)
        as_text = isinstance(self.old, str) or isinstance(self.new, str)
        now = found.text if as_text and isinstance(found, FileText) else _bytes_of(found)
        if now not in (self.old, self.new):
            raise ChangesExcluded
        return self.new


def has_content(found: Found, content: Goal) -> bool:
    """Return whether a file of the workspace holds a content already."""
    if found is None or content is None:
        return found is content
    if isinstance(content, str):
        return isinstance(found, FileText) and found.text == content
    is_unsaved = isinstance(found, FileText) and found.dirty
    return not is_unsaved and _bytes_of(found) == content


def compare(
    change: WorktreeChange, blobs: Mapping[str, bytes], *, path: Path, of: str
) -> WorktreeFile:
    """Return a change of a worktree with its hunks.

    Args:
        change: The change.
        blobs: Contents by hash, for files that are not text.
        path: The file in the workspace.
        of: Id of the worktree.
    """
    old, new = (
        _content(change.old_text, change.old_blob, blobs),
        _content(change.new_text, change.new_blob, blobs),
    )
    hunks: Hunks = ()
    if change.is_text:
        maker = HunkOrigin(change=f"{of}/{change.path}", edit="", run=None, call=None, index=0)
        hunks = edited_by_agent((), change.old_text or "", change.new_text or "", maker)
    review = FileReview(
        path=path,
        origin=None if old is None else path,
        first=_version(old),
        last=_version(new),
        text=change.new_text or "" if change.is_text else None,
        hunks=hunks,
        whole=None if hunks else "pending",
    )
    return WorktreeFile(
        name=change.path,
        review=review,
        old=old,
        new=new,
        is_regular=change.is_regular,
        is_executable=change.is_executable,
    )


def _content(text: str | None, blob: str | None, blobs: Mapping[str, bytes]) -> Goal:
    return text if text is not None or blob is None else blobs[blob]


def _version(content: Goal) -> FileVersion | None:
    if content is None:
        return None
    data = content.encode() if isinstance(content, str) else content
    return FileVersion(
        sha256=sha256_of(data), content=None, size=len(data), is_text=isinstance(content, str)
    )


def _merged(old: str, new: str, now: str) -> str:
    if "\r\n" in now and "\r\n" not in old:
        # Git converted the line ends of the worktree.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    result = merge(old, new, now)
    if result.conflicts:
        raise ChangesExcluded
    return result.text


def _bytes_of(found: Found) -> Goal:
    if found is None:
        return None
    if isinstance(found, FileBytes):
        return found.data
    if found.dirty:
        raise ChangesExcluded
    return encode_text(found.text, encoding=found.encoding, bom=found.bom)
