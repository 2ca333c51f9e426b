"""A tool of an extension that takes too long is stopped; the model is told, and the run goes on."""

from pathlib import Path

import anyio
import pytest
from typing_extensions import override

from agent_core.assembly.config import session_options
from agent_core.events import QuestionRequested, RunEnded, ToolEnded, ToolRunning
from agent_core.kernel import SystemClock
from agent_core.resources.settings.values import SettingsValues
from agent_core.session.context import SessionOptions, WorkspaceContext
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import text_result
from agent_core.workspace import Workspace
from agent_core.workspace.files.disk.disk_files import DiskFiles
from agent_core.workspace.processes.disk_processes import DiskProcess, DiskProcesses
from tests.support.hooks.extensions import Extended, Home, extended
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.workspace.tools import FunctionTool

TOOLS = """
import asyncio
import threading
import anyio
from pathlib import Path

stopped = []
never = threading.Event()

def extension(api):
    def tool(function):
        return api.tool(description="does something", parameters={"type": "object"}, kind="read")(function)

    @tool
    async def sleeps(arguments, ctx):
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            stopped.append("sleeps")
            raise

    @tool
    async def breaks(arguments, ctx):
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("in its clean-up")

    @tool
    async def answers_too_late(arguments, ctx):
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "too late"

    @tool
    async def ignores(arguments, ctx):
        while True:
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                pass

    @tool
    async def shields(arguments, ctx):
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()

    @tool
    def blocks(arguments, ctx):
        never.wait(20)

    @tool
    async def quick(arguments, ctx):
        return "in time"

    @tool
    async def cancels_itself(arguments, ctx):
        asyncio.current_task().cancel()
        await anyio.sleep_forever()

    @tool
    async def confirms(arguments, ctx):
        return "yes" if await ctx.ui.confirm("Go on?") else "no"

    @tool
    def asks(arguments, ctx):
        return "yes" if ctx.wait(ctx.ui.confirm("Go on?")) else "no"

    @tool
    async def runs(arguments, ctx):
        await ctx.exec("sleep", ["60"])

    @tool
    async def stops(arguments, ctx):
        return ",".join(stopped)
"""


LIMIT_S = 0.05


def options(limit_s: float = LIMIT_S, grace_s: float = LIMIT_S) -> SessionOptions:
    return SessionOptions(tool_timeout_s=limit_s, tool_grace_s=grace_s)


async def results(it: Extended) -> list[str]:
    """Run one prompt; gives what the tools returned."""
    events = await it.say("go")
    (ended,) = [one for one in events if isinstance(one, RunEnded)]
    assert ended.status == "completed"
    return it.bench.results()


STOPPED = " was stopped because it did not finish within 0.05 s (toolTimeoutS)."
ABANDONED = " It ignores its cancellation and may still be working."


@pytest.mark.parametrize(
    ("tool", "still"),
    [
        ("sleeps", ""),
        ("breaks", ""),
        ("answers_too_late", ""),
        ("blocks", ""),
        ("ignores", ABANDONED),
        ("shields", ABANDONED),
    ],
)
async def test_a_tool_that_takes_too_long_is_stopped_and_the_run_goes_on(
    home: Home, tool: str, still: str
) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call(tool, {}, id="c1"), call("quick", {}, id="c2"), say("Done.")])
    async with extended(home, model, options=options()) as it:
        first, second = await results(it)
        assert first == (
            f"{tool}{STOPPED}{still} How much of it was done is not known: look at what is there before you repeat it, "
            "ask for less in one call, or go on without it. The user can raise toolTimeoutS in the settings."
        )
        assert second == "in time"
        (ended, _) = [one for one in it.bench.seen() if isinstance(one, ToolEnded)]
        assert (ended.status, ended.details) == ("error", {"happened": f"{tool}{STOPPED}{still}"})
        assert ended.duration_ms is not None


async def test_a_stopped_tool_is_cancelled(home: Home) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call("sleeps", {}, id="c1"), call("stops", {}, id="c2"), say("Done.")])
    async with extended(home, model, options=options()) as it:
        assert (await results(it))[1] == "sleeps"


async def test_a_program_of_a_stopped_tool_is_ended(home: Home) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call("runs", {}, id="c1"), say("Done.")])
    started: list[DiskProcess] = []

    class Recorded(DiskProcesses):
        @override
        async def start(self, argv, **options) -> DiskProcess:
            started.append(await super().start(argv, **options))
            return started[-1]

    workspace = Workspace(
        roots=(home.root,),
        files=DiskFiles((home.root,), home.root),
        processes=Recorded(),
        env=home.env,
    )
    context = WorkspaceContext(workspace=workspace, permissions=PermissionState(mode="yolo"))
    async with extended(home, model, options=options(grace_s=4), workspace=context) as it:
        (result,) = await results(it)
        assert result.startswith(f"runs{STOPPED} How much")
        (process,) = started
        assert (await process.wait()).signal is not None


@pytest.mark.parametrize("tool", ["confirms", "asks"])
async def test_the_time_in_which_a_person_is_asked_does_not_count(home: Home, tool: str) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call(tool, {}, id="c1"), say("Done.")])
    async with extended(home, model, options=options(limit_s=0.5), clock=SystemClock()) as it:
        _ = await it.bench.session.prompt("go")
        _ = await it.bench.until(QuestionRequested)
        late_s = anyio.current_time() + 0.55
        await it.holds(lambda: anyio.current_time() > late_s)
        assert await it.answer(value=True) == "slow: Go on?"
        _ = await it.bench.idle()
        assert it.bench.results() == ["yes"]


async def test_a_tool_that_cancels_its_own_task_fails_alone(home: Home) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call("cancels_itself", {}, id="c1"), say("Done.")])
    async with extended(home, model, options=options(limit_s=60)) as it:
        (result,) = await results(it)
        assert result == (
            "Tool cancels_itself failed: RuntimeError: it cancelled the task that it ran in"
        )


@pytest.mark.parametrize("tool", ["sleeps", "ignores", "shields"])
async def test_the_user_stops_a_run_whose_tool_ignores_its_cancellation(
    home: Home, tool: str
) -> None:
    _ = home.write("slow.py", TOOLS)
    model = ScriptedModel([call(tool, {}, id="c1"), say("Done.")])
    async with extended(home, model, options=options(limit_s=60)) as it:
        _ = await it.bench.session.prompt("go")
        _ = await it.bench.until(ToolRunning)
        cancelled = await it.bench.session.abort()
        assert (cancelled.status, cancelled.timed_out) == ("cancelled", False)
        assert it.bench.results() == ["Operation aborted"]


async def test_tools_of_tiller_and_of_the_caller_have_no_such_limit(home: Home) -> None:
    async def work(arguments, context):
        with context.pause():
            return text_result("in its own time")

    model = ScriptedModel([call("work", {}, id="c1"), say("Done.")])
    async with extended(
        home, model, tools=[FunctionTool("work", work)], options=options(limit_s=1e-9)
    ) as it:
        assert await results(it) == ["in its own time"]


@pytest.mark.parametrize(
    ("written", "limit_s"), [({}, 600), ({"toolTimeoutS": 0}, None), ({"toolTimeoutS": None}, None)]
)
def test_the_setting_is_in_seconds_and_none_or_zero_is_no_limit(
    written: dict[str, float | None], limit_s: float | None
) -> None:
    values = SettingsValues.model_validate(written)
    assert session_options(values, scratch=Path()).tool_timeout_s == limit_s
