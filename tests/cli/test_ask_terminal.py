"""The person at the terminal: what is shown, and that only a clear yes is one."""

import anyio
import pytest

from agent_core.events import Event, ToolEnded
from agent_core.tools import text_result
from server.cli.ask_terminal import ask_on_terminal
from tests.support.clock import HeldClock
from tests.support.scripted_model import ScriptedModel, call, say
from tests.support.sessions import bench
from tests.support.tools import FunctionTool


async def work(arguments, context):
    return text_result("ran")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("y\n", "ok"),
        (" Y \n", "ok"),
        ("n\n", "blocked"),
        ("\n", "blocked"),
        ("", "blocked"),
        ("yes please\n", "blocked"),
        ("r\n", "blocked"),
    ],
)
async def test_only_what_was_offered_and_typed_clearly_allows(line: str, status: str) -> None:
    written: list[str] = []
    events: list[Event] = []
    model = ScriptedModel([call("bash", {"command": "make \x1b[2Kx"}), say("ok")])
    tool = FunctionTool("bash", work, kind="execute")
    async with (
        bench(model, tools=[tool], mode="ask", clock=HeldClock()) as it,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_ask, it.session, line, written)
        await anyio.lowlevel.checkpoint()
        await it.session.prompt("go")
        events += await it.idle()
        group.cancel_scope.cancel()
    assert [one.status for one in events if isinstance(one, ToolEnded)] == [status]
    assert "make <U+001B>[2Kx" in written[0]
    assert "[y] Allow once" in written[0]
    assert "[n] Reject" in written[0]


async def _ask(session, line, written) -> None:
    async def typed() -> str:
        return line

    await ask_on_terminal(session, read_line=typed, write=written.append)
