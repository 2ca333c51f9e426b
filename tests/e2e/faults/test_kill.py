"""`kill -9` at random moments: every session reopens, every call has one result, no acknowledged word is missing."""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import RawClient, Subscription
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.programs.terminal import running, tiller
from tests.support.session.session_files import checked_entries, messages, runs, said

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(at_size(ci=180, campaign=1800)),
]

KILLS = at_size(ci=3, campaign=30)
EVENTS_OF_A_ROUND = 90
"""A kill falls somewhere among so many events: in words, between calls, while tools run."""
JITTER_S = 0.03
STEP_MS = at_size(ci=5, campaign=2)

BUSY = {
    **calls(
        ("read", {"path": "notes.txt"}),
        ("bash", {"command": "echo one; sleep 0.03; echo two >> log.txt"}),
        ("write", {"path": "made.txt", "content": "made\n" * 50}),
    ),
    "text": "thinking about it ",
    "deltas": 20,
    "delta_delay_s": 0.002,
    "repeat": -1,
}
"""A turn that is asked for again and again: such a run ends only when it is killed."""
RECOVERED = {**says("recovered"), "repeat": -1}


@dataclass(slots=True)
class Round:
    """One life of a server that is cut short."""

    draw: random.Random
    acknowledged: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    async def say(self, client: RawClient, method: str, words: str) -> dict[str, Any]:
        """Say something and remember it, and that it was acknowledged."""
        self.sent.append(words)
        answer = await client.request(method, prompt(words))
        self.acknowledged.append(words)
        return answer


@pytest.mark.parametrize("seed", range(KILLS))
async def test_a_session_survives_the_death_of_its_server(ground: Ground, seed: int) -> None:
    ground.file("notes.txt", "a note\n")
    ground.provider.script([BUSY])
    life = Round(random.Random(seed))  # noqa: S311 - a moment, not a secret
    session, moment = await _live_and_die(ground, life)
    (path,) = ground.sessions()
    torn = not path.read_bytes().endswith(b"\n")
    ground.provider.script([RECOVERED])
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": session})
        assert (opened["session"], opened["state"]) == (session, "idle")
        waiting = [one["content"][0]["text"] for one in opened["queue"]]
        result = await client.request("agent/prompt", prompt("go on", wait=True), timeout_s=30)
        assert (result["status"], result["message"]) == ("completed", "recovered")
        await client.shutdown()
        assert await client.exit() == 0
    entries = checked_entries(path)
    heard = said(entries)
    assert sorted(heard) == sorted([*life.acknowledged, "go on"])
    statuses = [status for _, status in runs(entries)]
    assert statuses[:2] == ["started", "interrupted"]
    assert set(statuses[2:]) == {"started", "completed"}
    calls_made = len(messages(entries, "toolResult"))
    print(
        f"seed {seed}: killed at event {moment}; {calls_made} calls answered, {waiting=}, {torn=}"
    )


@pytest.mark.parametrize("after_ms", range(0, STEP_MS * KILLS, STEP_MS))
async def test_a_prompt_that_was_never_acknowledged_is_there_as_a_whole_or_not_at_all(
    ground: Ground, after_ms: int
) -> None:
    words = "was it safe? " * 500
    ground.provider.script([BUSY])
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": "new"})
        _ = client.call("agent/prompt", prompt(words))
        await asyncio.sleep(after_ms / 1000)  # the moment is what the test varies
        os.kill(client.pid, signal.SIGKILL)
        assert await client.exit_code() == -signal.SIGKILL
    # A file without a whole first line holds no session: it was being made, and nothing was promised.
    written = [path for path in ground.sessions() if b"\n" in path.read_bytes()]
    ground.provider.script([RECOVERED])
    for path in written:
        ran = tiller(ground, "run", "--session", opened["session"], "go on")
        assert (ran.code, ran.out) == (0, "recovered\n")
        heard = said(checked_entries(path))
        assert heard in ([words, "go on"], ["go on"])
        print(
            f"killed {after_ms} ms after sending: the prompt is {'there' if heard[1:] else 'not'}"
        )
    ran = tiller(ground, "run", "--continue", "and on")
    assert (ran.code, ran.out) == (0, "recovered\n")


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_session_survives_the_death_of_the_terminal(ground: Ground, seed: int) -> None:
    ground.file("notes.txt", "a note\n")
    ground.provider.script([BUSY])
    moment = random.Random(1000 + seed).randrange(1, EVENTS_OF_A_ROUND)  # noqa: S311 - see above
    with running(ground, ["run", "--json", "begin"]) as command:
        command.until(f'"seq":{moment},')
        command.send(signal.SIGKILL)
        ran = command.end()
    assert ran.code == -signal.SIGKILL
    ground.provider.script([RECOVERED])
    again = tiller(ground, "run", "--json", "--continue", "go on")
    assert (again.code, again.err) == (0, "")
    notices = [event["text"] for event in again.lines if event["type"] == "notice"]
    assert any("interrupted" in text for text in notices)
    (path,) = ground.sessions()
    entries = checked_entries(path)
    assert said(entries) == ["begin", "go on"]
    assert [status for _, status in runs(entries)] == [
        *("started", "interrupted"),
        *("started", "completed"),
    ]
    print(f"seed {seed}: killed at event {moment}; {len(entries)} entries are whole")


async def _live_and_die(ground: Ground, life: Round) -> tuple[str, int]:
    """Work for a while, say things on the way, and be killed; gives the session and the moment."""
    moment = life.draw.randrange(1, EVENTS_OF_A_ROUND)
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": "new"})
        stream = client.subscribe()
        await stream.ready()
        await life.say(client, "agent/prompt", "begin")
        for index, (at, method) in enumerate(_interjections(life.draw, moment)):
            await _reached(stream, at)
            await life.say(client, method, f"interjection {index}")
        await _reached(stream, moment)
        await asyncio.sleep(life.draw.random() * JITTER_S)  # the moment is what the test varies
        os.kill(client.pid, signal.SIGKILL)
        assert await client.exit_code() == -signal.SIGKILL
    return opened["session"], moment


def _interjections(draw: random.Random, moment: int) -> list[tuple[int, str]]:
    count = draw.randrange(3)
    return sorted(
        (draw.randrange(1, moment + 1), draw.choice(["agent/steer", "agent/followUp"]))
        for _ in range(count)
    )


async def _reached(stream: Subscription, seq: int) -> None:
    await stream.reached(seq, timeout_s=30)
