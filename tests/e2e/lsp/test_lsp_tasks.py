"""Tasks over the wire: followed and prompted in a session of their own, edits through the editor, stopped by a client."""

import pytest

from tests.e2e.lsp.test_lsp_results import check
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

TASK = calls(("task", {"description": "write it", "prompt": "CHILD: write", "background": True}))


async def test_a_task_is_followed_and_prompted_and_its_edit_goes_through_the_editor(
    ground: Ground,
) -> None:
    path = ground.file("note.txt", "one\n")
    edit = {"path": "note.txt", "edits": [{"oldText": "unsaved", "newText": "edited"}]}
    ground.provider.script(
        [
            {**TASK, "when": "go"},
            {**says("I wait."), "when": "in the background"},
            {**calls(("read", {"path": "note.txt"})), "when": "CHILD", "delay_s": 1.0},
            {**calls(("edit", edit)), "when": "one unsaved"},
            {**says("Edited."), "when": "Success"},
            {**says("Also that."), "when": "also this"},
            {**says("Done."), "when": "Its report"},
        ]
    )
    async with ground.client(PANEL) as client:
        client.open(path.as_uri(), "one unsaved\n")
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        created = (await stream.wait(type="task.created"))["task"]
        _ = await stream.wait(type="task.updated")
        child = client.subscribe(created["session"])
        await child.ready()
        more = prompt("also this", session=created["session"], delivery="followUp")
        assert (await client.request("agent/prompt", more))["accepted"] == "queued"
        ended = (await stream.wait(type="task.ended"))["task"]
        assert (ended["state"], ended["toolCalls"], ended["turns"]) == ("completed", 2, 4)
        applied = await stream.wait(type="edit.applied")
        assert applied["documents"][0]["uri"] == path.as_uri()
        assert client.editor.documents[path.as_uri()].text == "one edited\n"
        assert child.of("tool.ended")
        # Its changes are reviewed in the session that gave it.
        listed = await client.request("agent/changes/list", {})
        assert [one["uri"] for one in listed["files"]] == [path.as_uri()]
    assert len(ground.sessions()) == 1


async def test_a_client_stops_a_task_and_one_that_is_not_there_is_refused(ground: Ground) -> None:
    stuck = {**says("never"), "when": "CHILD", "stall_forever_after_deltas": 0}
    ground.provider.script(
        [
            {**TASK, "when": "go"},
            stuck,
            {**says("I wait."), "when": "in the background"},
            {**says("Pity."), "when": "was stopped"},
        ]
    )
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go"))
        _ = await stream.wait(type="run.ended")
        stopped = await client.request("agent/task/stop", {"id": "t1"})
        check("agent/task/stop", stopped)
        assert stopped["state"] == "cancelled"
        await stream.wait(type="task.ended")
        with pytest.raises(ClientError, match="There is no task 't9'; there are: t1") as refused:
            await client.request("agent/task/stop", {"id": "t9"})
        assert refused.value.code == -32602
