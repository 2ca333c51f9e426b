"""The recorder on a disk: bodies come and go with the context, a disk that fails is tried again, entries last."""

import gc
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import Struct

from agent_core.events import ErrorRaised, Notice
from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.errors import StorageError, StorageUnavailable
from agent_core.session.context import SessionOptions
from agent_core.session.history.entries import EntryFactory
from agent_core.session.history.recorder import TRY_AGAIN_S, Durability, Recorder
from agent_core.storage import OpenedSession, Recovery, SessionLog, SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.storage.port import SessionAttachments
from agent_core.transcript import AnyEntry, ColdEntry, Header, Transcript, WholeEntry
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import assistant, chain, compaction, entry, header, user
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import Hold


class Log:
    """A log whose disk fails when told to, and which counts."""

    def __init__(self, inner: SessionLog) -> None:
        self._inner = inner
        self.full = False
        self.appends = 0
        self.syncs = 0

    @property
    def header(self) -> Header:
        return self._inner.header

    @property
    def location(self) -> Path | None:
        return self._inner.location

    @property
    def attachments(self) -> SessionAttachments | None:
        return self._inner.attachments

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        self.appends += 1
        if self.full:
            raise StorageUnavailable("no space left on device; free some and go on")
        await self._inner.append(entries)

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        return self._inner.cool(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        return await self._inner.load(entries)

    async def sync(self) -> None:
        self.syncs += 1
        await self._inner.sync()

    async def close(self) -> None:
        await self._inner.close()


class News:
    """What was heard of the disk."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def failed(self, error: StorageError, /) -> None:
        self.heard.append(str(error))

    def works_again(self, entries: int, /) -> None:
        self.heard.append(entries)


class Desk:
    """A recorder with all that it needs."""

    def __init__(self, log: Log, durability: Durability = "run") -> None:
        self.log = log
        self.news = News()
        self.clock = FakeClock()
        self.transcript = Transcript()
        self.recorder = Recorder(
            log, self.transcript, clock=self.clock, news=self.news, durability=durability
        )

    def cold(self) -> list[str]:
        return [one.id for one in self.transcript.entries if isinstance(one, ColdEntry)]


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    return JsonlStore(tmp_path, FakeClock()) if request.param == "files" else MemoryStore()


async def test_bodies_leave_with_a_compaction_and_come_back_when_the_leaf_moves(
    store: SessionStore,
) -> None:
    desk = Desk(Log(await store.create(header())))
    said = chain(user("1"), assistant("2"), user("3"), assistant("4"))
    summary = compaction("c", parent="e4", first_kept="e3")
    _ = await desk.recorder.keep(*map(_as_it_is, said))
    assert desk.cold() == []
    _ = await desk.recorder.keep(_as_it_is(summary))
    on_disk = ["e1", "e2"] if desk.log.location else []
    assert desk.cold() == on_disk
    assert await desk.recorder.load(desk.recorder.path()) == (*said, summary)
    await desk.recorder.move(EntryId("e2"))
    assert desk.recorder.path() == tuple(said[:2])
    assert desk.recorder.context() == (said[0].message, said[1].message)
    assert desk.cold() == (["e3", "e4", "c"] if on_disk else [])
    branch = entry("b", user("b"), parent="e2")
    _ = await desk.recorder.keep(_as_it_is(branch))
    await desk.recorder.move(EntryId("c"))
    assert desk.recorder.path()[2:] == (*said[2:], summary)
    assert desk.cold() == (["e1", "e2", "b"] if on_disk else [])
    await desk.recorder.move(None)
    assert desk.recorder.path() == ()
    await desk.recorder.close()


async def test_a_leaf_that_does_not_exist_changes_nothing(store: SessionStore) -> None:
    desk = Desk(Log(await store.create(header())))
    said = chain(user("1"), assistant("2"))
    _ = await desk.recorder.keep(*map(_as_it_is, said))
    with pytest.raises(ValueError, match="no entry 'nope'"):
        await desk.recorder.move(EntryId("nope"))
    assert desk.recorder.path() == tuple(said)
    await desk.recorder.close()


async def test_a_body_that_cannot_be_read_back_leaves_the_leaf_where_it_was(
    tmp_path: Path,
) -> None:
    desk = Desk(Log(await JsonlStore(tmp_path, FakeClock()).create(header())))
    said = [*chain(user("1"), user("2")), compaction("c", parent="e2", first_kept="c")]
    _ = await desk.recorder.keep(*map(_as_it_is, said))
    assert desk.log.location is not None
    content = desk.log.location.read_bytes()
    desk.log.location.write_bytes(content.replace(b'"e1"', b'"x1"'))
    with pytest.raises(StorageUnavailable):
        await desk.recorder.move(EntryId("e2"))
    assert desk.transcript.leaf == "c"
    await desk.recorder.close()


async def test_nothing_is_let_go_while_the_disk_fails(tmp_path: Path) -> None:
    desk = Desk(Log(await JsonlStore(tmp_path, FakeClock()).create(header())))
    said = chain(user("1"), user("2"))
    _ = await desk.recorder.keep(*map(_as_it_is, said))
    desk.log.full = True
    _ = await desk.recorder.keep(_as_it_is(compaction("c", parent="e2", first_kept="c")))
    assert desk.cold() == []
    desk.log.full = False
    await desk.recorder.close()


async def test_a_disk_that_failed_is_tried_again_until_it_works(store: SessionStore) -> None:
    desk = Desk(Log(await store.create(header())))
    _ = await desk.recorder.keep(_as_it_is(chain(user("1"))[0]))
    async with anyio.create_task_group() as group:
        group.start_soon(desk.recorder.keep_trying)
        desk.log.full = True
        for number in (2, 3):
            said = entry(f"e{number}", user(str(number)), parent=f"e{number - 1}")
            _ = await desk.recorder.keep(_as_it_is(said))
        tried = desk.log.appends
        with anyio.fail_after(5):
            while desk.log.appends < tried + 3:
                await anyio.lowlevel.checkpoint()
            assert desk.recorder.unsaved == 2
            desk.log.full = False
            while desk.recorder.unsaved:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert set(desk.clock.slept) == {TRY_AGAIN_S}
    # Told at each failure of something new, not at each try, and once when all is well.
    full = "no space left on device; free some and go on"
    assert desk.news.heard == [full, full, 2]
    stored = await store.read(SessionId("s1"))
    assert [one.id for one in stored.entries] == ["e1", "e2", "e3"]
    await desk.recorder.close()


async def test_a_session_says_when_what_waited_for_the_disk_is_saved() -> None:
    log = Log(await MemoryStore().create(header()))
    opened = OpenedSession(log=log, entries=(), recovery=Recovery())
    hold = Hold(kind="read")
    model = ScriptedModel([call("hold"), say("done")])
    async with bench(model, opened=opened, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        log.full = True
        hold.release.set()
        await b.until(ErrorRaised)
        log.full = False
        notice = await b.until(Notice)
        assert isinstance(notice, Notice)
        assert notice.level == "info"
        assert "saved again" in notice.text
        assert b.session.info.snapshot().unsaved == 0
        await b.idle()


@pytest.mark.parametrize(("durability", "more"), [("run", 0), ("entry", 3)])
async def test_entries_are_forced_to_the_disk_as_the_setting_says(
    store: SessionStore, durability: Durability, more: int
) -> None:
    desk = Desk(Log(await store.create(header())), durability)
    for one in chain(user("1"), assistant("2")):
        _ = await desk.recorder.accept(_as_it_is(one))
    _ = await desk.recorder.keep(_as_it_is(entry("e3", user("3"), parent="e2")))
    assert desk.log.syncs == more
    await desk.recorder.close()


def test_entries_are_forced_to_the_disk_with_runs_unless_it_is_said_otherwise() -> None:
    assert SessionOptions().durability == "run"


def _as_it_is(given: AnyEntry) -> EntryFactory:
    """Draft an entry that is made already."""
    return lambda _entry, _parent, _at_ms: given


async def test_no_message_that_was_shown_before_a_compaction_stays_in_memory(
    tmp_path: Path,
) -> None:
    desk = Desk(Log(await JsonlStore(tmp_path, FakeClock()).create(header())))
    messages = [user("1"), assistant("2"), user("3"), assistant("4")]
    _ = await desk.recorder.keep(*map(_as_it_is, chain(*messages)))
    assert desk.recorder.context() == tuple(messages)
    _ = await desk.recorder.keep(_as_it_is(compaction("c", parent="e4", first_kept="e3")))
    first = messages.pop(0)
    assert desk.transcript.path()[0].id == "e1"
    holders = [one for one in gc.get_referrers(first) if isinstance(one, tuple | list | Struct)]
    assert holders == []
    assert len(desk.recorder.context()) == 3
