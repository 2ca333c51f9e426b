"""A process that dies in the middle of a write: whatever bytes it leaves, what was whole is there, and it goes on."""

import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.storage.faults import appender
from tests.storage.faults.long_session import LongSession
from tests.storage.faults.whole_entries import whole_entries
from tests.support.harness.sizes import at_size, is_campaign
from tests.support.session.entries import entry, user
from tests.support.workspace.fast_folder import fast_folder

SEED = 20_260_101
TAIL_BYTES = 64 << 10
CUTS_ELSEWHERE = at_size(ci=40, campaign=10_000)
CUTS_OF_TAIL = at_size(ci=200, campaign=TAIL_BYTES)
GO_ON_EVERY = at_size(ci=5, campaign=25)
KILLS = at_size(ci=8, campaign=100)
LIVES = 4
"""A session is killed so often; each life opens what all before it wrote."""
READ_BYTES = 1 << 16
LIVES_S = 0.12
"""Up to so long a process appends before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A store, and the one session file in it."""

    store: JsonlStore
    file: Path

    @property
    def aside(self) -> Path:
        """Where a torn line is kept."""
        return self.file.with_name(self.file.name + ".damaged")


@pytest.fixture
def disk() -> Iterator[Disk]:
    with fast_folder() as folder:
        file = folder / "--w-project--" / "2026_s1.jsonl"
        file.parent.mkdir()
        yield Disk(store=JsonlStore(folder, SystemClock()), file=file)


@pytest.fixture(scope="module")
def session() -> LongSession:
    return LongSession(70, seed=SEED)


def _cuts(session: LongSession) -> list[int]:
    """Choose sizes: in the tail (all of them in a campaign), elsewhere, and on both sides of every newline."""
    draw = random.Random(SEED)  # noqa: S311 - the same cuts every time
    size, first = len(session.content), session.ends[0]
    tail = range(size - TAIL_BYTES, size + 1)
    chosen = tail if is_campaign() else draw.sample(tail, CUTS_OF_TAIL)
    elsewhere = draw.sample(range(first, size - TAIL_BYTES), CUTS_ELSEWHERE)
    edges = [end + step for end in session.ends[1:] for step in (-2, -1, 0, 1)]
    return sorted({*chosen, *elsewhere, *(edge for edge in edges if edge <= size)})


@pytest.mark.timeout(at_size(ci=120, campaign=3_000))
async def test_a_long_file_cut_anywhere_opens_with_every_whole_line(
    disk: Disk, session: LongSession
) -> None:
    cuts = _cuts(session)
    went_on = 0
    for number, size in enumerate(cuts):
        whole = session.whole(size)
        _put(disk, session.content[:size])
        opened = await disk.store.open(SessionId("s1"))
        assert await whole_entries(opened) == session.entries[:whole], size
        assert opened.recovery.skipped_lines == (), size
        assert _kept_aside(disk) == session.torn(size), size
        if number % GO_ON_EVERY == 0:
            more = entry("more", user("more"), parent=f"e{whole - 1}" if whole else None)
            await opened.log.append([more])
            await opened.log.close()
            opened = await disk.store.open(SessionId("s1"))
            assert await whole_entries(opened) == (*session.entries[:whole], more), size
            went_on += 1
        await opened.log.close()
    size = len(session.content)
    print(f"{len(cuts)} cuts of a file of {size} bytes; {went_on} of them went on")


@pytest.mark.timeout(at_size(ci=120, campaign=900))
@pytest.mark.parametrize("number", range(KILLS // LIVES))
def test_kill_9_while_appending_loses_nothing_that_was_acknowledged(
    disk: Disk, number: int
) -> None:
    draw = random.Random(SEED + number)  # noqa: S311 - moments, not secrets
    acknowledged: list[str] = []
    torn = 0
    folder = disk.file.parent.parent
    for life in range(LIVES):
        acknowledged += _append_until_killed(folder, life, after_s=draw.uniform(0, LIVES_S))
        (path,) = folder.glob("*/*.jsonl")
        torn += not path.read_bytes().endswith(b"\n")
    found = anyio.run(_ids, disk.store)
    promised = set(acknowledged)
    assert [one for one in found if one in promised] == acknowledged
    # What was written last may have lost only its acknowledgement: a batch of at most three, once in each life.
    unacknowledged = len(found) - len(acknowledged)
    assert unacknowledged <= 3 * LIVES
    print(
        f"{LIVES} kills: {len(acknowledged)} acknowledged entries are all there and in order; "
        f"{unacknowledged} were written but not acknowledged, {torn} lines were torn"
    )


def _append_until_killed(folder: Path, life: int, *, after_s: float) -> list[str]:
    """Let a process append, kill it a while after its first acknowledgement, and give what it acknowledged."""
    command = [sys.executable, "-P", str(appender.__file__), str(folder), str(life)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    said = bytearray()
    with child:
        said += os.read(child.stdout.fileno(), READ_BYTES)
        assert said, f"life {life} acknowledged nothing"
        deadline = time.monotonic() + after_s
        while (left := deadline - time.monotonic()) > 0:
            # Read meanwhile: a process that waits for its reader does not write.
            if select.select([child.stdout], [], [], left)[0]:
                said += os.read(child.stdout.fileno(), READ_BYTES)
        child.kill()
        said += child.stdout.read()
    return said[: said.rfind(b"\n") + 1].decode().splitlines()


async def _ids(store: JsonlStore) -> list[str]:
    opened = await store.open(SessionId("s1"))
    await opened.log.close()
    assert opened.recovery.skipped_lines == ()
    return [one.id for one in opened.entries]


def _put(disk: Disk, content: bytes) -> None:
    disk.aside.unlink(missing_ok=True)
    disk.file.write_bytes(content)


def _kept_aside(disk: Disk) -> bytes:
    """Give the torn piece; the file of such pieces ends each with a newline."""
    return disk.aside.read_bytes()[:-1] if disk.aside.exists() else b""
