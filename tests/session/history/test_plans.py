"""A plan waits for its answer: shown, approved, changed, rejected, and never mixed up with another one."""

from typing import Any

import pytest

from agent_core.events import ToolEnded
from agent_core.kernel.errors import SessionBusy, UsageError
from agent_core.kernel.json import as_object
from agent_core.messages import UserMessage, text_of
from agent_core.session.history.plans import OpenPlan, answer_plan, open_plan
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin.plan import plan_hash, plan_tool
from tests.support.session.held_log import held
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import echo

TEXT = "# Move the parser\n\nInto a module of its own."
HASH = plan_hash(TEXT)
STEPS = ["Make the module", "Move\nthe code", " "]


def planned(text: str = TEXT, **more: Any) -> Any:
    return call("plan", {"markdown": text, **more})


def planning(*turns: Any, **more: Any) -> Any:
    """Open a session in mode plan, in which the tool plan is offered."""
    state = PermissionState(mode="plan")
    tools = (plan_tool(lambda: state.mode == "plan"), echo())
    return bench(ScriptedModel(turns), tools=tools, standing=state, **more)


async def plan_of(it: Bench, text: str = "Plan it.") -> OpenPlan:
    await it.session.prompt(text)
    _ = await it.idle()
    found = open_plan(it.session.info.messages)
    assert found is not None
    return found


def last_prompt(it: Bench) -> str:
    last = it.model.requests[-1].messages[-1]
    assert isinstance(last, UserMessage)
    return text_of(last.content)


async def test_a_plan_is_stored_with_its_hash_and_ends_with_the_turn() -> None:
    async with planning(planned(steps=STEPS), say("Here it is.")) as it:
        plan = await plan_of(it)
        assert plan == OpenPlan(revision=1, sha256=HASH, markdown=TEXT)
        (result,) = it.results()
        assert "The user sees the plan" in result
        (ended,) = [one for one in it.seen() if isinstance(one, ToolEnded)]
        assert as_object(as_object(ended.details)["plan"]) == {
            "markdown": TEXT,
            "steps": [
                {"text": "Make the module", "status": "pending"},
                {"text": "Move the code", "status": "pending"},
            ],
            "sha256": HASH,
        }


@pytest.mark.parametrize(("answer", "mode"), [("approve", "ask"), ("approveAuto", "auto")])
async def test_an_approval_leaves_the_mode_and_begins_the_work(answer: Any, mode: str) -> None:
    async with planning(planned(), say("Here."), say("Working.")) as it:
        plan = await plan_of(it)
        receipt = await answer_plan(it.session, answer, sha256=plan.sha256, revision=1)
        assert receipt is not None
        _ = await it.idle()
        assert it.session.info.config.mode == mode
        assert last_prompt(it) == ("I approve the plan (revision 1). Carry it out.")
        assert [tool.name for tool in it.model.requests[-1].tools] == ["echo"]
        assert open_plan(it.session.info.messages) is None


async def test_an_edited_plan_is_sent_whole() -> None:
    async with planning(planned(), say("Here."), say("Working.")) as it:
        plan = await plan_of(it)
        edited = f"{TEXT}\nAnd a test."
        _ = await answer_plan(it.session, "approve", sha256=plan.sha256[:12], text=edited)
        _ = await it.idle()
        assert last_prompt(it).endswith(f"Carry it out.\n\n{edited}")


async def test_a_change_keeps_the_mode_and_brings_another_revision() -> None:
    second = f"{TEXT} With a test."
    async with planning(planned(), say("Here."), planned(second), say("Here.")) as it:
        first = await plan_of(it)
        _ = await answer_plan(it.session, "change", sha256=first.sha256, text="Add a test.")
        _ = await it.idle()
        assert it.session.info.config.mode == "plan"
        plan = open_plan(it.session.info.messages)
        assert plan == OpenPlan(revision=2, sha256=plan_hash(second), markdown=second)
        with pytest.raises(UsageError, match="another plan: revision 2"):
            _ = await answer_plan(it.session, "approve", sha256=first.sha256)
        with pytest.raises(UsageError, match="another plan: revision 2"):
            _ = await answer_plan(it.session, "approve", sha256=plan_hash(second), revision=1)
        assert it.session.info.config.mode == "plan"


