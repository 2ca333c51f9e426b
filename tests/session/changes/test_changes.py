"""Every write is kept and told, whatever became of it."""

from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from agent_core.changes import Change
from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.values import text_of
from agent_core.events import (
    ChangeCounts,
    ChangesUpdated,
    DocumentChange,
    EditApplied,
    EditConflict,
    EditRejected,
    Event,
)
from agent_core.kernel import RunId, SessionId, ToolCallId
from agent_core.kernel.errors import (
    AccessRefused,
    EditRefused,
    EditUnverified,
    FileMissing,
    NotAFile,
    NotText,
    PathRefused,
    StaleText,
    StorageUnavailable,
    WorkspaceError,
)
from agent_core.session.changes.record import ChangeOrigin, ChangeRecord, RecordedFiles
from agent_core.session.history.recorder import Recorder
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import Header, Transcript
from agent_core.workspace import FileBytes, FileText, FileWrite, WriteResult
from agent_core.workspace.files.text import sha256_of
from tests.support.harness.clock import FakeClock
from tests.support.session.held_log import NoDiskFailures
from tests.support.workspace.memory_files import MemoryFiles

ROOT = Path("/w")
A = ROOT / "a.py"
RUN, CALL = RunId("r"), ToolCallId("c")


def sha(text: str) -> str:
    return sha256_of(text.encode())


def base(text: str, path: Path = A) -> FileText:
    return FileText(path=path, text=text, source="disk", sha256=sha(text))


def in_memory(**files: bytes) -> MemoryFiles:
    return MemoryFiles(
        (ROOT,),
        Path("/home/user"),
        files={ROOT / f"{name}.py": data for name, data in files.items()},
    )


class Refusing(MemoryFiles):
    """Files whose writes fail as the test says."""

    def __init__(self, error: WorkspaceError) -> None:
        super().__init__((ROOT,), Path("/home/user"), files={A: b"old\n"})
        self._error = error

    @override
    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        raise self._error

    @override
    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        raise self._error

    @override
    async def move(self, source: Path, target: Path) -> None:
        raise self._error


class Typing(MemoryFiles):
    """Files in which somebody types while they are edited, as an editor's buffer tells it."""

    def __init__(self, before: str, edited: str, text: str) -> None:
        super().__init__((ROOT,), Path("/home/user"), files={A: b"old\n"})
        self._told = (before, edited, text)

    @override
    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        before, edited, there = self._told
        return WriteResult(
            path=path, sha256=sha(there), source="buffer", saved=False, created=False, version=7,
            changed_by_user=True, before=before, edited=edited, text=there,
        )  # fmt: skip


class Full(MemoryBlobStore):
    """Keeps nothing."""

    @override
    async def put(self, data: bytes) -> str:
        raise StorageUnavailable("full")


async def recorded(
    files: MemoryFiles, contents: MemoryBlobStore | None = None
) -> tuple[RecordedFiles, ChangeRecord, list[Event]]:
    told: list[Event] = []
    clock = FakeClock()
    log = await MemoryStore().create(Header(id=SessionId("s"), at_ms=0, cwd="/w"))
    record = ChangeRecord(
        Recorder(log, Transcript(()), clock=clock, news=NoDiskFailures()),
        contents or MemoryBlobStore(),
        publish=told.append,
        current_run=lambda: RUN,
    )
    author = ChangeOrigin(edit="e1", run=RUN, call=CALL)
    made = RecordedFiles(files, record, author=author, publish=told.append, now_ms=lambda: 5)
    return made, record, told


async def kept(record: ChangeRecord, change: Change) -> tuple[str | None, str | None]:
    """Give the texts that were kept of a change."""
    found: list[str | None] = []
    for version in (change.before, change.after):
        data = None if version is None else await record.contents.get(version.content or "")
        found.append(None if version is None or data is None else text_of(version, data))
    return found[0], found[1]


