"""An ordinary day in every editor that is known, as a script: what it declares is all that it is sent."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from tests.support.clients.chatting import Chatting, chatting
from tests.support.clients.office import soon
from tests.support.clients.plain_windows import actions, command, messages, press, titled
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import Windows, serving
from tests.support.lsp.lsp_answers import Chooses
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_every import EVERY, OneDialog, takes_only_work_done
from tests.support.lsp.lsp_profiles import HELIX, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

Json = dict[str, Any]
EACH_EDITOR = pytest.mark.parametrize("profile", EVERY.values(), ids=EVERY)
DIALOG = "window/showMessageRequest"
TEXT = "one\n# tiller: make two a number\ntwo\n"
EDITED = TEXT.replace("\ntwo", "\n2")
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "\ntwo", "newText": "\n2"}]})
LSP = ("textDocument/", "window/", "workspace/", "client/", "$/")


@pytest.fixture
async def windows(ground: Ground) -> AsyncGenerator[Windows]:
    """Serve a trusted project, in which commands are asked about."""
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    async with serving(ground) as windows:
        yield windows


def assert_was_sent_only_what_it_takes(client: RawClient) -> None:
    """Look through all that an editor was sent."""
    assert client.undeclared == []
    assert client.complaints == []
    methods = {one["method"] for one in client.received if "method" in one}
    assert [one for one in methods if not one.startswith(LSP)] == []
    values = [value for shown in client.progress.values() for value in shown]
    assert [value for value in values if not takes_only_work_done(value)] == []
    window = client.capabilities.get("window", {})
    if "workDoneProgress" not in window and not client.profile.answers_anyway:
        assert values == []


def ends(client: RawClient) -> Sequence[str]:
    """Give what the lines of progress said last."""
    return [
        value.get("message", "")
        for shown in client.progress.values()
        for value in shown
        if value["kind"] == "end"
    ]


@EACH_EDITOR
async def test_words_an_edit_a_question_and_the_end_come_by_plain_lsp(
    windows: Windows, ground: Ground, profile: Profile
) -> None:
    touch = ("bash", {"command": "touch x"})
    ground.provider.script([calls(EDIT), calls(touch), says("All is well.")])
    path = ground.file("a.py", TEXT)
    async with chatting(windows, profile) as chat:
        chat.client.handlers[DIALOG] = dialogs = Chooses("Allow once")
        document = chat.client.editor.open_file(path)
        await chat.open()
        chat.write("Please do it.")
        await chat.has("All is well.")
        await soon(lambda: chat.client.editor.documents[document.uri].text == EDITED)
        assert (ground.root / "x").exists()
        assert dialogs.missing == []
        assert chat.text.count("Please do it.") == 1
        if "workDoneProgress" in profile.capabilities["window"]:
            await soon(lambda: any(one.startswith("done · ") for one in ends(chat.client)))
        assert_was_sent_only_what_it_takes(chat.client)


@EACH_EDITOR
async def test_a_comment_is_done_by_its_code_action(
    windows: Windows, ground: Ground, profile: Profile
) -> None:
    ground.provider.script([calls(EDIT), says("done")])
    path = ground.file("a.py", TEXT)
    async with windows.window(profile) as client:
        document = client.editor.open_file(path)
        found = await actions(client, document.uri, 1)
        await press(client, found, "Do what this comment asks")
        await soon(lambda: client.editor.documents[document.uri].text == EDITED)
        # What was changed is kept by an action beside it.
        await press(client, await _kept(client, document.uri), "Keep this change")
        assert_was_sent_only_what_it_takes(client)


@EACH_EDITOR
async def test_a_run_is_stopped_by_a_command_without_arguments(
    windows: Windows, ground: Ground, profile: Profile
) -> None:
    ground.provider.script([{**says("never said"), "delay_s": 60}])
    async with chatting(windows, profile) as chat:
        await chat.open()
        chat.write("go")
        _ = await ground.provider.requests_arrived(1)
        await command(chat.client, "stop")
        await chat.has("cancelled")
        assert_was_sent_only_what_it_takes(chat.client)


# ---------------------------------------------------------------------- Helix


async def test_helix_is_answered_at_once_and_told_by_messages_and_progress(
    windows: Windows, ground: Ground
) -> None:
    ground.provider.script([{**says("late"), "delay_s": 1.5}])
    async with windows.window(HELIX) as client:
        client.patience_s = 1.0
        started = await command(client, "send", "go")
        assert started["accepted"] == "started"
        await command(client, "status")
        assert any("model" in one for one in messages(client))
        await soon(lambda: any(one.startswith("done") for one in ends(client)))
        assert_was_sent_only_what_it_takes(client)


async def test_of_two_questions_helix_is_shown_one_at_a_time(
    windows: Windows, ground: Ground
) -> None:
    touch = [calls(("bash", {"command": f"touch {name}"})) for name in ("x", "y")]
    ground.provider.script([*touch, says("All is well.")])
    async with windows.window(HELIX) as client:
        client.handlers[DIALOG] = dialog = OneDialog()
        await command(client, "send", "go")
        await soon(lambda: len(dialog.asked) == 1)
        # The user opens a list of ours meanwhile: it waits, or gives way, and takes nothing's place.
        await command(client, "model")
        assert dialog.replaced == []
        dialog.press("Allow once")
        await soon(lambda: any("touch y" in one["message"] for one in dialog.asked))
        # The list was withdrawn for the question; no question was for a list.
        assert not any("touch" in one["message"] for one in dialog.replaced)
        dialog.press("Allow once")
        await soon((ground.root / "y").exists)


async def test_a_question_that_helix_lost_is_answered_in_the_chat_file(
    windows: Windows, ground: Ground
) -> None:
    touch = [calls(("bash", {"command": f"touch {name}"})) for name in ("x", "y")]
    ground.provider.script([*touch, says("All is well.")])
    async with chatting(windows, HELIX) as chat:
        chat.client.handlers[DIALOG] = dialog = OneDialog()
        await chat.open()
        chat.write("go")
        await soon(lambda: len(dialog.asked) == 1)
        dialog.covered_by_another_server()
        await chat.has("touch x")
        await press_in_chat(chat, "touch x", "Allow once")
        await soon((ground.root / "x").exists)
        # The lost one holds nothing up: the next is asked as ever.
        await soon(lambda: len(dialog.asked) == 2)
        dialog.press("Allow once")
        await chat.has("All is well.")
        assert (ground.root / "y").exists()


async def test_a_command_of_helix_names_no_document_and_means_the_one_touched_last(
    windows: Windows, ground: Ground
) -> None:
    ground.provider.script([says("It is a list.")])
    first, second = ground.file("a.py", "a = 1\n"), ground.file("b.py", "b = []\n")
    async with windows.window(HELIX) as client:
        client.editor.open_file(second)
        client.editor.open_file(first)
        client.change(second.as_uri(), "b = [1]\n")
        await command(client, "explain")
        (request,) = await ground.provider.requests_arrived(1)
        said = str(request["body"]["messages"][-1])
        assert "b.py" in said
        assert "a.py" not in said


async def _kept(client: RawClient, uri: str) -> list[Json]:
    """Wait until the change of the last line can be kept."""
    async with asyncio.timeout(10):
        while "Keep" not in str(found := await actions(client, uri, 2)):  # noqa: ASYNC110 - a hint tells nobody that it is there
            await asyncio.sleep(0.05)
    return found


async def press_in_chat(chat: Chatting, words: str, title: str) -> None:
    """Press a code action at the line of the chat file with these words."""
    line0 = next(number for number, row in enumerate(chat.text.splitlines()) if words in row)
    found = await actions(chat.client, chat.uri, line0)
    _ = titled(found, title)
    await press(chat.client, found, title)
