"""Questions about what is meant: who answers, what silence means, and what a run's end withdraws."""

from typing import Any

import anyio
import pytest

from agent_core.events import (
    Answers,
    PermissionRequest,
    PermissionRequested,
    Question,
    QuestionLine,
    QuestionOption,
    QuestionRequested,
    QuestionResolved,
    RunEnded,
    TargetSubject,
)
from agent_core.kernel import ItemId, SessionId
from agent_core.kernel.errors import UsageError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.redaction import EventRedaction
from agent_core.tools import text_result
from agent_core.transcript.entries import CustomEntry
from tests.support.harness.clock import FakeClock, HeldClock
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench
from tests.support.workspace.tools import FunctionTool

COLOUR = QuestionLine(
    id="colour",
    text="Which colour?",
    kind="choice",
    options=(QuestionOption(id="r", label="Red"), QuestionOption(id="g", label="Green")),
)
NAME = QuestionLine(id="name", text="What is it called?", kind="text")
SURE = QuestionLine(id="sure", text="Really?", kind="confirm", default=False)
FORM = (COLOUR, NAME, SURE)


def asking(*lines: QuestionLine, **how: Any) -> FunctionTool:
    """Make a tool that asks and tells the model what came of it."""

    async def work(arguments, context):
        answers = await context.ask(lines, **how)
        return text_result(f"{answers.answers} by {answers.by}")

    return FunctionTool("ask", work)


def asks() -> ScriptedModel:
    return ScriptedModel([call("ask", {}, id="c1"), say("done")])


async def asked(it: Bench, count: int = 1) -> Question:
    event = await it.until(QuestionRequested, count)
    assert isinstance(event, QuestionRequested)
    return event.request


async def test_a_tool_asks_and_gets_what_a_person_answers() -> None:
    async with bench(asks(), tools=[asking(*FORM)], clock=HeldClock()) as it:
        receipt = await it.session.prompt("go")
        question = await asked(it)
        now = it.session.info.snapshot()
        assert (now.state, now.pending) == ("requiresAction", (question,))
        assert (question.run, question.questions) == (receipt.run, FORM)
        said = it.session.questions.answer(
            question.request, {"colour": "g", "name": "Ann"}, by="panel"
        )
        assert said.status == "recorded"
        events = await it.idle()
        assert it.results() == ["{'colour': 'g', 'name': 'Ann', 'sure': False} by panel"]
        (resolved,) = [one for one in events if isinstance(one, QuestionResolved)]
        assert (resolved.request, resolved.by) == (question.request, "panel")
        assert it.session.info.snapshot().state == "idle"
        late = it.session.questions.answer(question.request, None, by="other")
        assert (late.status, late.by) == ("alreadyResolved", "panel")


async def test_the_question_is_in_the_file_before_it_is_told_and_its_answer_too() -> None:
    async with bench(asks(), tools=[asking(SURE)], clock=HeldClock()) as it:
        await it.session.prompt("go")
        question = await asked(it)
        written = [
            one.data
            for one in it.session.info.entries
            if isinstance(one, CustomEntry) and one.custom_type == "tiller.question"
        ]
        assert [one["op"] for one in written if isinstance(one, dict)] == ["asked"]
        it.session.questions.answer(question.request, {"sure": True})
        await it.idle()
        last = [
            one.data
            for one in it.session.info.entries
            if isinstance(one, CustomEntry) and one.custom_type == "tiller.question"
        ][-1]
        assert last == {
            "op": "answered",
            "request": question.request,
            "answers": {"sure": True},
            "by": "user",
        }


@pytest.mark.parametrize(
    ("lines", "result"),
    [((SURE,), "{'sure': False} by timeout"), ((SURE, NAME), "None by timeout")],
    ids=["all have a default", "one has none"],
)
async def test_silence_is_the_default_of_every_line_or_no_answer(lines, result: str) -> None:
    clock = FakeClock()
    async with bench(asks(), tools=[asking(*lines, timeout_s=30)], clock=clock) as it:
        await it.session.prompt("go")
        await it.idle()
        assert it.results() == [result]
        assert 30 in clock.slept


async def test_a_cancelled_run_withdraws_its_question() -> None:
    async with bench(asks(), tools=[asking(*FORM)], clock=HeldClock()) as it:
        await it.session.prompt("go")
        question = await asked(it)
        await it.session.abort()
        events = await it.idle()
        names = [type(one) for one in events]
        (resolved,) = [one for one in events if isinstance(one, QuestionResolved)]
        assert (resolved.by, resolved.answers) == ("cancelled", None)
        assert names.index(QuestionResolved) < names.index(RunEnded)
        assert it.session.info.snapshot().pending == ()
        assert it.session.questions.answer(question.request, {}).status == "alreadyResolved"


