"""Tasks in an editor without an extension: a line of progress for each, which can be cancelled."""

from typing import Any

import pytest

from tests.support.clients.chatting import chatting
from tests.support.clients.office import soon
from tests.support.clients.plain_windows import actions, command, messages, refusal, titled
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_answers import Chooses
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

Json = dict[str, Any]
NOTE = "one\ntwo\nthree\nfour\nfive\nsix\n"
SHOW = "window/showMessageRequest"
STUCK = {**says("never"), "when": "CHILD", "stall_forever_after_deltas": 0}


def task(what: str, **more: Any) -> tuple[str, Json]:
    asked = {"description": what, "prompt": f"CHILD: {what}", "background": True}
    return ("task", {**asked, **more})


def lines(client: RawClient) -> dict[str, list[Json]]:
    """Return the lines of progress of tasks, by title."""
    shown = [told for told in client.progress.values() if told[0]["kind"] == "begin"]
    return {told[0]["title"]: told for told in shown if told[0]["title"] != "Tiller"}


def states(client: RawClient) -> list[str]:
    """Return how the lines of tasks ended, in the order of their beginning."""
    last = [told[-1] for told in lines(client).values()]
    return [told["message"].partition(" · ")[0] for told in last if told["kind"] == "end"]


async def test_each_task_has_a_line_of_progress_until_its_end(ground: Ground) -> None:
    ground.provider.script(
        [
            {**calls(task("find it"), task("break")), "when": "go"},
            {**says("It says hello."), "when": "CHILD: find"},
            {"status": 400, "when": "CHILD: break"},
            {**says("I wait."), "when": "in the background"},
            *[{**says("So."), "when": "Report of Tiller"}] * 2,
        ]
    )
    async with serving(ground) as windows, windows.window(NEOVIM_0_11) as client:
        await command(client, "send", "go")
        await soon(lambda: len(states(client)) == 2)
        assert {*lines(client)} == {"task t1: find it", "task t2: break"}
        found, broken = sorted(states(client))
        assert (found, broken.partition(":")[0]) == ("completed", "failed")
        assert client.undeclared == []


async def test_a_line_shows_what_its_task_does_and_cancelling_it_stops_that_task_alone(
    ground: Ground,
) -> None:
    ground.file("a.txt", "hello\n")
    ground.provider.script(
        [
            {**calls(task("one"), task("two")), "when": "go"},
            {**calls(("read", {"path": "a.txt"})), "when": "CHILD: one"},
            {**STUCK, "when": "hello"},
            STUCK,
            {**says("I wait."), "when": "in the background"},
            {**says("Pity."), "when": "was stopped"},
        ]
    )
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "send", "go")
        await soon(lambda: len(lines(client)) == 2)
        named = {title.partition(": ")[2]: told for title, told in lines(client).items()}
        one, two = named["one"], named["two"]
        assert one[0]["cancellable"]
        await soon(lambda: one[-1]["message"] == "thinking · 1 tool call")
        (token,) = [token for token, told in client.progress.items() if told is one]
        client.notify("window/workDoneProgress/cancel", {"token": token})
        await soon(lambda: states(client) == ["cancelled"])
        (giver,) = (each for each in (await windows.sessions()).values() if not each.is_task)
        assert sorted(each.state for each in giver.session.tasks.list()) == ["cancelled", "running"]
        assert two[-1]["kind"] != "end"


async def test_a_client_that_subscribes_gets_no_line_of_a_task(ground: Ground) -> None:
    ground.provider.script(
        [
            {**calls(task("find it")), "when": "go"},
            {**says("Found."), "when": "CHILD"},
            {**says("I wait."), "when": "in the background"},
            {**says("So."), "when": "Its report"},
        ]
    )
    async with serving(ground) as windows, windows.window(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        await command(client, "send", "go")
        _ = await stream.wait(type="task.ended")
        assert not [one for one in client.received if "workDoneProgress/create" in str(one)]


async def test_the_chat_file_has_one_line_for_a_task_also_when_it_is_made_anew(
    ground: Ground,
) -> None:
    ground.provider.script(
        [
            {**calls(task("find it"), text="I have it looked for."), "when": "go"},
            {**says("It says hello."), "when": "CHILD"},
            {**says("I wait."), "when": "in the background"},
            {**says("Thanks."), "when": "Its report"},
        ]
    )
    begun = "I have it looked for.\n\n> task t1: find it · started"
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        chat.write("go\n")
        await chat.has(f"{begun} · completed\n>   It says hello.\n")
        await chat.has("Thanks.")
        assert chat.text.count("task t1") == 1
        assert "background" not in chat.text
    chat.path.unlink()
    async with serving(ground) as windows, chatting(windows, HELIX) as chat:
        await chat.open()
        assert f"{begun} · completed\n" in chat.text
        assert chat.text.count("task t1") == 1


def writes(what: str) -> tuple[str, Json]:
    return task(what, isolation="worktree")


async def test_the_changes_of_the_only_task_are_merged_and_of_several_the_user_chooses(
    ground: Ground,
) -> None:
    path = ground.file("note.txt", NOTE)
    ground.commit()
    edits = [{"oldText": "one", "newText": "ONE"}]
    ground.provider.script(
        [
            {**calls(writes("first")), "when": "go"},
            {**calls(writes("second")), "when": "again"},
            {**calls(("edit", {"path": "note.txt", "edits": edits})), "when": "CHILD: first"},
            {**calls(("write", {"path": "b.txt", "content": "b\n"})), "when": "CHILD: second"},
            *[{**says("Written."), "when": "Success"}] * 2,
            *[{**says("I wait."), "when": "in the background"}] * 2,
            *[{**says("So."), "when": "Report of Tiller"}] * 2,
        ]
    )
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), NOTE.replace("six", "unsaved"))
        assert await command(client, "mergeTask") == {"task": None}
        assert messages(client)[-1] == "Tiller: no task left changes in a worktree."
        assert "There is no task 't7'" in await refusal(client, "mergeTask", "t7")
        await command(client, "send", "go")
        await soon(lambda: len(states(client)) == 1)
        merged = await command(client, "mergeTask")
        assert merged == {"task": "t1", "written": [path.as_uri()]}
        document = client.editor.documents[path.as_uri()]
        assert document.text == NOTE.replace("one", "ONE").replace("six", "unsaved")
        shown = messages(client)[-1]
        assert shown.startswith("Tiller: merged t1 into note.txt; tiller.restore takes it back.")
        await command(client, "send", "again")
        await soon(lambda: len(states(client)) == 2)
        asked = client.handlers[SHOW] = Chooses("t2: second")
        assert await command(client, "mergeTask") == {"task": None}
        await soon((ground.root / "b.txt").exists)
        assert asked.missing == []
        await command(client, "mergeTask", "t1")
        assert "the workspace had all changes of t1 already" in messages(client)[-1]


async def test_a_task_that_left_changes_is_merged_from_the_chat_file(ground: Ground) -> None:
    ground.commit()
    ground.provider.script(
        [
            {**calls(writes("first")), "when": "go"},
            {**calls(("write", {"path": "b.txt", "content": "b\n"})), "when": "CHILD"},
            {**says("Written."), "when": "Success"},
            {**says("I wait."), "when": "in the background"},
            {**says("So."), "when": "Its report"},
        ]
    )
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        offered = "Merge the changes of a task"
        chat.write("go\n")
        await chat.has("Its changes wait in a worktree: tiller.mergeTask merges them.")
        found = await actions(chat.client, chat.path.as_uri())
        assert titled(found, offered)["command"]["command"] == "tiller.mergeTask"
