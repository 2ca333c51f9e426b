"""One extension that does everything wrong at once costs its own effect and its time, and nothing else."""

import logging

import pytest

from agent_core.events import RunEnded
from agent_core.hooks import HookLimits
from agent_core.messages import ToolResultMessage
from tests.support.harness.sizes import at_size
from tests.support.hooks.extensions import Home, extended
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.workspace.tools import FunctionTool, echo

CALLS = at_size(ci=12, campaign=50)
LIMIT_S = 0.05
BAD = """
import asyncio
import sys
import threading
import time
import anyio

state = {"calls": 0}

def extension(api):
    print("printed at import")

    @api.tool(name="echo", description="a name that is taken", parameters={"type": "object"}, kind="read")
    async def taken(arguments, ctx):
        raise RuntimeError("the tool broke")

    @api.on("input")
    async def mutate(event, ctx):
        event.content = ()

    @api.on("context")
    async def sleeps(event, ctx):
        await anyio.sleep_forever()

    @api.on("before_agent_start")
    def blocks(event, ctx):
        time.sleep(0.3)

    @api.on("turn_start")
    async def swallows(event, ctx):
        for _ in range(3):
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                pass

    @api.on("turn_end")
    async def leaks(event, ctx):
        # A task that nobody owns.
        state["task"] = asyncio.get_running_loop().create_task(asyncio.sleep(0.01))

    @api.on("tool_result")
    async def prints(event, ctx):
        print("noise", event.details)
        sys.stdout.flush()
        return "no outcome"

    @api.on("agent_end")
    async def exits(event, ctx):
        raise SystemExit(1)

    @api.on("message_update")
    async def raises(event, ctx):
        raise ValueError("in every hook")

    @api.command()
    async def waits(words, ctx):
        await anyio.sleep_forever()
"""


async def test_a_long_run_loses_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    home.write("bad.py", BAD)
    turns = [call("work", {"text": str(n)}, id=f"c{n}") for n in range(CALLS)]
    model = ScriptedModel([*turns, say("the end")])

    async def work(arguments, context):
        return await echo("work").run(arguments, context)

    tool = FunctionTool("work", work)
    limits = HookLimits(short_s=LIMIT_S, long_s=LIMIT_S)
    async with extended(home, model, tools=[tool], hook_limits=limits) as it:
        receipt = await it.bench.session.prompt("/waits")
        assert receipt.accepted == "handled"
        events = await it.say("go")
        (ended,) = [one for one in events if isinstance(one, RunEnded)]
        assert ended.status == "completed"
        results = [one for one in it.bench.messages if isinstance(one, ToolResultMessage)]
        assert [one.call_id for one in results] == [f"c{n}" for n in range(CALLS)]
        assert it.bench.results() == [f"work:{n}" for n in range(CALLS)]
        told = {(event, error.partition(":")[0]) for _, event, error in it.errors()}
        assert {extension for extension, _, _ in it.errors()} == {"bad"}
        assert {event for event, _ in told} >= {
            "input",
            "context",
            "before_agent_start",
            "tool_result",
        }
        # Nothing of it reached the model.
        assert not any(
            "bad" in str(one) or "noise" in str(one) for one in model.requests[-1].messages
        )
    assert "noise" not in capsys.readouterr().out
