"""What every session store must do for those who read, remove or let bodies go; a test class inherits this."""

import pytest

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionLocked, SessionNotFound
from agent_core.storage import Recovery, SessionStore
from agent_core.transcript import ColdEntry
from tests.storage.conformance import SET_MODEL
from tests.support.session.entries import assistant, call, chain, compaction, header, result, user


class ReadingConformance:
    """Needs a fixture `store`."""

    async def test_a_session_is_read_while_another_writes_it(self, store: SessionStore) -> None:
        log = await store.create(header())
        await log.append([SET_MODEL])
        with pytest.raises(SessionNotFound):
            await store.read(SessionId("s1"))
        said = chain(user("a"), assistant("b"), after="m1")
        for number, one in enumerate(said, start=1):
            await log.append([one])
            stored = await store.read(SessionId("s1"))
            assert stored.entries == (SET_MODEL, *said[:number])
            assert (stored.header, stored.recovery) == (header(), Recovery())
            assert stored.location == log.location
        await log.close()

    async def test_a_deleted_session_is_gone(self, store: SessionStore) -> None:
        for session in ("s1", "s2"):
            log = await store.create(header(session))
            await log.append(chain(user("a")))
            with pytest.raises(SessionLocked):
                await store.delete(SessionId(session))
            await log.close()
        await store.delete(SessionId("s1"))
        assert [one.session for one in await store.list()] == ["s2"]
        with pytest.raises(SessionNotFound):
            await store.delete(SessionId("s1"))

    async def test_what_was_let_go_is_read_back(self, store: SessionStore) -> None:
        log = await store.create(header())
        said = [
            SET_MODEL,
            *chain(user("a"), assistant("b", call("read")), result("c"), after="m1"),
            compaction("c", parent="e3", first_kept="c"),
        ]
        await log.append(said[:1])
        assert log.cool(said) == tuple(said)
        await log.append(said[1:])
        held = log.cool(said)
        assert [(one.id, one.parent) for one in held] == [(one.id, one.parent) for one in said]
        cold = [one for one in held if isinstance(one, ColdEntry)]
        loaded = {one.id: one for one in await log.load(cold)}
        assert tuple(loaded.get(one.id, one) for one in held) == tuple(said)
        await log.close()
