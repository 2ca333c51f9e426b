"""The tool ask: the model's question reaches the user, and what comes back tells the model how to go on."""

import pytest

from agent_core.events import Question, QuestionRequested, ToolEnded
from agent_core.kernel import JsonObject
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools.builtin import ask_tool
from tests.support.harness.clock import HeldClock
from tests.support.session.scripted_model import ScriptedModel, call, say
from tests.support.session.sessions import Bench, bench

FORM: JsonObject = {
    "questions": [
        {
            "question": "Which store?",
            "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
            "default": "SQLite",
        },
        {"question": "What is the table called?", "default": "events"},
        {"question": "Keep the old rows?", "kind": "confirm", "default": True},
    ]
}
GO_ON = "Decide yourself, go on, and name what you assumed in your last answer."


def without_defaults() -> JsonObject:
    return {"questions": [{"question": "Which store?", "options": [{"label": "SQLite"}]}]}


def model(arguments: JsonObject) -> ScriptedModel:
    return ScriptedModel([call("ask", arguments), say("Done.")])


async def asked(it: Bench) -> Question:
    event = await it.until(QuestionRequested)
    assert isinstance(event, QuestionRequested)
    return event.request


async def result(it: Bench) -> ToolEnded:
    (ended,) = [event for event in await it.idle() if isinstance(event, ToolEnded)]
    return ended


async def test_the_answers_of_the_user_reach_the_model_in_words():
    async with bench(model(FORM), tools=(ask_tool(),), clock=HeldClock()) as it:
        _ = await it.session.prompt("Build it.")
        question = await asked(it)
        assert [(line.kind, line.text) for line in question.questions] == [
            ("choice", "Which store?"),
            ("text", "What is the table called?"),
            ("confirm", "Keep the old rows?"),
        ]
        answers = {"0": "1", "1": "log", "2": False}
        _ = it.session.questions.answer(question.request, answers)
        ended = await result(it)
        assert it.results() == [
            "Which store?\n→ Postgres\nWhat is the table called?\n→ log\nKeep the old rows?\n→ no"
        ]
        assert ended.details == {
            "answers": [
                {"question": "Which store?", "answer": "Postgres"},
                {"question": "What is the table called?", "answer": "log"},
                {"question": "Keep the old rows?", "answer": "no"},
            ]
        }


async def test_a_declined_question_is_reported_to_the_model():
    async with bench(model(FORM), tools=(ask_tool(),), clock=HeldClock()) as it:
        _ = await it.session.prompt("Build it.")
        _ = it.session.questions.answer((await asked(it)).request, None)
        _ = await it.idle()
        assert it.results()[0].startswith("The user did not want to answer.")


async def test_unattended_the_defaults_are_used_and_named_as_such():
    standing = PermissionState(mode="yolo", fallback="deny")
    async with bench(model(FORM), tools=(ask_tool(),), standing=standing) as it:
        _ = await it.session.prompt("Build it.")
        _ = await it.idle()
        (said,) = it.results()
        assert said.startswith(
            "Nobody can be asked here. The defaults count:\nWhich store?\n→ SQLite"
        )
        assert said.endswith("Keep the old rows?\n→ yes")


async def test_unattended_without_defaults_the_model_has_to_decide():
    standing = PermissionState(mode="yolo", fallback="deny")
    async with bench(model(without_defaults()), tools=(ask_tool(),), standing=standing) as it:
        _ = await it.session.prompt("Build it.")
        _ = await it.idle()
        assert it.results() == [f"Nobody can be asked here. {GO_ON}"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"questions": []}, "One call asks 1 to 5 questions, this one has 0."),
        ({"questions": [{"question": "Why?"}] * 6}, "this one has 6."),
        ({"questions": [{"question": " "}]}, "says nothing"),
        ({"questions": [{"question": "A?", "options": [{"label": "x"}] * 11}]}, "has 11 options"),
        (
            {"questions": [{"question": "A?", "options": [{"label": "x"}], "default": "y"}]},
            "The default of question 1 is no answer to it",
        ),
        ({"questions": [{"question": "A?", "kind": "choice"}]}, "needs 1 to 100 options"),
    ],
    ids=["none", "many", "blank", "options", "default", "no-options"],
)
async def test_a_form_that_cannot_be_asked_is_an_error_for_the_model(arguments, why: str):
    async with bench(model(arguments), tools=(ask_tool(),), clock=HeldClock()) as it:
        _ = await it.session.prompt("Build it.")
        ended = await result(it)
        assert ended.status == "error"
        assert why in it.results()[0]


async def test_a_single_question_in_another_form_is_taken():
    given: JsonObject = {"question": {"question": "Which store?"}}
    async with bench(model(given), tools=(ask_tool(),), clock=HeldClock()) as it:
        _ = await it.session.prompt("Build it.")
        question = await asked(it)
        _ = it.session.questions.answer(question.request, {"0": "SQLite"})
        _ = await it.idle()
        assert it.results() == ["Which store?\n→ SQLite"]
