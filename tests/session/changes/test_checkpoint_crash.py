"""After a crash between contents, files and the session's file, what can be taken back is true, or less."""

from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import FolderBlobStore
from agent_core.kernel import SessionId
from agent_core.kernel.errors import CheckpointConflict
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript.entries import Header
from tests.support.harness.clock import FakeClock
from tests.support.workspace.file_tools import ROOT, Desk, desk

FIRST = {"a.txt": "1\n2\n3\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"}
LAST = {"a.txt": "one\n2\nthree\n", "moved.txt": "B\n", "d.txt": "d\n", "new.txt": "n\n"}


class Machine:
    """A disk that a session wrote to, as it is found after its end."""

    def __init__(self, folder: Path) -> None:
        self.blobs = folder / "blobs"
        self.store = JsonlStore(folder / "sessions", FakeClock())
        self.file = folder
        self.content = b""

    async def write(self) -> None:
        """Let a session do its work."""
        header = Header(id=SessionId("s-1"), at_ms=1, cwd=str(ROOT))
        log = await self.store.create(header)
        opened = OpenedSession(log=log, entries=(), recovery=Recovery())
        async with desk(FIRST, contents=FolderBlobStore(self.blobs), opened=opened) as d:
            await d.run(("write", "a.txt", "one\n2\n3\n"), ("move", "b.txt", "moved.txt"))
            await d.run(
                ("write", "moved.txt", "B\n"),
                ("delete", "c.txt"),
                ("make", "new.txt", "n\n"),
                ("write", "a.txt", "one\n2\nthree\n"),
            )
            assert d.texts() == LAST
            assert log.location is not None
            self.file = log.location
        self.content = await to_thread.run_sync(self.file.read_bytes)

    async def opens(self, content: bytes, check: Callable[[Desk], object]) -> None:
        """Open what is left of the session, above the files as they were at the very end."""
        await to_thread.run_sync(self.file.write_bytes, content)
        opened = await self.store.open(SessionId("s-1"))
        async with desk(LAST, contents=FolderBlobStore(self.blobs), opened=opened) as d:
            await _restores_all(d)
            check(d)


async def _restores_all(d: Desk) -> None:
    """Go back as far as can be; every file is then as it was at the beginning, or was left alone."""
    if not d.session.checkpoints.all:
        return
    checkpoint = d.session.checkpoints.all[0].checkpoint
    shown = await d.session.checkpoints.preview(checkpoint)
    assert d.texts() == LAST
    try:
        done = await d.session.checkpoints.restore(checkpoint)
    except CheckpointConflict:
        assert d.texts() == LAST
        return
    now = d.texts()
    restored = {path.name for path in done.restored}
    assert {name: now.get(name) for name in restored} == {
        name: FIRST.get(name) for name in restored
    }
    left = (LAST.keys() | FIRST.keys()) - restored
    assert {name: now.get(name) for name in left} == {name: LAST.get(name) for name in left}
    said = {one.path.name for one in shown if one.status != "same"}
    assert said == restored | {one.path.name for one in done.skipped}
    _ = await d.session.checkpoints.restore(done.undo)
    assert d.texts() == LAST


async def test_a_session_file_that_ends_after_any_line_takes_back_what_it_knows(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    await machine.write()
    lines = machine.content.splitlines(keepends=True)
    counts: list[int] = []
    for end in range(1, len(lines) + 1):
        await machine.opens(
            b"".join(lines[:end]), lambda d: counts.append(len(d.session.checkpoints.all))
        )
    assert counts[-1] >= 2
    assert counts[0] == 0


async def test_a_damaged_line_hides_only_its_change(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    await machine.write()
    lines = machine.content.splitlines(keepends=True)
    ours = [at for at, line in enumerate(lines) if b'"tiller.change"' in line]
    assert len(ours) == 6
    for at in ours:
        broken = [*lines[:at], b"{" + lines[at], *lines[at + 1 :]]
        await machine.opens(b"".join(broken), lambda _: None)


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
async def test_a_content_that_is_gone_or_damaged_is_never_put_back(
    tmp_path: Path, damage: str
) -> None:
    machine = Machine(tmp_path)
    await machine.write()
    kept = sorted(path for path in machine.blobs.rglob("*") if path.is_file())
    assert len(kept) >= 7
    for path in kept:
        data = await to_thread.run_sync(path.read_bytes)
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(data[:-1] if damage == "cut" else b"x" * len(data))
        await machine.opens(machine.content, lambda _: None)
        path.write_bytes(data)
