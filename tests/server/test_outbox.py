"""The outbox: order, admission by lane, bounds, and a sink that takes nothing."""

import asyncio

import pytest

from server.lsp.frames import FrameReader
from server.lsp.outbox import (
    HIGH_WATER_BYTES,
    HIGH_WATER_FRAMES,
    MAX_CONTROL_BYTES,
    MAX_STATE_BYTES,
    Lane,
    Outbox,
)

KIB = 1024


class GatedSink:
    """A sink that takes bytes at once and lets the writer go on while its gate is open."""

    def __init__(self) -> None:
        self.taken = bytearray()
        self.gate = asyncio.Event()
        self.breaks = False

    def write(self, data: bytes, /) -> None:
        self.taken += data

    async def drain(self) -> None:
        await self.gate.wait()
        if self.breaks:
            raise BrokenPipeError

    def close(self) -> None:
        self.gate.set()

    async def wait_closed(self) -> None:
        await self.gate.wait()

    def bodies(self) -> list[bytes]:
        reader = FrameReader()
        reader.feed(bytes(self.taken))
        found: list[bytes] = []
        while (body := reader.take()) is not None:
            found.append(body)
        return found


def ignore() -> None:
    return None


async def test_what_got_in_leaves_in_the_order_of_put_whatever_its_lane() -> None:
    outbox, sink = Outbox(on_overflow=ignore), GatedSink()
    sink.gate.set()
    lanes = [Lane.DELTA, Lane.CONTROL, Lane.STATE, Lane.DELTA, Lane.CONTROL]
    for number, lane in enumerate(lanes):
        assert outbox.put(b"%d" % number, lane)
    outbox.finish()
    await outbox.drain_to(sink)
    assert sink.bodies() == [b"0", b"1", b"2", b"3", b"4"]
    assert (outbox.pending_bytes, outbox.pending_frames) == (0, 0)


async def test_deltas_are_refused_above_the_mark_and_state_and_control_are_not() -> None:
    outbox = Outbox(on_overflow=ignore)
    while outbox.put(b"d" * 64 * KIB, Lane.DELTA):
        pass
    assert outbox.pending_bytes == HIGH_WATER_BYTES
    assert not outbox.writable()
    assert outbox.put(b"s", Lane.STATE)
    assert outbox.put(b"c", Lane.CONTROL)


async def test_many_small_frames_count_as_much_as_few_large_ones() -> None:
    outbox = Outbox(on_overflow=ignore)
    taken = sum(outbox.put(b"d", Lane.DELTA) for _ in range(HIGH_WATER_FRAMES + 50))
    assert taken == HIGH_WATER_FRAMES


async def test_state_is_refused_before_a_stuck_client_costs_four_mebibytes() -> None:
    outbox = Outbox(on_overflow=ignore)
    while outbox.put(b"s" * 64 * KIB, Lane.STATE):
        pass
    assert outbox.pending_bytes == MAX_STATE_BYTES


async def test_one_large_message_is_taken_when_nothing_waits() -> None:
    outbox, sink = Outbox(on_overflow=ignore), GatedSink()
    sink.gate.set()
    large = b"x" * (3 * HIGH_WATER_BYTES)
    assert outbox.put(large, Lane.DELTA)
    outbox.finish()
    await outbox.drain_to(sink)
    assert sink.bodies() == [large]


async def test_a_backlog_of_control_messages_gives_the_client_up_once() -> None:
    given_up: list[str] = []
    outbox = Outbox(on_overflow=lambda: given_up.append("given up"))
    piece = b"c" * 256 * KIB
    for _ in range(MAX_CONTROL_BYTES // len(piece)):
        assert outbox.put(piece, Lane.CONTROL)
    assert given_up == []
    assert not outbox.put(piece, Lane.CONTROL)
    assert not outbox.put(piece, Lane.CONTROL)
    assert given_up == ["given up"]
    assert (outbox.pending_bytes, outbox.pending_frames) == (0, 0)


async def test_waiting_for_room_ends_when_the_client_reads_again() -> None:
    outbox, sink = Outbox(on_overflow=ignore), GatedSink()
    while outbox.put(b"d" * 64 * KIB, Lane.DELTA):
        pass
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.drain_to(sink))
        waiter = tasks.create_task(outbox.wait_writable())
        await asyncio.sleep(0)
        assert not waiter.done()
        sink.gate.set()
        await waiter
        assert outbox.writable()
        outbox.finish()
        await writer


async def test_waiting_for_room_fails_when_the_connection_closes() -> None:
    outbox = Outbox(on_overflow=ignore)
    while outbox.put(b"d" * 64 * KIB, Lane.DELTA):
        pass
    waiter = asyncio.get_running_loop().create_task(outbox.wait_writable())
    await asyncio.sleep(0)
    outbox.close()
    with pytest.raises(ConnectionError):
        await waiter
    assert not outbox.put(b"c", Lane.CONTROL)


async def test_a_sink_that_breaks_closes_the_outbox() -> None:
    outbox, sink = Outbox(on_overflow=ignore), GatedSink()
    sink.breaks = True
    sink.gate.set()
    outbox.put(b"1", Lane.CONTROL)
    with pytest.raises(BrokenPipeError):
        await outbox.drain_to(sink)
    assert not outbox.put(b"2", Lane.CONTROL)
    assert outbox.pending_frames == 0


async def test_a_stall_is_measured_from_the_last_byte_taken() -> None:
    outbox, sink = Outbox(on_overflow=ignore), GatedSink()
    assert outbox.stalled_s() == 0.0
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.drain_to(sink))
        outbox.put(b"1", Lane.CONTROL)
        while outbox.stalled_s() < 0.01:  # noqa: ASYNC110 - time is what is measured
            await asyncio.sleep(0.001)
        sink.gate.set()
        outbox.finish()
        await writer
    assert outbox.stalled_s() == 0.0
