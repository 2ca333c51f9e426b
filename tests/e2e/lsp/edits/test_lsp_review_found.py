"""`agent/review` over the wire: what is found is answered, told as diagnostics, and fixed by the editor itself."""

import asyncio
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.server import Ground, says
from tests.support.clients.windows import serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import NEOVIM_0_11, PANEL, VSCODE, Profile
from tests.support.review.reviewing import a_report, reports
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
SUMS = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
WRONG = SUMS.replace("a - b", "b - a")
FOUND = a_report("sums.py", 6, "return b - a", suggestion="    return a - b", title="Turned round")


@pytest.fixture
def project(ground: Ground) -> Repository:
    repository = Repository(ground.root)
    repository.commit("Begin", {"sums.py": SUMS})
    repository.write("sums.py", WRONG)
    return repository


def told(client: RawClient, uri: str) -> list[Json]:
    """Give the diagnostics that the editor shows now."""
    shown = [
        one["params"]["diagnostics"]
        for one in client.received
        if one.get("method") == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
    ]
    return shown[-1] if shown else []


async def actions(client: RawClient, uri: str, line0: int) -> list[Json]:
    place = {"line": line0, "character": 0}
    params = {
        "textDocument": {"uri": uri},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": [], "only": ["quickfix"]},
    }
    return await client.request("textDocument/codeAction", params)


@pytest.mark.parametrize("profile", [VSCODE, NEOVIM_0_11, PANEL], ids=lambda one: one.name)
async def test_findings_are_answered_told_and_fixed_by_the_editor(
    ground: Ground, project: Repository, profile: Profile
) -> None:
    uri = (ground.root / "sums.py").as_uri()
    ground.provider.script([reports(FOUND), says("One thing is turned round.")])
    async with serving(ground) as windows, windows.window(profile) as client:
        client.open(uri, WRONG)
        result = await client.request("agent/review", {})
        (finding,) = result["findings"]
        assert (result["status"], result["message"]) == ("completed", "One thing is turned round.")
        assert finding["uri"] == uri
        shown = finding["diagnostic"]
        assert shown["range"] == {
            "start": {"line": 5, "character": 4},
            "end": {"line": 5, "character": 16},
        }
        assert (shown["severity"], shown["code"], shown["source"]) == (1, "bug", "tiller review")
        await soon(lambda: told(client, uri))
        assert told(client, uri) == [shown]
        (fix,) = [one for one in await actions(client, uri, 5) if "edit" in one]
        assert fix["title"] == "Tiller: Fix: Turned round"
        assert fix["edit"]["changes"][uri] == [
            {
                "range": {"start": {"line": 5, "character": 0}, "end": {"line": 6, "character": 0}},
                "newText": "    return a - b\n",
            }
        ]
        # Lines that the user types above move it; the fix takes it away.
        client.change(uri, "# Sums\n" + WRONG)
        await soon(lambda: [one["range"]["start"]["line"] for one in told(client, uri)] == [6])
        client.change(uri, SUMS)
        await soon(lambda: told(client, uri) == [])
        assert [one for one in await actions(client, uri, 5) if "edit" in one] == []


async def test_a_commit_and_paths_narrow_what_is_looked_at(
    ground: Ground, project: Repository
) -> None:
    first = project.head()
    project.commit("Second", {"a/b.py": "B = 1\n", "c.py": "C = 1\n"})
    ground.provider.script([says("Seen.")])
    async with serving(ground) as windows, windows.window() as client:
        asked = {"base": first, "paths": ["a"], "instructions": "Mind the B."}
        result = await client.request("agent/review", asked)
    words = str(ground.provider.requests[0]["body"]["messages"])
    assert result["findings"] == []
    assert "Mind the B." in words
    assert "B = 1" in words
    assert "C = 1" not in words


async def test_a_folder_without_a_repository_is_refused_in_one_sentence(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window() as client:
        with pytest.raises(ClientError, match="is in no Git repository"):
            await client.request("agent/review", {})


async def test_a_review_shows_its_progress_and_stops_when_it_is_cancelled(
    ground: Ground, project: Repository
) -> None:
    ground.provider.script([reports(FOUND), {"text": "a b c", "stall_forever_after_deltas": 1}])
    async with serving(ground) as windows, windows.window() as client:
        async with asyncio.TaskGroup() as tasks:
            review = tasks.create_task(client.request("agent/review", {"workDoneToken": "r"}))
            await ground.provider.requests_arrived(2)
            client.notify("window/workDoneProgress/cancel", {"token": "r"})
        result = review.result()
        kinds = [
            one["params"]["value"]["kind"]
            for one in client.received
            if one.get("method") == "$/progress" and one["params"]["token"] == "r"
        ]
    assert result["status"] == "cancelled"
    assert len(result["findings"]) == 1
    assert (kinds[0], kinds[-1]) == ("begin", "end")


async def test_a_repository_that_names_programs_or_another_work_tree_is_only_read(
    ground: Ground, project: Repository
) -> None:
    mark = ground.root.parent / "PWNED"
    project.write(".gitattributes", "*.py filter=e diff=e\n")
    project.git("config", "filter.e.clean", f"touch {mark}; cat")
    project.git("config", "core.fsmonitor", f"touch {mark}; false")
    mark.unlink(missing_ok=True)
    ground.provider.script([reports(FOUND), says("One thing is turned round.")])
    async with serving(ground) as windows, windows.window(PANEL) as client:
        result = await client.request("agent/review", {})
        assert len(result["findings"]) == 1
        project.git("-c", "core.fsmonitor=false", "config", "core.worktree", "/etc")
        with pytest.raises(
            ClientError, match=r"core\.worktree = '/etc'.*remove that setting"
        ) as no:
            await client.request("agent/review", {})
    assert "Internal" not in str(no.value)
    assert not mark.exists()
