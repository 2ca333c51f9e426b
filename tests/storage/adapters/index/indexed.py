"""Sessions that were said and renamed, for tests of their index."""

from dataclasses import replace
from pathlib import Path

from agent_core.kernel import EntryId
from agent_core.storage.adapters.index.sqlite import SqliteIndex
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.index import Hit
from agent_core.transcript import SessionNameEntry, StoredMessage
from tests.support.session.entries import AT_MS, chain, header


def opened(data: Path) -> SqliteIndex:
    return SqliteIndex(data / "sessions", data / "index.sqlite3")


async def say(
    store: JsonlStore,
    session: str,
    *messages: StoredMessage,
    cwd: str = "/w/project",
    at_ms: int = AT_MS,
) -> Path:
    log = await store.create(header(session, cwd=cwd, at_ms=at_ms))
    await log.append([replace(one, at_ms=at_ms) for one in chain(*messages)])
    await log.close()
    assert log.location is not None
    return log.location


async def rename(store: JsonlStore, session: str, name: str) -> None:
    opened_session = await store.open(header(session).id)
    count = len(opened_session.entries)
    named = SessionNameEntry(id=EntryId(f"n{count}"), parent=None, at_ms=AT_MS, name=name)
    await opened_session.log.append([named])
    await opened_session.log.close()


def names(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.summary.session for hit in hits]