async def test_where_nobody_is_to_be_asked_the_defaults_count_at_once() -> None:
    standing = PermissionState(mode="yolo", fallback="rules")
    async with bench(asks(), tools=[asking(SURE)], standing=standing) as it:
        await it.session.prompt("go")
        assert not [one for one in await it.idle() if isinstance(one, QuestionRequested)]
        assert it.results() == ["{'sure': False} by policy"]


async def test_a_question_that_holds_nothing_up_leaves_the_state_alone() -> None:
    async with bench(asks(), tools=[asking(SURE, blocking=False)], clock=HeldClock()) as it:
        await it.session.prompt("go")
        question = await asked(it)
        assert it.session.info.snapshot().state == "running"
        it.session.questions.answer(question.request, {"sure": True})
        await it.idle()


async def test_a_program_may_ask_while_nothing_runs() -> None:
    found: list[Answers] = []
    async with (
        bench(ScriptedModel([]), clock=HeldClock()) as it,
        anyio.create_task_group() as group,
    ):

        async def ask() -> None:
            found.append(await it.session.questions.ask([SURE]))

        group.start_soon(ask)
        question = await asked(it)
        assert question.run is None
        assert it.session.info.snapshot().state == "requiresAction"
        it.session.questions.answer(question.request, {"sure": True}, by="me")
        await it.until(QuestionResolved)
        assert it.session.info.snapshot().state == "idle"
    assert found == [Answers(answers={"sure": True}, by="me")]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({}, "has no answer and no default"),
        ({"colour": "b", "name": "x"}, "takes one or more of r, g, not 'b'"),
        ({"colour": [], "name": "x"}, "takes one or more of r, g"),
        ({"colour": ["r", 1], "name": "x"}, "takes one or more of r, g"),
        ({"colour": "r", "name": True}, "takes a text"),
        ({"colour": "r", "name": "x" * 20_001}, "takes a text of at most 20000"),
        ({"colour": "r", "name": "x", "sure": "yes"}, "takes true or false, not 'yes'"),
        ({"colour": "r", "name": "x", "age": "7"}, "has no line 'age'"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_still_waits(
    answers: dict[str, object], why: str
) -> None:
    async with bench(asks(), tools=[asking(*FORM)], clock=HeldClock()) as it:
        await it.session.prompt("go")
        question = await asked(it)
        with pytest.raises(UsageError, match=why):
            it.session.questions.answer(question.request, answers)
        assert it.session.questions.pending == (question,)
        it.session.questions.answer(question.request, {"colour": ["g", "r"], "name": ""})
        await it.idle()
        assert it.results() == ["{'colour': ('g', 'r'), 'name': '', 'sure': False} by user"]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((), "1 to 20 lines"),
        ((SURE, SURE), "same id"),
        ((QuestionLine(id="a", text=" ", kind="text"),), "says nothing"),
        ((QuestionLine(id="a", text="b", kind="choice"),), "options"),
        ((QuestionLine(id="a", text="b", kind="confirm", default="yes"),), "true or false"),
    ],
)
async def test_what_cannot_be_answered_is_not_asked(lines, why: str) -> None:
    async with bench(asks(), tools=[asking(*lines)]) as it:
        await it.session.prompt("go")
        await it.idle()
        assert why in it.results()[0]


async def test_a_key_that_is_held_is_in_no_question_that_is_told() -> None:
    key = "held-Value-0123456789"
    line = QuestionLine(id="a", text=f"Use {key}?", kind="confirm")
    redactor = Redactor([key])
    async with bench(asks(), tools=[asking(line)], clock=HeldClock(), redactor=redactor) as it:
        await it.session.prompt("go")
        question = await asked(it)
        assert key not in repr(question)
        it.session.questions.answer(question.request, {"a": True})
        await it.idle()
        assert key not in repr(it.session.info.entries)


def test_a_key_that_is_held_is_in_no_permission_that_is_told() -> None:
    key = "held-Value-0123456789"
    request = PermissionRequest(
        request="p",
        session=SessionId("s"),
        run=None,
        item=ItemId("i"),
        title=f"Run curl {key}",
        description=None,
        risk="low",
        since_ms=0,
        expires_ms=None,
        subject=TargetSubject(type="tool", tool="t", sandbox="none", input={"a": key}),
        options=(),
        default="",
    )
    (told,) = EventRedaction(Redactor([key]), FakeClock()).clean(
        PermissionRequested(run=None, request=request)
    )
    assert key not in repr(told)
