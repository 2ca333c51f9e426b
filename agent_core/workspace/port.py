"""The ports through which tools see files and start processes, wherever those are."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import Needs

FileSource = Literal["buffer", "disk"]
PathAccess = Literal["read", "write"]
NO_NEEDS: frozenset[Needs] = frozenset()
"""Containment as it is."""
READ_LIMIT_BYTES = 256 * 1024 * 1024
"""Larger files are not read whole."""


class FileText(Value, frozen=True, kw_only=True):
    """A text file as it is now, with what a later edit needs to be checked against it."""

    path: Path
    """Absolute, resolved."""
    text: str
    """Without a byte order mark; line endings as they are."""
    source: FileSource
    """Where the text came from: an editor's buffer (it may be unsaved) or the disk."""
    sha256: str
    """Of the bytes on disk, or of a buffer's text in UTF-8."""
    encoding: str = "utf-8"
    bom: bool = False
    version: int | None = None
    """The editor's version of the document; None on disk."""
    dirty: bool = False
    """A buffer that differs from the disk."""


class FileBytes(Value, frozen=True, kw_only=True):
    """A file that is no text."""

    path: Path
    data: bytes
    sha256: str


class FileStat(Value, frozen=True, kw_only=True):
    """Status of a path."""

    path: Path
    kind: Literal["file", "folder", "other"]
    size: int
    mtime_ns: int


class DirectoryEntry(Value, frozen=True, kw_only=True):
    """Something in a folder. A link counts as what it leads to."""

    name: str
    kind: Literal["file", "folder", "other", "missing"]
    """`missing`: a link that leads nowhere, or something that went away meanwhile."""
    size: int
    """In bytes; 0 for what is no file."""
    is_link: bool = False


class FileReader(Protocol):
    """A file opened for reading from its beginning; it stays the same file if its name comes to mean another."""

    @property
    def size(self) -> int:
        """In bytes, when it was opened."""
        ...

    async def read(self, limit: int) -> bytes:
        """Return the next bytes, at most so many; empty at the end."""
        ...


class Changes(Protocol):
    """Changes of a watched path."""

    async def next(self) -> frozenset[Path]:
        """Wait until something changed, and give the paths that did since this was last asked.

        A burst comes as one. The watched path itself stands for "look at everything anew".
        """
        ...


class WriteResult(Value, frozen=True, kw_only=True):
    """A write that has been verified."""

    path: Path
    sha256: str
    """Of what is there now."""
    source: FileSource
    """Where it landed."""
    saved: bool
    """Whether the disk holds it. False: it lies unsaved in the editor, and programs read the old file."""
    created: bool
    version: int | None = None
    changed_by_user: bool = False
    """The user typed elsewhere in the same document meanwhile; their text is kept."""
    note: str | None = None
    """Note for the model, in a sentence or two."""
    before: str | None = None
    """The text that the edit was applied to; None: that of `base`."""
    edited: str | None = None
    """Text that the edit produced, with the changes that others made since `base`; None: the requested text."""
    text: str | None = None
    """The whole text that is there now; None: the text that was asked for."""


class FileWrite(Value, frozen=True, kw_only=True):
    """One of several writes, as the arguments of `Files.write` have it."""

    path: Path
    text: str
    base: FileText | None


OnResult: TypeAlias = Callable[[FileWrite, WriteResult | WorkspaceError], Awaitable[None]]
"""Is told what became of a write."""


