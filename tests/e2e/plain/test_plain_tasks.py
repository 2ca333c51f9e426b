"""Tasks in an editor without an extension: a line of progress for each, which can be cancelled."""

from typing import Any

import pytest

from tests.support.clients.chatting import chatting
from tests.support.clients.office import soon
from tests.support.clients.plain_windows import command
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

Json = dict[str, Any]
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
        one, two = (lines(client)[f"task {title}"] for title in ("t1: one", "t2: two"))
        assert one[0]["cancellable"]
        await soon(lambda: one[-1]["message"] == "thinking · 1 tool call")
        (token,) = [token for token, told in client.progress.items() if told is one]
        client.notify("window/workDoneProgress/cancel", {"token": token})
        await soon(lambda: states(client) == ["cancelled"])
        (giver,) = (each for each in (await windows.sessions()).values() if not each.is_task)
        assert [each.state for each in giver.session.tasks.list()] == ["cancelled", "running"]
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
