"""`kill -9` in mid-run, and `agent/run/retry`: the user's words stand once, each call has one result, each run one end."""

import asyncio
import os
import random
import signal

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.session.session_files import checked_entries, messages, runs, said

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(at_size(ci=120, campaign=600)),
]

KILLS = at_size(ci=2, campaign=30)
EVENTS_OF_A_ROUND = 60
BUSY = {
    **calls(("read", {"path": "notes.txt"}), ("bash", {"command": "echo one; sleep 0.03"})),
    "text": "thinking about it ",
    "deltas": 10,
    "delta_delay_s": 0.002,
    "repeat": -1,
}


@pytest.mark.parametrize("seed", range(KILLS))
async def test_a_killed_run_is_completed_by_a_retry_without_a_second_message(
    ground: Ground, seed: int
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a moment, not a secret
    ground.file("notes.txt", "a note\n")
    ground.provider.script([BUSY])
    moment = draw.randrange(1, EVENTS_OF_A_ROUND)
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": "new"})
        stream = client.subscribe()
        await stream.ready()
        first = await client.request("agent/prompt", prompt("do it", messageId="m1"))
        await stream.reached(moment, timeout_s=30)
        await asyncio.sleep(draw.random() * 0.03)  # the moment is what the test varies
        os.kill(client.pid, signal.SIGKILL)
        assert await client.exit_code() == -signal.SIGKILL
    named = {"session": opened["session"]}
    # Killed again before anything was done: the end of the run is still told once.
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", named)
        os.kill(client.pid, signal.SIGKILL)
        assert await client.exit_code() == -signal.SIGKILL
    ground.provider.script([{**says("recovered"), "repeat": -1}])
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", named)
        again = await client.request("agent/prompt", {**prompt("do it", messageId="m1"), **named})
        assert (again["accepted"], again["run"]) == ("duplicate", first["run"])
        stream = client.subscribe()
        retried = await client.request("agent/run/retry", {"run": first["run"], **named})
        assert retried["accepted"] == "started"
        ended = await stream.wait(type="run.ended", run=retried["run"])
        assert ended["status"] == "completed"
        twice = await client.request("agent/run/retry", {"run": first["run"]})
        assert (twice["accepted"], twice["run"]) == ("duplicate", retried["run"])
        await client.shutdown()
        assert await client.exit() == 0
    (path,) = [one for one in ground.sessions() if not one.name.endswith(".events.jsonl")]
    entries = checked_entries(path)
    assert said(entries) == ["do it"]
    assert said(entries, "assistant")[-1] == "recovered"
    assert runs(entries) == [
        (first["run"], "started"),
        (first["run"], "interrupted"),
        (retried["run"], "started"),
        (retried["run"], "completed"),
    ]
    print(f"seed {seed}: killed at event {moment}; {len(messages(entries, 'toolResult'))} calls")


async def test_who_listens_first_is_told_that_the_run_was_interrupted(ground: Ground) -> None:
    ground.provider.script([{"text": "x", "stall_forever_after_deltas": 1}])
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": "new"})
        stream = client.subscribe()
        first = await client.request("agent/prompt", prompt("go"))
        await stream.wait(type="run.started")
        assert stream.snapshot is not None
        epoch = stream.snapshot["epoch"]
        os.kill(client.pid, signal.SIGKILL)
        _ = await client.exit_code()
    async with ground.client(PANEL) as client:
        await client.request("agent/session/open", {"session": opened["session"]})
        result = await client.request("agent/session/read", {"session": opened["session"]})
        (end,) = [one for one in result["items"] if one["kind"] == "end"]
        assert (end["run"], end["status"], end["resumable"]) == (first["run"], "interrupted", True)
        late = await client.request("agent/run/cancel", {"run": first["run"]})
        assert late["status"] == "alreadyEnded"
    print(f"epoch before the kill: {epoch}")


async def test_only_what_was_left_undone_is_retried(ground: Ground) -> None:
    ground.provider.script([says("done")])
    async with ground.client(PANEL) as client:
        done = await client.request("agent/prompt", prompt("go", wait=True))
        with pytest.raises(ClientError) as complete:
            await client.request("agent/run/retry", {"run": done["run"]})
        assert (complete.value.code, complete.value.data["kind"]) == (-32803, "RunNotActive")
        with pytest.raises(ClientError) as unknown:
            await client.request("agent/run/retry", {"run": "never"})
        assert (unknown.value.code, unknown.value.data["kind"]) == (-32801, "RunMismatch")
        with pytest.raises(ClientError) as shapeless:
            await client.request("agent/run/retry", {})
        assert shapeless.value.code == -32602
