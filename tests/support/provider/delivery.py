"""How the bytes of a stream are cut, delayed and broken off; pure planning, no sockets."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tests.support.provider.script import Turn
from tests.support.provider.shapes import Sse

BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Send:
    """Write these bytes of the HTTP body, each as one HTTP chunk."""

    chunks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Say nothing for a while; None means until the client goes away."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop the connection without ending the HTTP body."""


Step = Send | Pause | Cut


def plan(turn: Turn, events: Sequence[Sse]) -> Iterator[Step]:
    """Give the steps that deliver the events as the turn wants them; the HTTP body ends after the last."""
    body = b"".join(event.raw for event in events)
    starts = [0, *accumulate(len(event.raw) for event in events)]
    end = _end(turn, len(body))
    cuts = sorted({cut for cut in _cuts(turn.chunking, body, starts) if 0 < cut < end} | {0, end})
    done = 0
    for offset, pause in _pauses(turn, events, starts):
        if offset > end:
            break
        yield from _sends(body, cuts, done, offset)
        yield pause
        done = offset
    yield from _sends(body, cuts, done, end)
    if turn.cut_after_bytes is not None:
        yield Cut()


def _end(turn: Turn, length: int) -> int:
    limits = (turn.cut_after_bytes, turn.eof_after_bytes, length)
    return min(limit for limit in limits if limit is not None)


def _cuts(chunking: str, body: bytes, starts: Sequence[int]) -> Iterable[int]:
    """Give the offsets where one HTTP chunk ends and the next begins."""
    match chunking.partition(":")[0]:
        case "events":
            return starts
        case "bytes":
            return range(0, len(body), int(chunking.partition(":")[2]))
        case "boundary":
            return [start - 1 for start in starts]
        case "utf8":
            return [offset for offset, byte in enumerate(body) if byte & 0xC0 == 0x80]
        case _:
            return ()


def _pauses(turn: Turn, events: Sequence[Sse], starts: Sequence[int]) -> list[tuple[int, Pause]]:
    pauses: list[tuple[int, Pause]] = []
    if turn.stall_after_bytes is not None:
        offset, seconds = turn.stall_after_bytes
        pauses.append((offset, Pause(seconds)))
    if turn.stall_forever_after_deltas == 0:
        pauses.append((0, Pause(None)))
    deltas = 0
    for event, start in zip(events, starts, strict=False):
        if event.is_delta:
            if turn.delta_delay_s:
                pauses.append((start, Pause(turn.delta_delay_s)))
            deltas += 1
            if deltas == turn.stall_forever_after_deltas:
                pauses.append((start + len(event.raw), Pause(None)))
    return sorted(pauses, key=lambda one: one[0])


def _sends(body: bytes, cuts: Sequence[int], start: int, end: int) -> Iterator[Send]:
    """Send one stretch of the body in writes of about `BLOCK_BYTES`, chunked at the cuts."""
    if start >= end:
        return
    inner = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
    block: list[bytes] = []
    size = 0
    for left, right in pairwise(inner):
        block.append(body[left:right])
        size += right - left
        if size >= BLOCK_BYTES:
            yield Send(tuple(block))
            block, size = [], 0
    if block:
        yield Send(tuple(block))
