"""An external agent reads what the editor shows, and its writes are edits in the editor."""

import json

import pytest

from tests.e2e.conftest import ground
from tests.support.acp.agent_office import scripted
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_profiles import PANEL

__all__ = ["ground"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


async def test_an_agent_works_on_the_unsaved_text_of_the_editor(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, externalAgents={"robot": scripted()})
    path = ground.file("note.txt", "saved\n")
    steps = [["read", "note.txt"], ["recap"], ["write", "note.txt", "written\n"], ["recap"]]
    order = {"description": "do it", "prompt": json.dumps(steps), "preset": "robot"}
    ground.provider.script([{**calls(("task", order)), "when": "go"}, says("Done.")])
    async with ground.client(PANEL) as client:
        client.open(path.as_uri(), "unsaved\n")
        stream = client.subscribe()
        await client.request("agent/prompt", prompt("go", wait=True))
        ended = await stream.wait(type="task.ended")
        assert ended["task"]["state"] == "completed"
        assert "read: unsaved" in ended["text"]
        assert client.editor.documents[path.as_uri()].text == "written\n"
