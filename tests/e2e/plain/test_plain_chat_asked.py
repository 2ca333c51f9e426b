"""What a session asks, in the chat file: it stands there with its options, and is answered there when the dialog was missed."""

from collections.abc import AsyncGenerator, Sequence

import pytest

from agent_core.events import QuestionLine, QuestionOption
from agent_core.tools.port import text_result
from tests.support.clients.chatting import Chatting, chatting, idle
from tests.support.clients.office import soon
from tests.support.clients.plain_windows import actions, messages
from tests.support.clients.server import Ground, calls, says, tool_texts
from tests.support.clients.windows import Windows, serving
from tests.support.lsp.lsp_answers import LeavesOpen
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11
from tests.support.workspace.tools import FunctionTool

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SHOW = "window/showMessageRequest"
COLOUR = QuestionLine(
    id="colour",
    text="Which colour?",
    kind="choice",
    options=(QuestionOption(id="r", label="Red"), QuestionOption(id="g", label="Green")),
)
SURE = QuestionLine(id="sure", text="Really?", kind="confirm")
NAME = QuestionLine(id="name", text="What is it called?", kind="text")


@pytest.fixture
async def windows(ground: Ground) -> AsyncGenerator[Windows]:
    ground.configure(permission={"mode": "ask"}, sandbox="off")
    async with serving(ground) as windows:
        yield windows


async def press(chat: Chatting, title: str, *, line0: int = 0) -> object:
    """Press a code action of the file by its title."""
    found = await actions(chat.client, chat.uri, line0)
    chosen = next((one for one in found if one["title"] == f"Tiller: {title}"), None)
    assert chosen is not None, [one["title"] for one in found]
    run = chosen["command"]
    params = {"command": run["command"], "arguments": run.get("arguments", [])}
    return await chat.client.request("workspace/executeCommand", params)


async def asks(windows: Windows, chat: Chatting, lines: Sequence[QuestionLine]) -> None:
    """Let the model call a tool that asks its user."""

    async def work(arguments, context):
        answers = await context.ask(lines)
        return text_result(f"{answers.answers} by {answers.by}")

    (hosted,) = (await windows.sessions()).values()
    hosted.session.tools.register(FunctionTool("inquire", work))
    windows.ground.provider.script([calls(("inquire", {})), says("I see.")])
    chat.write("go\n")


async def test_a_permission_whose_dialog_was_missed_is_given_in_the_file(windows: Windows) -> None:
    ground = windows.ground
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("Made.")])
    async with chatting(windows, HELIX) as chat:
        chat.client.handlers[SHOW] = LeavesOpen()
        await chat.open()
        chat.write("make it\n")
        await chat.has("> **May it?** run `touch made`")
        assert not (ground.root / "made").exists()
        row = chat.text[: chat.text.index("May it?")].count("\n")
        titles = [one["title"] for one in await actions(chat.client, chat.uri, row)]
        assert titles[0] == "Tiller: Allow once"
        assert await press(chat, "Allow once", line0=row) == {"status": "recorded"}
        await chat.has("Made.")
        await idle(windows)
        assert (ground.root / "made").exists()
        assert "> Allow once (helix)" in chat.text
        # What is answered is offered no more.
        titles = [one["title"] for one in await actions(chat.client, chat.uri, row)]
        assert "Tiller: Allow once" not in titles


async def test_a_question_is_answered_in_the_file(windows: Windows) -> None:
    async with chatting(windows, HELIX) as chat:
        chat.client.handlers[SHOW] = LeavesOpen()
        await chat.open()
        await asks(windows, chat, [COLOUR])
        await chat.has("> **Question:** Which colour?\n> - Red\n> - Green\n")
        assert await press(chat, "Green") == {"status": "recorded"}
        await chat.has("I see.")
        assert tool_texts(windows.ground.provider.requests[-1]) == ["{'colour': 'g'} by helix"]
        assert "> g (helix)" in chat.text


async def test_a_form_is_answered_line_by_line(windows: Windows) -> None:
    async with chatting(windows, NEOVIM_0_11) as chat:
        chat.client.handlers[SHOW] = LeavesOpen()
        await chat.open()
        await asks(windows, chat, [COLOUR, SURE])
        await chat.has("> **Question:** Really?\n> - Yes\n> - No\n")
        kept = await press(chat, "Really? No")
        assert kept == {"status": "kept", "missing": ["colour"]}
        assert await press(chat, "Which colour? Red") == {"status": "recorded"}
        await chat.has("I see.")
        told = tool_texts(windows.ground.provider.requests[-1])
        assert told == ["{'colour': 'r', 'sure': False} by Neovim"]


async def test_a_question_for_words_is_answered_by_the_words_below(windows: Windows) -> None:
    async with chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        await asks(windows, chat, [NAME])
        await chat.has("> **Question:** What is it called?\n")
        chat.client.change(chat.uri, f"{chat.text}Bob\n")
        assert await press(chat, "Answer with the words below") == {"status": "recorded"}
        await chat.has("I see.")
        assert tool_texts(windows.ground.provider.requests[-1]) == ["{'name': 'Bob'} by Neovim"]
        await soon(lambda: chat.text.endswith("## You\n\n"))


async def test_a_save_while_somebody_is_asked_steers_and_stop_stops(windows: Windows) -> None:
    ground = windows.ground
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("Made.")])
    async with chatting(windows, NEOVIM_0_11) as chat:
        chat.client.handlers[SHOW] = LeavesOpen()
        await chat.open()
        chat.write("make it\n")
        await chat.has("> **May it?**")
        _ = await press(chat, "Stop")
        await chat.has("> cancelled")
        await idle(windows)
        assert not (ground.root / "made").exists()


async def test_what_cannot_be_sent_is_said_and_stays(windows: Windows) -> None:
    (windows.ground.dirs.config / "models.json").write_text("{}")
    (windows.ground.dirs.config / "settings.json").write_text("{}")
    async with chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("hello\n")
        await soon(lambda: any("not sent" in one for one in messages(chat.client)))
        await chat.has("> Not sent: ")
        assert chat.text.endswith("## You\n\nhello\n")
        (hosted,) = (await windows.sessions()).values()
        assert hosted.session.info.messages == ()
