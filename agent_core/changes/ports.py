"""The ports of changes: contents of changed files, files by bytes, and detection of what commands change."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from agent_core.changes.values import FileVersion
from agent_core.kernel.values import Value
from agent_core.workspace import FileBytes, FileText


class ByteFiles(Protocol):
    """Writes whole files of a workspace as bytes, on disk only; files open in an editor are written through `Files`."""

    async def put_bytes(
        self, path: Path, data: bytes, *, base: FileText | FileBytes | None
    ) -> None:
        """Write a file, if what is on the disk is still `base`; missing parent folders are made.

        Raises:
            StaleText: The file is not `base` any more, or None was given and something is there; nothing was written.
            WorkspaceError: It cannot be written.
        """
        ...


class DetectedChange(Value, frozen=True, kw_only=True):
    """A file that is another one after a command."""

    path: Path
    source: Path | None = None
    """Where it was, if it has another name now and holds what it held."""
    before: FileVersion | None
    """None: there was nothing. Without `content` nobody knows what it held."""
    after: FileVersion | None


class DetectedChanges(Value, frozen=True, kw_only=True):
    """Detected differences after a command."""

    files: Sequence[DetectedChange] = ()
    lost: Sequence[DetectedChange] = ()
    """Deleted files and whole folders that git ignores; their content is unknown."""
    incomplete: str | None = None
    """Description of undetected or omitted changes, in sentences; None: nothing is missing."""


class ChangeDetector(Protocol):
    """Looks at a workspace before and after a command.

    It cannot know who changed a file in between: a person who saves meanwhile is taken for the command.
    """

    async def prepare(self) -> None:
        """Look for the first time, if nobody has: of a large workspace it takes a moment. Fails never."""
        ...

    async def snapshot(self) -> None:
        """Record what is there, and of what it holds as far as that is cheap. Fails never."""
        ...

    async def diff(self) -> DetectedChanges:
        """Return what is different since `before`. Fails never."""
        ...

    def close(self) -> None:
        """Release the resources of the operating system. Idempotent."""
        ...
