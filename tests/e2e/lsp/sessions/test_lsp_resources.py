"""Skills, templates and an editor's own settings over LSP: listed, written out, reloaded, and taken at once."""

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.support.clients.server import Ground, prompt, says
from tests.support.lsp.lsp_profiles import PANEL
from tiller_server.lsp.wire.catalogue import CommandListResult, ResourcesReloadResult
from tiller_server.lsp.wire.parsing import parse

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]

Json = dict[str, Any]


@pytest.fixture
def project(ground: Ground) -> Ground:
    """Give a trusted folder with a skill and two templates, one of them broken."""
    ground.configure(sandbox="off", defaultProjectTrust="always", permission={"mode": "auto"})
    ground.file(
        ".agents/skills/forms/SKILL.md", "---\ndescription: Fill in forms.\n---\nUse qpdf.\n"
    )
    ground.file(".tiller/prompts/fix.md", "---\nargument-hint: <what>\n---\nRepair $1 at once.\n")
    ground.file(".tiller/skills/bad/SKILL.md", "---\ndescription: a: b\n---\n")
    return ground


def sent(ground: Ground) -> str:
    return json.dumps(ground.provider.requests[-1]["body"])


async def test_what_can_be_written_after_a_slash_is_listed_and_written_out(
    project: Ground,
) -> None:
    async with project.client(PANEL) as panel:
        listed = await panel.request("agent/command/list", {})
        _ = parse(CommandListResult, listed, method="agent/command/list")
        assert listed["commands"] == [
            {"name": "skill:forms", "source": "skill", "description": "Fill in forms."},
            {
                "name": "fix",
                "source": "prompt",
                "description": "Repair $1 at once.",
                "argumentHint": "<what>",
            },
        ]
        completed = await panel.request("agent/command/complete", {"name": "fix", "prefix": "x"})
        assert completed == {"completions": []}
        project.provider.script([says("done"), says("done")])
        await panel.request("agent/prompt", prompt('/fix "the roof"', wait=True))
        assert "Repair the roof at once." in sent(project)
        assert "<description>Fill in forms.</description>" in sent(project)
        await panel.request("agent/prompt", prompt("/skill:forms now", wait=True))
        assert "Use qpdf.\\n</skill>\\n\\nnow" in sent(project)
        read = await panel.request("agent/session/read", {})
        assert "/fix " in json.dumps(read)


async def test_everything_is_read_again_and_what_is_wrong_is_named(project: Ground) -> None:
    async with project.client(PANEL) as panel:
        before = await panel.request("agent/resources/reload", {})
        _ = parse(ResourcesReloadResult, before, method="agent/resources/reload")
        assert {(one["kind"], one["name"]) for one in before["loaded"]} == {
            ("settings", "settings.json"),
            ("skill", "forms"),
            ("prompt", "fix"),
        }
        (bad,) = before["problems"]
        path = project.root / ".tiller/skills/bad/SKILL.md"
        assert (bad["uri"], bad["line"], bad["level"]) == (path.as_uri(), 2, "error")
        path.unlink()
        project.file("AGENTS.md", "Speak in verse.\n")
        (project.dirs.config / "settings.json").write_text('{"sandbox": 3', "utf-8")
        after = await panel.request("agent/resources/reload", {})
        assert ("context", "AGENTS.md") in {(one["kind"], one["name"]) for one in after["loaded"]}
        assert "is not valid JSON" in after["problems"][0]["message"]


def mode(snapshot: Json) -> str:
    return snapshot["config"]["mode"]


async def until(editor: Any, holds: Callable[[Json], bool]) -> Json:
    """Look until the configuration in force is as it should be."""
    with anyio.fail_after(10):
        while True:
            snapshot = await editor.request("agent/session/open", {})
            if holds(snapshot["config"]):
                return snapshot


CONFIGURED = {
    "workspace": {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
    }
}


async def test_an_editors_settings_are_asked_for_and_followed(project: Ground) -> None:
    said: Json = {"permission": {"mode": "plan"}, "budgets": {"turns": None}, "steeringMode": None}
    asked: list[Json] = []
    registered: list[Json] = []
    async with project.client(CONFIGURED) as editor:

        def configuration(params: Json, reply: Any) -> None:
            asked.append(params)
            reply([said])

        def register(params: Json, reply: Any) -> None:
            registered.append(params)
            reply()

        editor.handlers["workspace/configuration"] = configuration
        editor.handlers["client/registerCapability"] = register
        snapshot = await editor.request("agent/session/open", {})
        assert mode(snapshot) == "plan"
        assert asked == [{"items": [{"section": "tiller"}]}]
        (one,) = registered[0]["registrations"]
        assert one["method"] == "workspace/didChangeConfiguration"
        said = {"permission": {"mode": "yolo"}, "followUpMode": "all"}
        editor.notify("workspace/didChangeConfiguration", {"settings": None})
        snapshot = await until(editor, lambda config: config["followUp"] == "all")
        # Above the user's own setting no editor goes.
        assert mode(snapshot) == "auto"


async def test_an_editor_may_send_its_settings_along(project: Ground) -> None:
    async with project.client({}) as editor:
        assert mode(await editor.request("agent/session/open", {})) == "auto"
        told = {"tiller": {"permission": {"mode": "ask"}}, "python": {"x": 1}}
        editor.notify("workspace/didChangeConfiguration", {"settings": told})
        _ = await until(editor, lambda config: config["mode"] == "ask")
