"""The history of bound chats after an hour without events, on a clock of its own."""

import asyncio
from pathlib import Path

from agent_core.channels.messaging.store import bindings
from agent_core.channels.messaging.store.database import Transaction
from agent_core.kernel.redaction.redactor import Redactor
from tests.channels.messaging.conformance import CollectingSink
from tests.support.channels.memory_platform import CAPABILITIES, Fault, MemoryChannel
from tests.support.channels.timeline import timeline
from tiller_server.channels.bridge.catch_up import CatchUp
from tiller_server.channels.bridge.chat_store import ChatStore


async def test_a_quiet_hour_is_followed_by_a_look_at_the_history(tmp_path: Path) -> None:
    async with timeline(tmp_path / "chat.sqlite3") as line:
        store = ChatStore(
            line.database, line.sender, limits=CAPABILITIES, cleaner=Redactor(), clock=line.clock
        )
        catch_up = CatchUp(MemoryChannel(line.platform), store, line.sender)
        sink = CollectingSink()

        def bind(tx: Transaction) -> None:
            bindings.bind(
                tx,
                chat="dm",
                place="",
                kind="direct",
                root=None,
                session="s",
                workspace="shop",
                created_by="ann",
                now_ms=line.clock.now_ms(),
            )

        await line.write(bind)
        lost = line.platform.write("is anybody there", is_lost=True)
        line.platform.faults.append(Fault(method="history", kind="uncertain"))
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(catch_up.run(sink)), loop.create_task(catch_up.watch())]
        await line.run_for(3500)
        assert line.platform.calls == []
        await line.run_for(200)
        assert (sink.events, catch_up.last_probe_ms) == ([], None)
        await line.run_for(400)
        assert sink.events == [lost]
        assert catch_up.last_probe_ms is not None
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
