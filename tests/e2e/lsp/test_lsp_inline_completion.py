"""`textDocument/inlineCompletion` of any editor: text at the cursor from a model, of what is not saved, and the exceptions."""

import copy
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.clients.office import Office, opened, soon
from tests.support.clients.server import Ground, says
from tests.support.lsp.lsp_profiles import VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

METHOD = "textDocument/inlineCompletion"
INVOKED, AUTOMATIC = 1, 2
Json = dict[str, Any]


def _able() -> Profile:
    capabilities = copy.deepcopy(VSCODE.capabilities)
    capabilities["textDocument"]["inlineCompletion"] = {"dynamicRegistration": True}
    return replace(VSCODE, capabilities=capabilities)


ABLE = _able()


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure()
    async with opened(ground) as office:
        yield office


def at(uri: str, line: int, character: int, *, kind: int = INVOKED, **context: Any) -> Json:
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": kind, **context},
    }


async def test_unsaved_text_is_completed_without_a_run(office: Office) -> None:
    office.ground.provider.script([says("return a + b")])
    client = await office.seat(ABLE)
    assert client.result["capabilities"]["inlineCompletionProvider"] is True
    document = client.editor.open_file(office.ground.file("sums.py", "x = 1\n"))
    _ = client.change(document.uri, "def add(a, b):\n    \n\n# 😀 end\n")
    (item,) = await client.request(METHOD, at(document.uri, 1, 4))
    here = {"line": 1, "character": 4}
    assert item == {"insertText": "return a + b", "range": {"start": here, "end": here}}
    (request,) = office.ground.provider.requests
    sent = request["body"]["messages"][-1]["content"]
    assert "<before>\ndef add(a, b):\n    </before>\n<after>\n\n# 😀 end\n" in str(sent)
    assert "tools" not in request["body"]
    assert office.ground.sessions() == []
    costs = await client.request("agent/costs", {"by": "purpose"})
    assert [(row["key"], row["calls"]) for row in costs["sums"]] == [("completion", 1)]


async def test_files_of_every_folder_of_the_workspace_are_completed(office: Office) -> None:
    client = await office.seat(ABLE)
    other = office.ground.root.parent / "other"
    other.mkdir()
    path = other / "more.py"
    path.write_text("y = \n", encoding="utf-8")
    document = client.editor.open_file(path)
    assert await client.request(METHOD, at(document.uri, 0, 4)) == []
    added = {"added": [{"uri": other.as_uri(), "name": "other"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": added})
    (hosted,) = (await office.runtime.agent()).sessions()
    await soon(lambda: len(hosted.roots) == 2)
    office.ground.provider.script([says("2")])
    (item,) = await client.request(METHOD, at(document.uri, 0, 4))
    assert item["insertText"] == "2"


async def test_a_completion_goes_on_from_the_chosen_entry_of_the_menu(office: Office) -> None:
    office.ground.provider.script([says("(values)")])
    client = await office.seat(ABLE)
    document = client.editor.open_file(office.ground.file("sums.py", "total = su\n"))
    word = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": 10}}
    params = at(document.uri, 0, 10, selectedCompletionInfo={"range": word, "text": "sum"})
    (item,) = await client.request(METHOD, params)
    assert item == {"insertText": "sum(values)", "range": word}
    sent = office.ground.provider.requests[0]["body"]["messages"][-1]["content"]
    assert "<before>\ntotal = sum</before>" in str(sent)


async def test_the_setting_decides_which_requests_are_answered(office: Office) -> None:
    client = await office.seat(ABLE)
    document = client.editor.open_file(office.ground.file("sums.py", "x = \n"))
    automatic = at(document.uri, 0, 4, kind=AUTOMATIC)
    assert await client.request(METHOD, automatic) == []
    assert office.ground.provider.requests == []
    office.ground.configure(completion={"trigger": "off"})
    _ = await client.request("agent/session/open", {"session": "new"})
    assert await client.request(METHOD, at(document.uri, 0, 4)) == []
    assert office.ground.provider.requests == []
    office.ground.configure(completion={"trigger": "automatic"})
    _ = await client.request("agent/session/open", {"session": "new"})
    office.ground.provider.script([says("2")])
    (item,) = await client.request(METHOD, automatic)
    assert item["insertText"] == "2"


async def test_an_automatic_request_opens_no_session(ground: Ground) -> None:
    ground.configure(completion={"trigger": "automatic"})
    async with ground.client(ABLE) as client:
        document = client.editor.open_file(ground.file("sums.py", "x = \n"))
        assert await client.request(METHOD, at(document.uri, 0, 4, kind=AUTOMATIC)) == []
        assert (await client.request("agent/status", {}))["sessions"] == []


async def test_files_with_secrets_and_outside_of_the_folder_are_sent_to_no_model(
    office: Office,
) -> None:
    client = await office.seat(ABLE)
    outside = office.ground.root.parent / "elsewhere.py"
    outside.write_text("x = \n", encoding="utf-8")
    link = office.ground.root / "linked.py"
    link.symlink_to(outside)
    secret = office.ground.file(".env", "KEY=\n")
    for path in (outside, link, secret):
        document = client.editor.open_file(path)
        assert await client.request(METHOD, at(document.uri, 0, 4)) == []
    assert office.ground.provider.requests == []


async def test_a_failure_is_shown_to_who_asked_and_bad_params_are_no_error(office: Office) -> None:
    client = await office.seat(ABLE)
    document = client.editor.open_file(office.ground.file("sums.py", "x = \n"))
    for params in ({}, {"textDocument": {"uri": 3}}, at("file:///none.py", 0, 0)):
        assert await client.request(METHOD, params) == []
    office.ground.provider.script(
        [{"status": 400, "body": {"error": {"message": "no such model"}}}]
    )
    assert await client.request(METHOD, at(document.uri, 0, 4)) == []
    shown = await client.wait_method("window/showMessage")
    assert shown["params"]["message"].startswith("Tiller: there is no completion here: ")
