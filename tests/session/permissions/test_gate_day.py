"""How often a person is asked on an ordinary day: seldom, and never twice what was answered for good."""

from collections import Counter

import pytest

from agent_core.events import PermissionRequest, PermissionRequested, RunEnded, ToolEnded
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import text_result
from agent_core.workspace.permissions.call_permission import PolicyMode, SandboxLevel
from tests.session.permissions.ordinary_day import CALLS, ordinary_day
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import MemoryRules
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import bench
from tests.support.workspace.tools import FunctionTool

MOST_QUESTIONS = 3


async def work(arguments, context):
    return text_result("done")


async def live_through(
    mode: PolicyMode, containment: SandboxLevel
) -> tuple[list[tuple[PermissionRequest, str]], list[str]]:
    """Let an agent do the day's work and answer as a patient person would: yes, and always where that is offered."""
    days = ordinary_day()
    turns = [call(one.tool, one.arguments, id=f"c{at}") for at, one in enumerate(days)]
    tools = [
        FunctionTool("bash", work, kind="execute"),
        FunctionTool("write", work, kind="edit"),
        FunctionTool("read", work, kind="read"),
    ]
    standing = PermissionState(mode=mode, containment=lambda: containment, keeper=MemoryRules())
    answered: list[tuple[PermissionRequest, str]] = []
    async with bench(
        ScriptedModel([*turns, say("done")]),
        tools=tools,
        standing=standing,
        clock=HeldClock(),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
    ) as it:
        await it.session.prompt("work")
        while not any(isinstance(one, RunEnded) for one in it.seen()):
            for request in it.session.permissions.pending:
                kinds = {one.kind: one.id for one in request.options}
                option = kinds.get("allowProject", kinds["allowOnce"])
                receipt = it.session.permissions.answer(request.request, option)
                if receipt.status == "recorded":
                    answered.append((request, option))
            await it.reader.wait()
        events = await it.idle()
        assert len([one for one in events if isinstance(one, PermissionRequested)]) == len(answered)
        return answered, [one.status for one in events if isinstance(one, ToolEnded)]


@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.timeout(120)
async def test_contained_an_ordinary_day_asks_at_most_three_times(mode: PolicyMode) -> None:
    answered, statuses = await live_through(mode, "full")
    print(f"{CALLS} calls, contained, mode {mode}: {len(answered)} questions")
    for request, option in answered:
        print(f"  {request.title} -> {option}")
    assert statuses == ["ok"] * CALLS
    assert len(answered) <= MOST_QUESTIONS
    _check_never_again(answered)


@pytest.mark.timeout(120)
async def test_with_nothing_contained_more_is_asked_but_nothing_that_was_answered_for_good() -> (
    None
):
    answered, statuses = await live_through("ask", "none")
    for_good = [option for _, option in answered if option != "allowOnce"]
    print(f"{CALLS} calls, not contained: {len(answered)} questions, {len(for_good)} for good")
    assert statuses == ["ok"] * CALLS
    _check_never_again(answered)


def _check_never_again(answered: list[tuple[PermissionRequest, str]]) -> None:
    """Check that what was answered for good was asked once."""
    rules = Counter(
        next(one.rule.id for one in request.options if one.id == option and one.rule)
        for request, option in answered
        if option != "allowOnce"
    )
    assert [rule for rule, count in rules.items() if count > 1] == []
