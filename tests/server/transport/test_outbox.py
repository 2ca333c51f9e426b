"""The outbox: order, admission by lane, bounds, and a sink that takes nothing."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest

from tiller_server.lsp.transport.framing import FrameReader
from tiller_server.lsp.transport.outbox import (
    HIGH_WATER_BYTES,
    HIGH_WATER_FRAMES,
    MAX_CONTROL_BYTES,
    MAX_STATE_BYTES,
    MAX_WAITING_BYTES,
    Lane,
    Outbox,
    Sink,
)

KIB = 1024
Line = tuple[Sink, Callable[[], Awaitable[bytes]]]
Opened = Callable[[], AbstractAsyncContextManager[Line]]


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
    for _ in range(MAX_WAITING_BYTES // len(piece)):
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


@asynccontextmanager
async def over_socket() -> AsyncGenerator[Line]:
    """Open a socket with small buffers; give its sink, and what reads one piece at the other end."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)  # noqa: FBT003 - its name says it
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * KIB)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    _, writer = await asyncio.open_connection(sock=ours)
    loop = asyncio.get_running_loop()
    try:
        yield writer, lambda: loop.sock_recv(theirs, 64 * KIB)
    finally:
        writer.transport.abort()
        theirs.close()


@asynccontextmanager
async def over_pipe() -> AsyncGenerator[Line]:
    """Open a pipe; give its sink, and what reads one piece at the other end."""
    reads, writes = os.pipe()
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        partial(asyncio.StreamReaderProtocol, asyncio.StreamReader()), os.fdopen(writes, "wb", 0)
    )
    try:
        # The reader's end blocks: a read on a thread waits for the next piece.
        yield (
            asyncio.StreamWriter(transport, protocol, None, loop),
            lambda: asyncio.to_thread(os.read, reads, 64 * KIB),
        )
    finally:
        transport.abort()
        os.close(reads)


@pytest.mark.parametrize("opened", [over_socket, over_pipe], ids=["socket", "pipe"])
@pytest.mark.parametrize("large_bytes", [8 * 1024 * KIB, 32 * 1024 * KIB], ids=["8 MiB", "32 MiB"])
async def test_a_client_that_reads_slowly_keeps_a_large_answer_and_all_that_follow(
    opened: Opened,
    large_bytes: int,
) -> None:
    given_up: list[str] = []
    outbox = Outbox(on_overflow=lambda: given_up.append("given up"))
    frames, taken = FrameReader(), list[bytes]()
    async with asyncio.timeout(30), opened() as (sink, read), asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.drain_to(sink))
        assert outbox.put(b"x" * large_bytes, Lane.CONTROL)
        asked = 0
        while len(taken) < asked + 1:
            # One more answer for each piece that is read: the reader sets the pace.
            if asked < 100:
                assert outbox.put(b"%d" % asked, Lane.CONTROL)
                asked += 1
            frames.feed(await read())
            while (body := frames.take()) is not None:
                taken.append(body)
        outbox.finish()
        await writer
    assert taken[0] == b"x" * large_bytes
    assert taken[1:] == [b"%d" % number for number in range(asked)]
    assert given_up == []


@pytest.mark.parametrize("opened", [over_socket, over_pipe], ids=["socket", "pipe"])
async def test_a_client_that_takes_nothing_of_a_large_answer_is_given_up(
    opened: Opened,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given_up = asyncio.Event()
    outbox = Outbox(on_overflow=given_up.set, stall_limit_s=0.05)
    async with asyncio.timeout(10), opened() as (sink, _), asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.drain_to(sink))
        assert outbox.put(b"x" * MAX_CONTROL_BYTES, Lane.CONTROL)
        while not given_up.is_set():
            outbox.put(b"next", Lane.CONTROL)
            await asyncio.sleep(0.001)  # time is what is measured
        assert outbox.pending_bytes == 0
        writer.cancel()
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "Giving up a client that does not read"
    ]


async def test_a_client_is_not_blamed_for_a_loop_that_was_busy() -> None:
    given_up: list[str] = []
    outbox = Outbox(on_overflow=lambda: given_up.append("given up"), stall_limit_s=0.05)
    async with asyncio.timeout(10), over_socket() as (sink, read), asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.drain_to(sink))
        assert outbox.put(b"x" * 2 * MAX_CONTROL_BYTES, Lane.CONTROL)
        await read()
        while outbox.stalled_s() < 0.1:
            pass  # The loop stands still meanwhile, as in a long computation.
        assert outbox.put(b"next", Lane.CONTROL)
        rest = 2 * MAX_CONTROL_BYTES
        while outbox.pending_bytes > 0 and rest > 0:
            rest -= len(await read())
        outbox.finish()
        await writer
    assert given_up == []
