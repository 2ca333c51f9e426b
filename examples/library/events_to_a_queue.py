"""Everything that happens, while it happens: a reader of the session's events feeds a queue of this program."""

import asyncio
import sys

from agent_core import Event, create_session
from agent_core.events import EventSubscription, MessageDelta, RunEnded, ToolRunning


async def feed(reader: EventSubscription, queue: asyncio.Queue[Event]) -> None:
    """Put every event into a queue, until the reader is closed."""
    async for stamped in reader:
        await queue.put(stamped.event)


async def show(queue: asyncio.Queue[Event]) -> bool:
    """Print what happens until the run is over; say whether it went well."""
    while True:
        match await queue.get():
            case MessageDelta(text=text):
                print(text, end="", flush=True)
            case ToolRunning(title=title):
                print(f"\n[{title}]")
            case RunEnded(status=status, error=error):
                print(f"\n{status}" + (f": {error.message}" if error else ""))
                return status == "completed"
            case _:
                pass


async def main(question: str) -> None:
    """Ask, and show what happens."""
    queue = asyncio.Queue[Event]()
    async with (
        create_session(workspace=".", store="memory") as session,
        asyncio.TaskGroup() as tasks,
    ):
        # It hears everything from here on; nothing waits for who reads slowly.
        reader = session.subscribe()
        feeding = tasks.create_task(feed(reader, queue))
        await session.prompt(question)
        went_well = await show(queue)
        reader.close()
        await feeding
    if not went_well:
        sys.exit(1)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this folder?"))
