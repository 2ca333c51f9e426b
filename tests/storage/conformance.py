"""What every session store must do; a test class inherits this and gives the store."""

from dataclasses import replace

import anyio
import pytest

from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.errors import SessionClosed, SessionLocked, SessionNotFound
from agent_core.storage import Recovery, SessionStore
from agent_core.transcript import (
    AnyEntry,
    ModelChange,
    SessionNameEntry,
    UnknownEntry,
)
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    header,
    result,
    user,
)

SET_MODEL = ModelChange(id=EntryId("m1"), parent=None, at_ms=AT_MS, provider="p", model="x")


class StoreConformance:
    """Needs a fixture `store`."""

    async def test_what_was_appended_is_read_again_in_order(self, store: SessionStore) -> None:
        entries: list[AnyEntry] = [
            SET_MODEL,
            *chain(user("hi"), assistant("yes", call("read", {"path": "a"})), after="m1"),
            entry("e3", result("text"), parent="e2"),
            compaction("c", parent="e3", first_kept="e1", details={"readFiles": ["a"]}),
        ]
        log = await store.create(header())
        await log.append(entries[:2])
        for one in entries[2:]:
            await log.append([one])
        await log.close()
        opened = await store.open(SessionId("s1"))
        assert opened.entries == tuple(entries)
        assert opened.log.header == header()
        assert opened.recovery == Recovery()
        await opened.log.close()

    async def test_a_session_goes_on_after_it_was_opened_again(self, store: SessionStore) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        await log.close()
        again = await store.open(SessionId("s1"))
        await again.log.append([entry("e2", assistant("b"), parent="e1")])
        await again.log.close()
        opened = await store.open(SessionId("s1"))
        assert [one.id for one in opened.entries] == ["e1", "e2"]
        await opened.log.close()

    async def test_a_session_in_which_nothing_was_said_cannot_be_found(
        self, store: SessionStore
    ) -> None:
        log = await store.create(header())
        await log.append([SET_MODEL])
        assert await store.list() == ()
        assert await store.latest("/w/project") is None
        with pytest.raises(SessionNotFound, match="'s1'"):
            await store.open(SessionId("s1"))
        await log.append(chain(user("a"), after="m1"))
        assert await store.latest("/w/project") == "s1"
        await log.close()

    async def test_what_was_set_before_the_first_words_is_written_with_them(
        self, store: SessionStore
    ) -> None:
        log = await store.create(header())
        await log.append([SET_MODEL])
        await log.append(chain(user("a"), after="m1"))
        await log.close()
        opened = await store.open(SessionId("s1"))
        assert [one.id for one in opened.entries] == ["m1", "e1"]
        await opened.log.close()

    async def test_an_open_session_is_locked_until_it_is_closed(self, store: SessionStore) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        with pytest.raises(SessionLocked, match="close it there first"):
            await store.open(SessionId("s1"))
        await log.close()
        opened = await store.open(SessionId("s1"))
        with pytest.raises(SessionLocked):
            await store.open(SessionId("s1"))
        await opened.log.close()

    async def test_closing_twice_is_fine_and_does_not_unlock_the_next_owner(
        self, store: SessionStore
    ) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        await log.close()
        opened = await store.open(SessionId("s1"))
        await log.close()
        with pytest.raises(SessionLocked):
            await store.open(SessionId("s1"))
        await opened.log.close()

    async def test_a_closed_log_takes_nothing_more(self, store: SessionStore) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        await log.close()
        with pytest.raises(SessionClosed):
            await log.append([entry("e2", user("b"), parent="e1")])
        await log.sync()

    async def test_an_unknown_session_is_not_found(self, store: SessionStore) -> None:
        for session in ("nope", "../s1", "*", "", "a/b", "s1\x00"):
            for use in (store.open, store.read, store.delete):
                with pytest.raises(SessionNotFound):
                    await use(SessionId(session))

    async def test_the_latest_session_has_the_newest_last_entry(self, store: SessionStore) -> None:
        for session, at_ms in (("old", 5), ("new", 9), ("older", 1)):
            log = await store.create(header(session, at_ms=AT_MS))
            await log.append([entry("e1", user("a"), at_ms=AT_MS + at_ms)])
            await log.close()
        elsewhere = await store.create(header("elsewhere", cwd="/w/other"))
        await elsewhere.append([entry("e1", user("a"), at_ms=AT_MS + 99)])
        await elsewhere.close()
        assert await store.latest("/w/project") == "new"
        assert await store.latest("/w/other") == "elsewhere"
        assert await store.latest("/w") is None
        assert [one.session for one in await store.list("/w/project")] == ["new", "old", "older"]
        assert [one.session for one in await store.list()] == ["elsewhere", "new", "old", "older"]

    async def test_a_summary_says_what_a_list_shows(self, store: SessionStore) -> None:
        log = await store.create(header())
        name = SessionNameEntry(
            id=EntryId("n"), parent=EntryId("e2"), at_ms=AT_MS + 5, name="Title"
        )
        await log.append([*chain(user("first\nwords "), assistant("b")), name])
        (summary,) = await store.list()
        assert replace(summary, location=None) == replace(
            summary,
            session=SessionId("s1"),
            location=None,
            cwd="/w/project",
            created_ms=AT_MS,
            modified_ms=AT_MS,
            messages=2,
            title="Title",
            preview="first words",
        )
        await log.close()

    async def test_appends_at_the_same_time_are_all_kept_in_the_order_of_the_calls(
        self, store: SessionStore
    ) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                batch = [entry(f"n{number}.{part}", user("x"), parent="e1") for part in range(3)]
                tasks.start_soon(log.append, batch)
        await log.close()
        opened = await store.open(SessionId("s1"))
        ids = [one.id for one in opened.entries[1:]]
        assert ids == [f"n{number}.{part}" for number in range(50) for part in range(3)]
        await opened.log.close()

    async def test_a_cancelled_append_is_in_the_session_or_was_not_acknowledged(
        self, store: SessionStore
    ) -> None:
        log = await store.create(header())
        await log.append(chain(user("a")))
        acknowledged: list[str] = []

        async def write() -> None:
            for number in range(200):
                await log.append([entry(f"n{number}", user("x"), parent="e1")])
                acknowledged.append(f"n{number}")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            while len(acknowledged) < 5:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        await log.close()
        opened = await store.open(SessionId("s1"))
        ids = [one.id for one in opened.entries[1:]]
        assert ids[: len(acknowledged)] == acknowledged
        assert len(ids) <= len(acknowledged) + 1
        await opened.log.close()

    async def test_an_entry_that_we_do_not_know_is_kept(self, store: SessionStore) -> None:
        raw = {
            "type": "usage",
            "id": "u",
            "parentId": "e1",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "kind": "x",
        }
        unknown = UnknownEntry(id=EntryId("u"), parent=EntryId("e1"), at_ms=AT_MS, raw=raw)
        log = await store.create(header())
        await log.append([*chain(user("a")), unknown])
        await log.close()
        opened = await store.open(SessionId("s1"))
        assert opened.entries[-1] == unknown
        await opened.log.close()
