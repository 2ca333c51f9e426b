"""Writes one session by a fixed plan, to be watched from outside; run as a process of its own.

It knows nothing of the tests, so that it runs isolated: the argument is the folder.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import Text, UserMessage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import Header, MessageEntry, ModelChange

AT_MS = 1_767_225_600_000
BIG_CHARS = 3_000_000


def said(*words: str, after: str | None) -> Sequence[MessageEntry]:
    """Make messages, each following the one before it and named after how many there were."""
    made: list[MessageEntry] = []
    parent = after
    for number, text in enumerate(words):
        own = EntryId(f"{after}.{number}")
        message = UserMessage(content=(Text(text=text),), at_ms=AT_MS)
        held_by = None if parent is None else EntryId(parent)
        made.append(MessageEntry(id=own, parent=held_by, at_ms=AT_MS, message=message))
        parent = own
    return made


async def main(folder: Path) -> None:
    """Write, sync, close, open again, write."""
    store = JsonlStore(folder, SystemClock())
    log = await store.create(Header(id=SessionId("s1"), at_ms=AT_MS, cwd="/w/project"))
    await log.append(
        [ModelChange(id=EntryId("m"), parent=None, at_ms=AT_MS, provider="p", model="x")]
    )
    await log.append(said("first", "words", after="m"))
    await log.append(said("a", "b", "c", after="m.1"))
    await log.sync()
    await log.append(said("x" * BIG_CHARS, after="m.1.2"))
    await log.sync()
    await log.close()
    opened = await store.open(SessionId("s1"))
    await opened.log.append(said("again", after="m.1.2.0"))
    await opened.log.close()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
