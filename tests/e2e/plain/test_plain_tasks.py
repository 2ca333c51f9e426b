"""Tasks in an editor without an extension: a line of progress for each, which can be cancelled."""

from typing import Any

import pytest

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


async def test_each_task_has_a_line_of_progress_until_its_end(ground: Ground) -> None:
    ground.file("a.txt", "hello\n")
    ground.provider.script(
        [
            {**calls(task("find it"), task("break")), "when": "go"},
            {**calls(("read", {"path": "a.txt"})), "when": "CHILD: find", "delay_s": 0.1},
            {**says("It says hello."), "when": "hello\n", "delay_s": 0.2},
            {"status": 400, "when": "CHILD: break"},
            {**says("I wait."), "when": "in the background"},
            *[{**says("So."), "when": "Report of Tiller"}] * 2,
        ]
    )
    async with serving(ground) as windows, windows.window(NEOVIM_0_11) as client:
        await command(client, "send", "go")
        await soon(lambda: [told[-1]["kind"] for told in lines(client).values()] == ["end"] * 2)
        found, broken = (lines(client)[f"task {title}"] for title in ("t1: find it", "t2: break"))
        assert found[0]["cancellable"]
        assert any("a.txt" in told["message"] for told in found[:-1])
        assert found[-1]["message"].startswith("completed · ")
        assert broken[-1]["message"].startswith("failed: ")
        assert client.undeclared == []


async def test_cancelling_the_line_of_a_task_stops_that_task_alone(ground: Ground) -> None:
    ground.provider.script(
        [
            {**calls(task("one"), task("two")), "when": "go"},
            STUCK,
            STUCK,
            {**says("I wait."), "when": "in the background"},
            {**says("Pity."), "when": "was stopped"},
        ]
    )
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await command(client, "send", "go")
        await soon(lambda: len(lines(client)) == 2)
        (token,) = [
            token for token, told in client.progress.items() if told[0]["title"] == "task t1: one"
        ]
        client.notify("window/workDoneProgress/cancel", {"token": token})
        await soon(lambda: client.progress[token][-1]["kind"] == "end")
        assert client.progress[token][-1]["message"].startswith("cancelled")
        (giver,) = (one for one in (await windows.sessions()).values() if not one.is_task)
        assert [one.state for one in giver.session.tasks.list()] == ["cancelled", "running"]
        assert lines(client)["task t2: two"][-1]["kind"] != "end"


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