async def test_of_several_writes_each_is_kept_and_told_before_it_is_heard() -> None:
    files, record, told = await recorded(in_memory(a=b"old\n", b=b"old\n"))
    heard: list[tuple[str, int]] = []

    async def hear(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
        heard.append((type(outcome).__name__, len(record.log)))

    stale = base("older\n", ROOT / "b.py")
    writes = (
        FileWrite(path=A, text="new\n", base=base("old\n")),
        FileWrite(path=ROOT / "b.py", text="new\n", base=stale),
    )
    await files.write_all(writes, on_result=hear)
    assert heard == [("WriteResult", 1), ("StaleText", 1)]
    assert [type(one).__name__ for one in told] == ["EditApplied", "ChangesUpdated", "EditConflict"]


async def test_a_write_is_told_and_counted_before_the_tool_goes_on() -> None:
    files, record, told = await recorded(in_memory(a=b"old\n"))
    path = await files.resolve("a.py", "write")
    read = await files.read(path)
    assert isinstance(read, FileText)
    assert (await files.stat(path)).size == 4
    assert told == []
    await files.write(path, "new\n", base=read)
    change = DocumentChange(path=A, status="applied", saved=True, sha256=sha("new\n"))
    assert told == [
        EditApplied(run=RUN, edit="e1", call=CALL, documents=(change,)),
        ChangesUpdated(run=RUN, files=1, additions=1, deletions=1, unreviewed=1),
    ]
    (entry,) = record.log.all
    assert (entry.op, entry.by, entry.at_ms, entry.run, entry.call) == ("modify", "tool", 5, RUN, CALL)  # fmt: skip
    assert await kept(record, entry) == ("old\n", "new\n")


async def test_only_what_the_agent_did_is_its_change() -> None:
    typed = Typing("old\nuser\n", "new\nuser\n", "new\nuser\nmore\n")
    files, record, told = await recorded(typed)
    await files.write(A, "new\n", base=base("old\n"))
    (change,) = record.log.all
    assert await kept(record, change) == ("old\nuser\n", "new\nuser\n")
    assert change.after is not None
    assert (change.after.sha256, change.after.saved) == (sha("new\nuser\n"), False)
    assert isinstance(told[0], EditApplied)
    assert told[0].documents[0].sha256 == sha("new\nuser\nmore\n")
    assert record.counts == ChangeCounts(files=1, additions=1, deletions=1, unreviewed=1)


async def test_a_write_of_what_is_there_is_no_change() -> None:
    files, record, told = await recorded(in_memory(a=b"old\n"))
    await files.write(A, "old\n", base=base("old\n"))
    assert len(record.log) == 0
    assert [type(one) for one in told] == [EditApplied, ChangesUpdated]


async def test_an_empty_new_file_counts_as_a_file() -> None:
    files, record, _ = await recorded(in_memory())
    await files.write(A, "", base=None)
    assert record.counts == ChangeCounts(files=1, additions=0, deletions=0, unreviewed=1)


async def test_two_edits_that_cancel_change_nothing() -> None:
    files, record, _ = await recorded(in_memory(a=b"a\n"))
    await files.write(A, "b\n", base=base("a\n"))
    await files.write(A, "a\n", base=base("b\n"))
    assert record.counts == ChangeCounts()
    assert len(record.log) == 2


async def test_what_cannot_be_kept_was_changed_all_the_same() -> None:
    files, record, told = await recorded(in_memory(a=b"old\n"), Full())
    await files.write(A, "new\n", base=base("old\n"))
    (change,) = record.log.all
    assert change.before is not None
    assert change.after is not None
    assert (change.before.content, change.after.content) == (None, None)
    assert [type(one) for one in told] == [EditApplied, ChangesUpdated]
    assert (await record.files())[0].pending().unreviewed == 1


async def test_deletions_and_moves_are_changes_too() -> None:
    files, record, told = await recorded(in_memory(a=b"a\n", b=b"\0\1"))
    found = await files.read(ROOT / "b.py")
    await files.delete(ROOT / "b.py", base=found)
    await files.move(A, ROOT / "c.py")
    assert [(one.op, one.path.name, one.source) for one in record.log.all] == [
        ("delete", "b.py", None),
        ("move", "c.py", A),
    ]
    assert [one.documents[0].path.name for one in told if isinstance(one, EditApplied)] == [
        "b.py",
        "c.py",
    ]
    assert record.counts == ChangeCounts(files=2, unreviewed=2)


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (StaleText("stale"), EditConflict, "stale"),
        (EditUnverified("who knows"), EditConflict, "unverified"),
        (EditRefused("no"), EditRejected, "refused"),
        (PathRefused("outside"), EditRejected, "refused"),
        (AccessRefused("read-only"), EditRejected, "failed"),
        (NotAFile("a folder"), EditRejected, "failed"),
        (FileMissing("gone"), EditRejected, "failed"),
        (NotText("binary"), EditRejected, "failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
@pytest.mark.parametrize("verb", ["write", "delete", "move"])
async def test_what_did_not_land_is_told_raised_and_not_counted(
    verb: str, error: WorkspaceError, kind: type[EditConflict | EditRejected], status: Any
) -> None:
    files, record, told = await recorded(Refusing(error))
    steps = {
        "write": lambda: files.write(A, "new\n", base=base("old\n")),
        "delete": lambda: files.delete(A, base=base("old\n")),
        "move": lambda: files.move(A, ROOT / "b.py"),
    }
    with pytest.raises(type(error)) as raised:
        await steps[verb]()
    assert raised.value is error
    change = DocumentChange(path=A, status=status, why=str(error))
    assert told == [kind(run=RUN, edit="e1", call=CALL, documents=(change,))]
    assert record.counts == ChangeCounts()
    assert len(record.log) == 0