async def test_a_rejection_keeps_the_mode_starts_nothing_and_is_sent_with_the_next_prompt() -> None:
    async with planning(planned(), say("Here."), say("I see.")) as it:
        plan = await plan_of(it)
        assert await answer_plan(it.session, "reject", sha256=plan.sha256) is None
        assert len(it.model.requests) == 2
        assert it.session.info.config.mode == "plan"
        with pytest.raises(UsageError, match="no plan waits for an answer"):
            _ = await answer_plan(it.session, "approve", sha256=plan.sha256)
        await it.session.prompt("What now?")
        _ = await it.idle()
        assert "I reject the plan (revision 1)" in str(it.model.requests[-1].messages)


async def test_a_plan_waits_also_after_its_process_is_gone() -> None:
    log, opened = await held()
    async with planning(planned(), say("Here."), opened=opened) as it:
        plan = await plan_of(it)
    _, again = await held(tuple(log.written))
    async with planning(say("Working."), opened=again) as it:
        assert open_plan(it.session.info.messages) == plan
        assert await answer_plan(it.session, "approve", sha256=plan.sha256) is not None
        _ = await it.idle()
        assert it.session.info.config.mode == "ask"


async def test_an_approval_that_cannot_begin_leaves_the_mode_as_it_was() -> None:
    gate = Gate()
    async with planning(planned(), say("Here."), (gate, *say("Later."))) as it:
        plan = await plan_of(it)
        await it.session.add("More to think of.", custom_type="x", delivery="followUp")
        with pytest.raises(SessionBusy, match="a run is going on"):
            _ = await answer_plan(it.session, "approve", sha256=plan.sha256)
        assert it.session.info.config.mode == "plan"
        gate.release()
        _ = await it.idle()


async def test_answers_that_cannot_be_meant_change_nothing() -> None:
    async with planning(planned(), say("Here.")) as it:
        plan = await plan_of(it)
        for hash_ in ("", plan.sha256[:11], "0" * 64):
            with pytest.raises(UsageError, match="another plan"):
                _ = await answer_plan(it.session, "approve", sha256=hash_)
        with pytest.raises(UsageError, match="say what is to be different"):
            _ = await answer_plan(it.session, "change", sha256=plan.sha256, text=" ")
        with pytest.raises(UsageError, match="the edited plan is empty"):
            _ = await answer_plan(it.session, "approve", sha256=plan.sha256, text="\n")
        assert it.session.info.config.mode == "plan"
        assert open_plan(it.session.info.messages) == plan


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"markdown": " \n"}, "The plan has no text"),
        ({"markdown": "x" * 100_001}, "The plan is too long"),
        ({"markdown": "x", "steps": ["y"] * 51}, "The plan is too long"),
    ],
)
async def test_a_plan_without_text_or_without_end_is_an_error_to_the_model(
    arguments: Any, why: str
) -> None:
    async with planning(call("plan", arguments), say("Oh.")) as it:
        await it.session.prompt("Plan it.")
        _ = await it.idle()
        assert why in it.results()[0]
        assert open_plan(it.session.info.messages) is None


async def test_the_tool_is_offered_in_mode_plan_only() -> None:
    async with planning(say("1"), say("2")) as it:
        await it.session.prompt("a")
        _ = await it.idle()
        _ = it.session.info.configure(mode="ask")
        await it.session.prompt("b")
        _ = await it.idle()
        offered = [[tool.name for tool in request.tools] for request in it.model.requests]
        assert offered == [["plan", "echo"], ["echo"]]
