"""What a session changes: every write of a tool is told, and counted once it is verified."""

import difflib
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Literal

from agent_core.events import (
    ChangeCounts,
    ChangesUpdated,
    DocumentChange,
    EditApplied,
    EditConflict,
    EditRejected,
    Event,
)
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    PathRefused,
    StaleText,
    WorkspaceError,
)
from agent_core.workspace import (
    READ_LIMIT_BYTES,
    Access,
    Changes,
    Entry,
    FileBytes,
    FileReader,
    Files,
    FileStat,
    FileText,
    Written,
)

EXACT_LINES = 1_000
"""Up to here changed lines are aligned to be counted; beyond, a line that only moved is not counted, which takes no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file as it was before the run's first edit and as it is after the last."""

    path: Path
    op: Literal["add", "modify"]
    before: str
    after: str
    sha256_before: str | None
    sha256_after: str
    saved: bool

    def patch(self, name: str) -> str:
        """Give a unified diff under the given name; empty when nothing differs."""
        old = "/dev/null" if self.op == "add" else f"a/{name}"
        lines = difflib.unified_diff(
            _lines(self.before),
            _lines(self.after),
            old,
            f"b/{name}",
        )
        return "".join(_with_newline(line) for line in lines)


class Ledger:
    """The changes of one run, by file."""

    def __init__(self) -> None:
        self._changes: dict[Path, FileChange] = {}
        self._lines: dict[Path, tuple[int, int]] = {}

    def add(self, written: Written, text: str, base: FileText | None) -> None:
        """Take a verified write in."""
        first = self._changes.get(written.path)
        change = FileChange(
            path=written.path,
            op=first.op if first else ("add" if written.created else "modify"),
            before=first.before if first else (base.text if base else ""),
            after=text,
            sha256_before=first.sha256_before if first else (base.sha256 if base else None),
            sha256_after=written.sha256,
            saved=written.saved,
        )
        self._changes[written.path] = change
        self._lines[written.path] = _line_counts(change.before, change.after)

    def changes(self) -> tuple[FileChange, ...]:
        """Give the files that differ from before the run, in the order of their first edit."""
        return tuple(
            change
            for change in self._changes.values()
            if change.before != change.after or change.op == "add"
        )

    def counts(self) -> ChangeCounts:
        """Count files and lines."""
        changes = self.changes()
        added = deleted = 0
        for change in changes:
            plus, minus = self._lines[change.path]
            added += plus
            deleted += minus
        return ChangeCounts(
            files=len(changes), additions=added, deletions=deleted, unreviewed=len(changes)
        )


class RecordedFiles:
    """The files of a workspace as one tool call sees them: reads pass, writes are told and counted."""

    def __init__(
        self,
        files: Files,
        ledger: Ledger,
        *,
        run: RunId,
        call: ToolCallId,
        emit: Callable[[Event], object],
        new_id: Callable[[], str],
    ) -> None:
        self._files = files
        self._ledger = ledger
        self._run = run
        self._call = call
        self._emit = emit
        self._new_id = new_id

    async def resolve(self, path: str, access: Access) -> Path:
        """Pass on."""
        return await self._files.resolve(path, access)

    async def stat(self, path: Path) -> FileStat:
        """Pass on."""
        return await self._files.stat(path)

    async def list(self, path: Path) -> tuple[Entry, ...]:
        """Pass on."""
        return await self._files.list(path)

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Pass on."""
        return await self._files.read(path, limit_bytes=limit_bytes)

    def open(self, path: Path) -> AbstractAsyncContextManager[FileReader]:
        """Pass on."""
        return self._files.open(path)

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Pass on."""
        return await self._files.buffers(folder)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Pass on."""
        await self._files.delete(path, base=base)

    async def move(self, source: Path, target: Path) -> None:
        """Pass on."""
        await self._files.move(source, target)

    def watch(self, path: Path) -> AbstractAsyncContextManager[Changes]:
        """Pass on."""
        return self._files.watch(path)

    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        """Write, then tell what became of it before the tool goes on."""
        edit = self._new_id()
        try:
            written = await self._files.write(path, text, base=base)
        except WorkspaceError as error:
            self._refused(edit, path, error)
            raise
        self._ledger.add(written, text, base)
        change = DocumentChange(
            path=written.path,
            status="applied",
            saved=written.saved,
            version=written.version,
            sha256=written.sha256,
            why=written.note,
        )
        self._emit(EditApplied(run=self._run, edit=edit, call=self._call, documents=(change,)))
        counts = self._ledger.counts()
        self._emit(
            ChangesUpdated(
                run=self._run,
                files=counts.files,
                additions=counts.additions,
                deletions=counts.deletions,
                unreviewed=counts.unreviewed,
            )
        )
        return written

    def _refused(self, edit: str, path: Path, error: WorkspaceError) -> None:
        why = str(error)
        match error:
            case StaleText():
                event: Event = self._conflict(
                    edit, DocumentChange(path=path, status="stale", why=why)
                )
            case EditUnverified():
                event = self._conflict(
                    edit, DocumentChange(path=path, status="unverified", why=why)
                )
            case EditRefused() | PathRefused():
                documents = (DocumentChange(path=path, status="refused", why=why),)
                event = EditRejected(run=self._run, edit=edit, call=self._call, documents=documents)
            case _:
                documents = (DocumentChange(path=path, status="failed", why=why),)
                event = EditRejected(run=self._run, edit=edit, call=self._call, documents=documents)
        self._emit(event)

    def _conflict(self, edit: str, change: DocumentChange) -> EditConflict:
        return EditConflict(run=self._run, edit=edit, call=self._call, documents=(change,))


def _line_counts(before: str, after: str) -> tuple[int, int]:
    """Count added and deleted lines; the common head and tail are cut off first, which keeps it fast."""
    old, new = _lines(before), _lines(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    most = min(len(old), len(new)) - head
    while tail < most and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) + len(new) > EXACT_LINES:
        # difflib's time grows with the square, and this runs at every write.
        same = (Counter(old) & Counter(new)).total()
    else:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        same = sum(size for _, _, size in matcher.get_matching_blocks())
    return len(new) - same, len(old) - same


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, as patches do; `splitlines` would also split at form feeds and the like."""
    return list(StringIO(text, newline="\n"))


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
