"""Appends to a session as fast as it can until it is killed; run as a process of its own.

It knows nothing of the tests, so that it runs isolated: arguments are the folder and the round. Each line on stdout
names an entry whose append has returned.
"""

import sys
from itertools import count
from pathlib import Path

import anyio

from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import Text, UserMessage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import Header, MessageEntry

AT_MS = 1_767_225_600_000
SIZES = (0, 40, 900, 5_000, 70_000, 11)
"""Characters of the entries, in turn: within a page, over a page, over a pipe's buffer."""
SYNC_EVERY = 9


async def main(folder: Path, life: str) -> None:
    """Append for ever."""
    store = JsonlStore(folder, SystemClock())
    if life == "0":
        log = await store.create(Header(id=SessionId("s1"), at_ms=AT_MS, cwd="/w/project"))
        parent = None
    else:
        opened = await store.open(SessionId("s1"))
        log, parent = opened.log, opened.entries[-1].id
    for number in count():
        batch: list[MessageEntry] = []
        for part in range(1 + number % 3):
            words = "x" * SIZES[(number + part) % len(SIZES)]
            own = EntryId(f"{life}.{number}.{part}")
            said = UserMessage(content=(Text(text=words),), at_ms=AT_MS)
            batch.append(MessageEntry(id=own, parent=parent, at_ms=AT_MS, message=said))
            parent = own
        await log.append(batch)
        sys.stdout.write("".join(f"{one.id}\n" for one in batch))
        sys.stdout.flush()
        if number % SYNC_EVERY == 0:
            await log.sync()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
