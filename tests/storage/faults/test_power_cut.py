"""A power cut at any moment: what was synced is there, whatever the disk made of the rest."""

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import SessionDamaged, SessionNotFound
from agent_core.messages import UserMessage, text_of
from agent_core.storage import OpenedSession
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import AnyEntry, MessageEntry
from agent_core.transcript.codec import encode_entry, encode_header
from tests.storage.faults.power_cut import Call, Left, PowerCut
from tests.support.harness.sizes import at_size
from tests.support.session.entries import chain, entry, header, user
from tests.support.workspace.fast_folder import fast_folder

STEP_BYTES = at_size(ci=41, campaign=1)
MOST = at_size(ci=400, campaign=1_000_000)
"""So many states are tried; in a campaign all there are."""
GO_ON_EVERY = at_size(ci=7, campaign=20)
TORN_TAIL = b'{"type":"message","id":"e4","parentId":"e3","mess'
OLD = [
    {"type": "session", "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w/project"},
    *(
        {"type": "message", "message": {"role": "user", "content": f"{number} old", "timestamp": 1}}
        for number in (1, 2, 3)
    ),
]

PLANS: dict[str, tuple[str, Sequence[str]]] = {
    "a session from birth to close": ("nothing", ["whole_life"]),
    "killed before it synced and opened again": ("nothing", ["birth_only", "second_life"]),
    "deleted while it is open": ("nothing", ["deleted"]),
    "opened again": ("whole", ["second_life"]),
    "opened with a torn end": ("torn", ["second_life"]),
    "brought to today's format": ("old", ["second_life"]),
}
"""What is there before, safe already, and the lives of the processes that go on from there."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as given:
        yield given


@pytest.mark.timeout(at_size(ci=60, campaign=3_000))
@pytest.mark.parametrize("plan", PLANS)
async def test_what_was_synced_survives_every_power_cut(folder: Path, plan: str) -> None:
    before, lives = PLANS[plan]
    states = list(_states(folder, before, lives))
    tried = _chosen(states)
    seen: Counter[str] = Counter()
    for number, left in enumerate(tried):
        seen[await _outcome(folder, left, goes_on=number % GO_ON_EVERY == 0)] += 1
    assert seen["opened"] > 0
    print(f"{plan}: {len(tried)} tries of {len(states)} states: {dict(seen)}")


def _chosen(states: Sequence[Left]) -> list[Left]:
    """Choose states: one with each set of names and each promise, and others at random."""
    marked = {(frozenset(one.files), one.folders, one.promised): one for one in states}
    draw = random.Random(len(states))  # noqa: S311 - the same states every time
    others = states if len(states) <= MOST else draw.sample(states, MOST)
    return [*marked.values(), *others]


def _states(root: Path, before: str, lives: Sequence[str]) -> Iterator[Left]:
    sessions = root / "sessions"
    _prepare(sessions, before)
    disk = PowerCut(root)
    calls = [call for life in lives for call in _recorded(life, sessions)]
    promised = {"nothing": 0, "whole": 3, "torn": 3, "old": 3}[before]
    yield from disk.play([{"call": "promise", "messages": promised}, *calls], step=STEP_BYTES)


def _prepare(sessions: Path, before: str) -> None:
    if before == "nothing":
        return
    home = sessions / "--w-project--"
    home.mkdir(parents=True)
    lines = [encode_header(header()), *map(encode_entry, chain(*map(user, ("1 a", "2 b", "3 c"))))]
    if before == "old":
        lines = [json.dumps(line).encode() for line in OLD]
    torn = TORN_TAIL if before == "torn" else b""
    (home / "2026_s1.jsonl").write_bytes(b"\n".join([*lines, torn]))


def _recorded(plan: str, sessions: Path) -> list[Call]:
    command = [sys.executable, "-m", "tests.storage.faults.recorded_disk", plan, str(sessions)]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return [json.loads(line) for line in ran.stdout.splitlines()]


async def _outcome(root: Path, left: Left, *, goes_on: bool) -> str:
    """Put a state on the disk and open the session; what it then has must hold what was promised."""
    _put(root, left)
    store = JsonlStore(root / "sessions", SystemClock())
    try:
        opened = await store.open(SessionId("s1"))
    except (SessionNotFound, SessionDamaged):
        # Nothing had been promised of it: its name, or its first line, never reached the disk.
        assert left.promised == 0, left
        return "never born"
    numbers = _numbers(opened.entries)
    assert numbers[: left.promised] == list(range(1, left.promised + 1)), left
    if left.kind == "torn":
        assert numbers == list(range(1, len(numbers) + 1)), left
    else:
        assert numbers == sorted(set(numbers)), left
    if goes_on:
        opened = await _gone_on(store, opened)
    await opened.log.close()
    return "opened"


async def _gone_on(store: JsonlStore, opened: OpenedSession) -> OpenedSession:
    parent = opened.entries[-1].id if opened.entries else None
    more = entry("more", user("more"), parent=parent)
    await opened.log.append([more])
    await opened.log.close()
    again = await store.open(SessionId("s1"))
    assert [one.id for one in again.entries] == [*(one.id for one in opened.entries), more.id]
    return again


def _numbers(entries: Sequence[AnyEntry]) -> list[int]:
    """Give the numbers that the messages begin with."""
    said = [one.message for one in entries if isinstance(one, MessageEntry)]
    return [int(text_of(one.content).split()[0]) for one in said if isinstance(one, UserMessage)]


def _put(root: Path, left: Left) -> None:
    for path in root.iterdir():
        shutil.rmtree(path)
    for path in sorted(left.folders):
        path.mkdir()
    for path, content in left.files.items():
        path.write_bytes(content)
