"""Clients that do not read: what they cost, and that nobody else pays."""

import asyncio
from typing import Any

import pytest

from tests.support.lsp.echo_server import make_connection
from tests.support.lsp.wire_peer import Served, serving
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.transport.outbox import MAX_CONTROL_BYTES, MAX_WAITING_BYTES, Lane

MIB = 1024 * 1024
SMALL = 4096


async def _fill(connection: LspConnection) -> None:
    """Send deltas until the outbox is above its mark and the kernel takes no more."""
    body = b'{"jsonrpc":"2.0","method":"d","params":{"x":"%b"}}' % (b"x" * 8192)
    while connection.outbox.writable():
        while connection.send_encoded(body, Lane.DELTA):
            pass
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_client_that_stops_reading_delays_no_other() -> None:
    stuck, other = make_connection(), make_connection()
    async with serving(stuck, receive_buffer=SMALL) as first, serving(other) as second:
        await first.peer.initialize()
        await second.peer.initialize()
        await _fill(stuck)
        # Two hundred answers in the time in which a loop that waits for the first gives none.
        async with asyncio.timeout(5):
            for number in range(200):
                stuck.send_encoded(b"{}", Lane.DELTA)
                answer = await second.peer.ask(number, "agent/echo", params={"n": number})
                assert answer["result"] == {"n": number}
        assert stuck.outbox.pending_bytes <= 4 * MIB


async def test_a_stuck_client_costs_at_most_four_mebibytes_of_what_can_be_refused() -> None:
    connection = make_connection()
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        await _fill(connection)
        while connection.send_encoded(b"s" * 65536, Lane.STATE):
            pass
        assert connection.outbox.pending_bytes <= 4 * MIB
        connection.outbox.close()


async def _queue_five_mebibytes(served: Served) -> None:
    # Not above the kernel's buffer: the answer is what is stuck, not the question.
    text = {"x": "y" * 5 * MIB}

    async def give(_: dict[str, Any]) -> object:
        return text

    served.connection.add_agent_method("agent/large", give)
    served.peer.send(id="large", method="agent/large")
    async with asyncio.timeout(5):
        while served.connection.outbox.pending_bytes < 5 * MIB:  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0)


async def test_cancelling_works_while_five_mebibytes_wait_for_the_client() -> None:
    connection = make_connection()
    stopped = asyncio.Event()

    async def stoppable(_: dict[str, Any]) -> object:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return None

    connection.add_agent_method("agent/stoppable", stoppable)
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/stoppable")
        await _queue_five_mebibytes(served)
        served.peer.send(method="$/cancelRequest", params={"id": 1})
        async with asyncio.timeout(1):
            await stopped.wait()
        large = await served.peer.answer_to("large")
        assert len(large["result"]["x"]) == 5 * MIB
        assert (await served.peer.answer_to(1))["error"]["code"] == -32800


async def test_a_client_that_reads_again_gets_everything_in_order() -> None:
    connection = make_connection()
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        await _fill(connection)
        waiting = connection.outbox.pending_frames
        async with asyncio.TaskGroup() as tasks:
            room = tasks.create_task(connection.outbox.wait_writable())
            last = await served.peer.ask("last", "agent/echo", params={"end": True})
            await room
        assert last["result"] == {"end": True}
        passed = [await served.peer.read() for _ in range(waiting)]
        assert {message["method"] for message in passed} == {"d"}


async def test_a_client_that_asks_and_never_reads_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = make_connection()
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        text = {"x": "y" * MAX_CONTROL_BYTES}

        async def give(_: dict[str, Any]) -> object:
            return text

        connection.add_agent_method("agent/large", give)
        for number in range(2 + MAX_WAITING_BYTES // MAX_CONTROL_BYTES):
            served.peer.send(id=number, method="agent/large")
        assert await served.exit_code() == 1
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "Giving up a client that does not read"
    ]


async def test_a_client_that_reads_a_large_answer_may_go_on_asking() -> None:
    connection = make_connection()
    text = {"x": "y" * 2 * MAX_CONTROL_BYTES}

    async def give(_: dict[str, Any]) -> object:
        return text

    connection.add_agent_method("agent/large", give)
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        served.peer.send(id="large", method="agent/large")
        async with asyncio.timeout(5):
            while connection.outbox.pending_bytes <= MAX_CONTROL_BYTES:  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(0)
        for number in range(50):
            served.peer.send(id=number, method="agent/echo", params={"n": number})
        assert (await served.peer.answer_to("large"))["result"] == text
        for number in range(50):
            assert (await served.peer.answer_to(number))["result"] == {"n": number}


async def test_closing_a_stuck_client_takes_bounded_time() -> None:
    connection = make_connection()
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        await _fill(connection)
        connection.close()
        async with asyncio.timeout(5):
            assert await served.exit_code() == 0


async def test_a_client_that_vanishes_ends_its_connection() -> None:
    connection = make_connection()
    async with serving(connection, receive_buffer=SMALL) as served:
        await served.peer.initialize()
        served.peer.send(id=1, method="agent/wait")
        await served.peer.ask(2, "agent/echo")
        served.peer.writer.transport.abort()
        assert await served.exit_code() == 0
