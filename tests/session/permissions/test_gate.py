"""A call that may not run by itself waits for a person: how it is asked, answered, refused and withdrawn."""

from typing import Any

import anyio
import pytest

from agent_core.events import (
    PermissionRequested,
    PermissionResolved,
    RunEnded,
    SessionStateChanged,
)
from agent_core.kernel import RunId
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import as_object
from agent_core.messages import ToolResultMessage
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.permissions.permission_prompts import AnswerReceipt
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import CustomEntry
from tests.support.harness.clock import HeldClock
from tests.support.session.asking import (
    PATH,
    asked,
    command_tool,
    ended,
    model_of,
    result_of,
    run,
)
from tests.support.session.scripted_model import ScriptedModel, both, say
from tests.support.session.sessions import Bench, bench


def happened(it: Bench) -> object:
    """Return what people are told of the last tool call."""
    last = [one for one in it.messages if isinstance(one, ToolResultMessage)][-1]
    return as_object(last.details).get("happened")


async def test_a_command_waits_until_a_person_allows_it() -> None:
    tool = command_tool()
    async with bench(model_of("make install"), tools=[tool], mode="ask", clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert (request.subject.command, request.subject.sandbox) == ("make install", "none")
        assert request.option(request.default).kind == "rejectOnce"
        snapshot = it.session.info.snapshot()
        assert (snapshot.state, snapshot.pending) == ("requiresAction", (request,))
        assert tool.calls == []
        receipt = it.session.permissions.answer(request.request, "allowOnce", by="panel")
        assert receipt == AnswerReceipt(status="recorded", by="panel")
        assert await ended(it) == ["ok"]
        assert it.session.permissions.pending == ()
        late = it.session.permissions.answer(request.request, "rejectOnce", by="other")
        assert late == AnswerReceipt(status="alreadyResolved", by="panel")
        names = it.names()
        assert names.index("permission.requested") < names.index("permission.resolved")
        assert names.index("permission.resolved") < names.index("tool.running")
        states = [one.state for one in it.seen() if isinstance(one, SessionStateChanged)]
        assert states == ["running", "requiresAction", "running", "idle"]


async def test_the_question_names_the_item_that_people_see() -> None:
    async with bench(
        model_of("make a"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        view: Any = it.session.info.snapshot().run
        assert request.item in {one.item for one in view.items if one.kind == "tool"}
        assert request.run == view.run
        it.session.permissions.answer(request.request, "rejectOnce")
        await it.idle()


async def test_a_refusal_and_its_note_reach_the_model() -> None:
    tool = command_tool()
    async with bench(model_of("make x"), tools=[tool], mode="ask", clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "rejectOnce", note="use ninja")
        assert await ended(it) == ["blocked"]
        assert tool.calls == []
        assert "the user refused this" in it.results()[0]
        assert "They said: use ninja" in it.results()[0]
        assert happened(it) == "You rejected this: use ninja"


async def test_silence_is_a_no() -> None:
    clock = HeldClock()
    standing = PermissionState(mode="ask", timeout_s=300)
    async with bench(
        model_of("make x"), tools=[command_tool()], clock=clock, standing=standing
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert request.expires_ms == request.since_ms + 300_000
        while not clock.slept:
            await anyio.lowlevel.checkpoint()
        clock.advance(299)
        assert it.session.permissions.pending == (request,)
        clock.advance(1)
        assert await ended(it) == ["blocked"]
        assert "no answer" in it.results()[0]
        assert happened(it) == "Not run: the question had no answer for 300 s."
        resolved = next(one for one in it.seen() if isinstance(one, PermissionResolved))
        assert (resolved.option, resolved.by) == ("rejectOnce", "timeout")
        late = it.session.permissions.answer(request.request, "allowOnce")
        assert late == AnswerReceipt(status="expired", by="timeout")


async def test_a_cancelled_run_withdraws_its_question() -> None:
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        result = await it.session.abort()
        assert result.status == "cancelled"
        resolved = next(one for one in it.seen() if isinstance(one, PermissionResolved))
        assert (resolved.option, resolved.by) == (None, "cancelled")
        assert it.session.permissions.pending == ()
        assert it.session.info.snapshot().state == "idle"
        late = it.session.permissions.answer(request.request, "allowOnce")
        assert late.status == "alreadyResolved"


async def test_three_refusals_end_the_run_and_what_is_left_of_a_batch_is_not_asked() -> None:
    batch = both(*(run(f"make {at}", call_id=f"c{at}") for at in range(5)))
    tool = command_tool()
    async with bench(ScriptedModel([batch]), tools=[tool], mode="ask", clock=HeldClock()) as it:
        await it.session.prompt("go")
        for count in (1, 2, 3):
            request = await asked(it, count)
            it.session.permissions.answer(request.request, "rejectOnce")
        result = await result_of(it)
        assert result.status == "refused"
        assert result.error.kind == "TooManyDenials"
        assert await ended(it) == ["blocked"] * 5
        assert len([one for one in it.seen() if isinstance(one, PermissionRequested)]) == 3
        assert len(it.model.requests) == 1
        assert tool.calls == []
        # The next run begins anew.
        it.model.add(run("make again"), say("ok"))
        await it.session.prompt("again")
        request = await asked(it, 4)
        it.session.permissions.answer(request.request, "allowOnce")
        assert (await result_of(it)).status == "completed"


async def test_steering_neither_answers_nor_withdraws_a_question() -> None:
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        receipt = await it.session.steer("hurry")
        assert receipt.accepted == "steered"
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert it.session.permissions.pending == (request,)
        it.session.permissions.answer(request.request, "allowOnce")
        await anyio.lowlevel.checkpoint()
        await it.idle()


async def test_an_unknown_option_is_refused_and_the_question_stays() -> None:
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        with pytest.raises(UsageError, match="no option 'yes'; there are allowOnce"):
            it.session.permissions.answer(request.request, "yes")
        assert it.session.permissions.pending == (request,)
        it.session.permissions.answer(request.request, "rejectOnce")
        await it.idle()
    assert it.session.permissions.answer("nothing", "allowOnce").status == "expired"


async def test_a_stricter_mode_is_in_force_before_the_answer_counts() -> None:
    tool = command_tool()
    async with bench(model_of("make x"), tools=[tool], mode="ask", clock=HeldClock()) as it:
        await it.session.prompt("go")
        request = await asked(it)
        it.session.info.configure(mode="plan")
        it.session.permissions.answer(request.request, "allowOnce")
        assert await ended(it) == ["blocked"]
        assert "plan mode" in it.results()[0]
        assert tool.calls == []


@pytest.mark.parametrize("fallback", ["rules", "deny"])
async def test_where_nobody_can_be_asked_the_model_hears_what_would_allow_it(fallback) -> None:
    standing = PermissionState(mode="ask", fallback=fallback)
    async with bench(
        model_of("make a", "make b", "make c", "make d"),
        tools=[command_tool()],
        standing=standing,
        env={"PATH": PATH},
    ) as it:
        await it.session.prompt("go")
        result = await result_of(it)
        assert await ended(it) == ["blocked"] * 3
        assert "a rule for 'make a' in policy.json, or `--permission yolo`" in it.results()[0]
        assert (result.status, result.error.kind) == ("refused", "TooManyDenials")
        assert "permission.requested" not in it.names()


async def test_question_and_answer_stand_in_the_file_before_they_are_told() -> None:
    store = MemoryStore()
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock(), store=store
    ) as it:
        await it.session.prompt("go")
        request = await asked(it)
        assert [one["op"] for one in _kept(it)] == ["asked"]
        it.session.permissions.answer(request.request, "allowOnce", by="panel")
        await it.until(PermissionResolved)
        assert [one["op"] for one in _kept(it)] == ["asked", "answered"]
        assert _kept(it)[1]["by"] == "panel"
        await it.idle()


def _kept(it: Bench) -> list[Any]:
    return [
        one.data
        for one in it.session.info.entries
        if isinstance(one, CustomEntry) and one.custom_type == "tiller.permission"
    ]


async def test_a_run_that_is_over_leaves_nothing_behind() -> None:
    async with bench(
        model_of("make x"), tools=[command_tool()], mode="ask", clock=HeldClock()
    ) as it:
        receipt = await it.session.prompt("go")
        request = await asked(it)
        it.session.permissions.answer(request.request, "rejectOnce")
        await it.idle()
        assert isinstance(it.seen()[-2], RunEnded)
        assert not it.session.permissions._broker.prompts.is_over(RunId(receipt.run or ""))