class Files(Protocol):
    """The files of a workspace.

    Every method raises a `WorkspaceError` whose text tells the model how to go on; nothing else, except
    cancellation. One writer per real path: writes to one file queue up.
    """

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Turn what a model wrote (`~`, `@`, `file://`, relative) into a real path inside the roots.

        For `read` an existing path is looked for, with the name variants of macOS; for `write` the target
        may be missing.

        Raises:
            PathRefused: It leads outside the roots, also by a link or `..`.
        """
        ...

    async def stat(self, path: Path) -> FileStat:
        """Return what a path is.

        Raises:
            FileMissing: Nothing there.
        """
        ...

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return what is in a folder, in no order, without `.` and `..`; also what is only in an editor.

        Raises:
            FileMissing: Nothing there.
            NotAFolder: A file or device.
            AccessRefused: The system says no.
        """
        ...

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a whole file: the editor's buffer when it is open there, else the disk.

        Raises:
            FileMissing: Nothing there.
            NotAFile: A folder or device.
            FileTooLarge: The file on disk has more bytes than asked for; `open` reads it in pieces.
            AccessRefused: The system says no.
        """
        ...

    def open(self, path: Path) -> AbstractAsyncContextManager[FileReader]:
        """Open a file to read its bytes in pieces: the disk's, or those of an editor's buffer in UTF-8.

        Entering raises what `read` raises, but for FileTooLarge.
        """
        ...

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Return the unsaved texts of editors at or below a path; programs do not see them.

        Without an editor there are none. Paths are real ones.
        """
        ...

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text, if the present content is still `base`; missing parent folders are created.

        The caller keeps line endings inside `text`; encoding and byte order mark are taken from `base`.

        Args:
            path: As `resolve` returned it.
            text: The new text without a byte order mark.
            base: The text as it was read before; None: the file must not exist.

        In an open document, the changes that its user made since `base` was read are kept: both changes are merged.

        Raises:
            StaleText: The file is not `base` any more; nothing was written.
            EditConflicted: The user changed the same lines in the editor; nothing was written.
            EditRefused: The editor refused; its text is as it was.
            EditUnverified: It is unknown whether the text was written.
        """
        ...

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several files, each as `write` does: a write that fails does not prevent the others.

        Files that one editor has open become one edit there, and so one step of undo, if that editor applies such an
        edit whole or not at all.

        Args:
            writes: Each of another file.
            on_result: Awaited once for each write, as soon as its outcome is known, in any order; for several at a time. On
                cancellation it is awaited for each write that was done until then, and for no other.
        """
        ...

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if what is there is still `base`; its folder stays.

        Raises:
            StaleText: The file is not `base` any more; it is still there.
            EditRefused: An editor has unsaved text of the user in it.
        """
        ...

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file; missing folders are created. Nothing is ever overwritten.

        Args:
            source: As `resolve` gave it for `write`; a file.
            target: As `resolve` gave it for `write`.

        Raises:
            FileMissing: Nothing at `source`.
            NotAFile: It is a folder or a device.
            StaleText: Something is at `target`.
            EditRefused: An editor has unsaved text of the user in it.
        """
        ...

    def watch(self, path: Path) -> AbstractAsyncContextManager[Changes]:
        """Watch a file, or what is directly in a folder, while the context is entered.

        Something may be reported more than once, or without having changed; nothing that changed is left out.

        Raises:
            FileMissing: Nothing there, on entering.
            AccessRefused: The system has no room for another watch.
        """
        ...


class ProcessEnd(Value, frozen=True, kw_only=True):
    """How a process ended."""

    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None = None


class KillReport(Value, frozen=True, kw_only=True):
    """Result of ending a process tree."""

    pids: tuple[int, ...]
    """Ended by us."""
    survivors: tuple[int, ...]
    """Still there after the last signal and the wait."""
    quarantined: tuple[Path, ...] = ()
    """Protected files that the processes had made where programs or agents obey them; moved away."""
    changed: tuple[Path, ...] = ()
    """Files of the workspace that are others than before they ran, as far as somebody looked."""
    unseen: str | None = None
    """Part of those changes that could not be observed, in a sentence."""
    denied: tuple[str, ...] = ()
    """Operations that containment denied, a sentence each for the model, with what to do."""


class Process(Protocol):
    """A running process with its descendants; output and errors are one stream, in order."""

    @property
    def pid(self) -> int:
        """The process id of its first process, also its process group."""
        ...

    async def read(self) -> bytes:
        """Wait for output and give a chunk; empty when every writer has closed it."""
        ...

    async def wait(self) -> ProcessEnd:
        """Wait for the first process to end; its children may live on."""
        ...

    async def end(self, *, grace_s: float) -> KillReport:
        """End the whole tree, `setsid` children included: asked first, killed after the grace. Idempotent."""
        ...


class Processes(Protocol):
    """Starts processes inside the workspace."""

    async def start(
        self,
        argv: tuple[str, ...],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: bytes = b"",
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> Process:
        """Start a process in a group of its own, with all of its input.

        `env` is the whole environment; containment takes out of it what a process must not see. `needs` is what was
        agreed to beyond containment. The caller must `end` it, on every path out.

        Raises:
            FileMissing: The program or the folder is not there.
            AccessRefused: It cannot be started.
        """
        ...

    async def before_start(self) -> str | None:
        """Get unsaved edits to the disk where possible; give a sentence for the model if the disk is stale."""
        ...


class Workspace(Value, frozen=True, kw_only=True):
    """Where a session works."""

    roots: Sequence[Path]
    """Absolute and resolved; the first is the primary one, where relative paths and commands start. Others may be added
    and removed: a caller that needs the same roots twice copies them into a tuple.
    """
    files: Files
    processes: Processes
    env: Mapping[str, str]
    """The whole environment for processes, less what is secret."""
    users_processes: Processes | None = None
    """Starts what the user types themselves: as they would in a terminal, not contained; None: as `processes` does."""
    address: str | None = None
    """Address of a workspace whose files and programs are not on this machine; None: they are, as far as is known."""

    @property
    def root(self) -> Path:
        """The primary root."""
        return self.roots[0]
