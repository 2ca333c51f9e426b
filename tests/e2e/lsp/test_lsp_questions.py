"""Questions about what is meant over LSP: forms and buttons, who is faster, who cannot show them, who comes back."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent_core.events import QuestionLine, QuestionOption
from agent_core.tools import text_result
from tests.support.clients.office import Office, opened, soon
from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import Chooses, LeavesOpen, Scripted
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, PANEL
from tests.support.workspace.tools import FunctionTool

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FORM, SHOW = "agent/question", "window/showMessageRequest"
COLOUR = QuestionLine(
    id="colour",
    text="Which colour?",
    kind="choice",
    options=(QuestionOption(id="r", label="Red"), QuestionOption(id="g", label="Green")),
)
NAME = QuestionLine(id="name", text="What is it called?", kind="text")
SURE = QuestionLine(id="sure", text="Really?", kind="confirm")


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    async with opened(ground) as office:
        yield office


async def lets_ask(office: Office, *lines: QuestionLine, **how: Any) -> None:
    """Give the session a tool that asks; the model calls it once."""

    async def work(arguments, context):
        answers = await context.ask(lines, **how)
        return text_result(f"{answers.answers} by {answers.by}")

    (await office.session()).tools.register(FunctionTool("inquire", work))
    office.ground.provider.script([calls(("inquire", {})), says("done")])


def heard(office: Office) -> str:
    return tool_texts(office.ground.provider.requests[-1])[0]


def withdrawn(client: Any) -> bool:
    return any(one.get("method") == "$/cancelRequest" for one in client.received)


async def test_two_editors_are_asked_the_first_answer_wins_and_the_other_is_withdrawn(
    office: Office,
) -> None:
    first, second = await office.seat(PANEL), await office.seat(PANEL)
    await lets_ask(office, COLOUR, NAME)
    first.handlers[FORM], second.handlers[FORM] = stays, answers = LeavesOpen(), LeavesOpen()
    stream = first.subscribe()
    await stream.ready()
    await first.request("agent/prompt", prompt("go"))
    await soon(lambda: stays.asked and answers.asked)
    (asked,) = stays.asked
    assert [one["id"] for one in asked["questions"]] == ["colour", "name"]
    assert asked["blocking"] is True
    answers.replies[0]({"answers": {"colour": "g", "name": "Ann"}})
    await stream.wait(type="run.ended")
    assert heard(office) == "{'colour': 'g', 'name': 'Ann'} by panel"
    (resolved,) = stream.of("question.resolved")
    assert resolved["answers"] == {"colour": "g", "name": "Ann"}
    await soon(lambda: withdrawn(first))
    assert not withdrawn(second)
    late = await first.request(
        "agent/question/respond", {"request": asked["request"], "cancelled": True}
    )
    assert late == {"status": "alreadyResolved", "by": "panel"}


async def test_when_all_leave_it_waits_and_whoever_comes_back_is_asked_again(
    office: Office,
) -> None:
    watcher = await office.seat(PANEL, client={"role": "observer"})
    watcher.handlers[FORM] = watched = Scripted({"answers": {"sure": True}})
    await lets_ask(office, SURE)
    stream = watcher.subscribe()
    await stream.ready()
    async with office.visitor(PANEL) as leaving:
        leaving.handlers[FORM] = left_open = LeavesOpen()
        await leaving.request("agent/prompt", prompt("go"))
        await soon(lambda: left_open.asked)
    snapshot = await watcher.request("agent/session/open", {})
    assert snapshot["state"] == "requiresAction"
    assert [one["request"] for one in snapshot["pending"]] == [left_open.asked[0]["request"]]
    with pytest.raises(ClientError, match="observer"):
        await watcher.request(
            "agent/question/respond",
            {"request": snapshot["pending"][0]["request"], "answers": {"sure": True}},
        )
    assert watched.asked == []
    again = LeavesOpen()
    back = await office.seat(PANEL, handlers={FORM: again})
    await soon(lambda: again.asked)
    assert again.asked == left_open.asked
    wrong = {"request": snapshot["pending"][0]["request"], "answers": {"sure": "maybe"}}
    with pytest.raises(ClientError, match="takes true or false"):
        await back.request("agent/question/respond", wrong)
    good = {**wrong, "answers": {"sure": True}}
    assert (await back.request("agent/question/respond", good))["status"] == "recorded"
    await stream.wait(type="run.ended")
    assert heard(office) == "{'sure': True} by panel"


async def test_a_plain_editor_has_buttons_one_dialog_at_a_time(office: Office) -> None:
    helix = await office.seat(HELIX)
    await lets_ask(office, COLOUR, SURE)
    helix.handlers[SHOW] = dialogs = Chooses("Green", "No")
    await helix.request("agent/prompt", prompt("go", wait=True))
    assert dialogs.missing == []
    assert [one["message"] for one in dialogs.asked] == [
        "Tiller asks: Which colour?",
        "Tiller asks: Really?",
    ]
    assert heard(office) == "{'colour': 'g', 'sure': False} by helix"
    assert helix.undeclared == []


async def test_permissions_and_questions_share_the_one_dialog(office: Office) -> None:
    helix = await office.seat(HELIX)
    await lets_ask(office, SURE)
    office.ground.provider.script([calls(("bash", {"command": "touch x"})), says("done")])
    helix.handlers[SHOW] = left_open = LeavesOpen()
    session = await office.session()
    await helix.request("agent/prompt", prompt("go"))
    await soon(lambda: left_open.asked)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(session.questions.ask([SURE]))
        await soon(lambda: session.questions.pending)
        assert len(left_open.asked) == 1
        left_open.replies[0](None)
        await soon(lambda: len(left_open.asked) == 2)
        left_open.replies[1]({"title": "Yes"})
    assert asking.result().answers == {"sure": True}
    await session.wait_idle()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (NAME, "None by unshown"),
        (
            QuestionLine(id="name", text="Called?", kind="text", default="x"),
            "{'name': 'x'} by helix",
        ),
    ],
    ids=["without a default", "with a default"],
)
async def test_what_no_editor_can_show_is_told_at_once(
    office: Office, line: QuestionLine, told: str
) -> None:
    helix = await office.seat(HELIX)
    await lets_ask(office, line)
    await helix.request("agent/prompt", prompt("go", wait=True))
    assert heard(office) == told


async def test_a_dismissed_dialog_is_no_answer(office: Office) -> None:
    helix = await office.seat(HELIX)
    await lets_ask(office, SURE)
    await helix.request("agent/prompt", prompt("go", wait=True))
    assert heard(office) == "None by helix"


@pytest.mark.parametrize(
    "answer",
    [None, [], {"cancelled": True}, {"answers": []}, {"answers": {"sure": 7}}, {"answers": {}}],
    ids=repr,
)
async def test_what_is_no_answer_declines(office: Office, answer: object) -> None:
    panel = await office.seat(PANEL)
    await lets_ask(office, SURE)
    panel.handlers[FORM] = Scripted(answer)
    await panel.request("agent/prompt", prompt("go", wait=True))
    assert heard(office) == "None by panel"


async def test_cancelling_the_run_takes_the_dialog_away(office: Office) -> None:
    panel = await office.seat(PANEL)
    await lets_ask(office, SURE)
    panel.handlers[FORM] = left_open = LeavesOpen()
    stream = panel.subscribe()
    await stream.ready()
    await panel.request("agent/prompt", prompt("go"))
    await soon(lambda: left_open.asked)
    await panel.request("agent/run/cancel", {})
    await soon(lambda: withdrawn(panel))
    (resolved,) = stream.of("question.resolved")
    assert resolved["by"] == "cancelled"
