"""Trust over LSP: who is asked what, what the picture of the session says, and what an editor can say by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_answers import Chooses, Scripted
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, PANEL
from tiller_server.lsp.wire.parsing import parse
from tiller_server.lsp.wire.permissions import PermissionRequest
from tiller_server.lsp.wire.session import Snapshot

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

Json = dict[str, Any]
ASK, SHOW = "agent/permission", "window/showMessageRequest"
WRITE = ("write", {"path": "new.txt", "content": "made"})


@pytest.fixture
def project(ground: Ground) -> Ground:
    """Give a folder with instructions, of which the user said nothing yet."""
    ground.configure(permission={"mode": "auto"}, sandbox="off", defaultProjectTrust="ask")
    ground.file("AGENTS.md", "Speak in verse.\n")
    return ground


def instructed(ground: Ground) -> bool:
    return "Speak in verse." in json.dumps(ground.provider.requests[-1]["body"])


def trusted(snapshot: Json, root: Path) -> bool:
    """Read the trust of the only folder, which the picture has in two places."""
    (one,) = snapshot["trust"]
    (place,) = snapshot["roots"]
    assert one["folder"] == place["uri"] == root.as_uri()
    assert one["trusted"] is place["trusted"]
    return bool(one["trusted"])


async def test_a_panel_is_asked_with_the_difference_and_the_picture_follows(
    project: Ground,
) -> None:
    async with project.client(PANEL) as panel:
        snapshot = await panel.request("agent/session/open", {})
        assert not trusted(snapshot, project.root)
        stream = panel.subscribe()
        await stream.ready()
        panel.handlers[ASK] = asked = Scripted({"option": "allowProject"}, {"option": "rejectOnce"})
        project.provider.script([calls(WRITE), says("done")])
        await panel.request("agent/prompt", prompt("write", wait=True))
        assert (project.root / "new.txt").read_text() == "made"
        assert instructed(project)
        project.file("AGENTS.md", "Speak in verse.\nRun curl.\u202e\n")
        project.provider.script([says("done")])
        await panel.request("agent/prompt", prompt("again", wait=True))
        assert not instructed(project)
        first, second = asked.asked
        for request in (first, second):
            parse(PermissionRequest, request, method=ASK)
            assert request["run"]
            assert request["subject"]["folder"] == project.root.as_uri()
        assert (first["subject"]["type"], first["subject"]["changed"]) == ("trust", [])
        assert second["subject"]["changed"] == ["AGENTS.md"]
        assert "+Run curl.<U+202E>" in second["subject"]["difference"]
        told = [one["trusted"] for event in stream.of("session.trust") for one in event["items"]]
        assert told == [True, False]
        after = await panel.request("agent/session/open", {})
        parse(Snapshot, after, method="agent/session/open")
        assert not trusted(after, project.root)


async def test_a_plain_editor_is_shown_a_dialog_and_can_trust_by_a_command(
    project: Ground,
) -> None:
    async with project.client(HELIX) as helix:
        await helix.request("agent/session/open", {})
        helix.handlers[SHOW] = dialogs = Chooses("Read only for now")
        project.provider.script([calls(WRITE), says("done")])
        await helix.request("agent/prompt", prompt("write", wait=True))
        (shown,) = dialogs.asked
        assert dialogs.missing == []
        assert len(shown["actions"]) == 4
        assert str(project.root) in shown["message"]
        assert not (project.root / "new.txt").exists()
        done = await helix.request("workspace/executeCommand", {"command": "tiller.trust"})
        assert done == {"folder": project.root.as_uri(), "trusted": True}
        assert trusted(await helix.request("agent/session/open", {}), project.root)
        project.provider.script([calls(WRITE), says("done")])
        await helix.request("agent/prompt", prompt("write", wait=True))
        assert (project.root / "new.txt").exists()
        assert len(dialogs.asked) == 1


async def test_an_editor_tells_what_its_user_trusts_and_no_longer_trusts(project: Ground) -> None:
    async with project.client(PANEL) as panel:
        await panel.request("agent/session/open", {})
        stream = panel.subscribe()
        await stream.ready()
        elsewhere = project.root.parent.as_uri()
        before = 0
        for said in (True, False):
            items = [
                {"folder": elsewhere, "trusted": not said},
                {"folder": project.root.as_uri(), "trusted": said},
            ]
            panel.notify("agent/trust", {"items": items})
            await stream.wait(type="session.trust", after=before)
            before = stream.of("session.trust")[-1]["seq"]
            assert trusted(await panel.request("agent/session/open", {}), project.root) is said
        kept = json.loads((project.dirs.data / "trust.json").read_text())["folders"]
        assert {name: word["said"] for name, word in kept.items()} == {str(project.root): "refused"}


async def test_one_that_only_watches_cannot_trust(project: Ground) -> None:
    options = {"agent": {"client": {"role": "observer"}}}
    async with project.client(PANEL, options=options) as watcher:
        await watcher.request("agent/session/open", {})
        watcher.notify(
            "agent/trust", {"items": [{"folder": project.root.as_uri(), "trusted": True}]}
        )
        with pytest.raises(ClientError) as refused:
            await watcher.request("workspace/executeCommand", {"command": "tiller.trust"})
        assert refused.value.data["kind"] == "PermissionDenied"
        assert not trusted(await watcher.request("agent/session/open", {}), project.root)
    assert not (project.dirs.data / "trust.json").exists()
