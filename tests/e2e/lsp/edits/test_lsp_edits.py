"""The main job over LSP: unsaved text is read, edits land in the buffer and are verified, the model hears the truth."""

from collections.abc import Callable

import pytest

from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_behaviours import (
    EditBehaviour,
    Honest,
    Refuses,
    RefusesStaleVersions,
    SaysAppliedButDidNothing,
)
from tests.support.lsp.lsp_profiles import NEOVIM_0_11, PANEL, VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

DISK = "def area(w, h):\n    return w * h\n"
UNSAVED = "def area(w, h):\n    # 🦜 unsaved thought\n    return w * hight\n"
REPAIR = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
READ = ("read", {"path": "shape.py"})
LANDED = "def area(w, h):\n    # 🦜 unsaved thought\n    return w * h\n"


@pytest.mark.parametrize(
    "profile", [VSCODE, NEOVIM_0_11], ids=["utf-16-with-document-changes", "neovim-utf-8"]
)
async def test_the_model_reads_unsaved_text_and_its_edit_lands_in_the_buffer_alone(
    ground: Ground, profile: Profile
) -> None:
    path = ground.file("shape.py", DISK)
    ground.provider.script([calls(READ), calls(REPAIR), says("done")])
    async with ground.client(profile) as client:
        document = client.open(path.as_uri(), DISK)
        client.change(path.as_uri(), UNSAVED)
        typed = document.version
        result = await client.request("agent/prompt", prompt("repair it", wait=True))
        assert result["status"] == "completed"
        assert document.text == LANDED
        assert document.version == typed + 1
        assert path.read_text("utf-8") == DISK
        first, second = tool_texts(ground.provider.requests[-1])
        assert "unsaved thought" in first
        assert "Successfully replaced 1 block(s)" in second
        assert "unsaved" in second.lower()
        assert client.undeclared == []


async def test_the_edit_is_versioned_minimal_and_told_before_the_model_hears_of_it(
    ground: Ground,
) -> None:
    path = ground.file("shape.py", DISK)
    ground.provider.script([calls(READ), calls(REPAIR), says("done")])
    async with ground.client(VSCODE) as client:
        client.open(path.as_uri(), DISK)
        client.change(path.as_uri(), UNSAVED)
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("repair it"))
        await stream.wait(type="run.ended")
        (sent,) = [m for m in client.received if m.get("method") == "workspace/applyEdit"]
        (change,) = sent["params"]["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": path.as_uri(), "version": 2}
        assert sum(len(edit["newText"]) for edit in change["edits"]) < 10
        types = stream.types()
        applied = next(e for e in stream.events if e["type"] == "edit.applied")
        assert applied["documents"][0]["uri"] == path.as_uri()
        assert applied["documents"][0]["saved"] is False
        edit_ended = next(
            e for e in stream.events if e["type"] == "tool.ended" and e["name"] == "edit"
        )
        assert applied["seq"] < edit_ended["seq"]
        assert types[-2:] == ["run.ended", "session.state"]
        assert stream.faults == []


@pytest.mark.parametrize(
    ("behaviour", "lands", "says_so"),
    [
        (lambda: Honest(first="changes"), True, "Successfully replaced"),
        (lambda: Honest(first="response"), True, "Successfully replaced"),
        (RefusesStaleVersions, True, "Successfully replaced"),
        (SaysAppliedButDidNothing, False, "did not change"),
        (Refuses, False, "the user said no"),
    ],
    ids=["honest", "honest-response-first", "checks-versions", "lies", "refuses"],
)
async def test_the_tool_result_is_true_whatever_the_client_does(
    ground: Ground, behaviour: Callable[[], EditBehaviour], lands: bool, says_so: str
) -> None:
    path = ground.file("shape.py", DISK)
    ground.provider.script([calls(READ), calls(REPAIR), says("done")])
    async with ground.client(VSCODE) as client:
        client.edits = behaviour()
        document = client.open(path.as_uri(), DISK)
        client.change(path.as_uri(), UNSAVED)
        result = await client.request("agent/prompt", prompt("repair it", wait=True))
        assert result["status"] == "completed"
        told = tool_texts(ground.provider.requests[-1])[-1]
        assert says_so in told
        assert (document.text == LANDED) is lands
        assert ("Successfully" in told) is lands
        assert path.read_text("utf-8") == DISK


async def test_a_closed_file_is_edited_on_disk_and_keeps_its_line_ends(ground: Ground) -> None:
    path = ground.file("shape.py", "a = 1\r\nb = hight\r\n")
    ground.provider.script([calls(REPAIR), says("done")])
    async with ground.client(VSCODE) as client:
        await client.request("agent/prompt", prompt("repair it", wait=True))
        assert path.read_bytes() == b"a = 1\r\nb = h\r\n"
        assert not any(m.get("method") == "workspace/applyEdit" for m in client.received)


async def test_a_clean_document_is_saved_where_the_client_can(ground: Ground) -> None:
    path = ground.file("shape.py", "b = hight\n")
    ground.provider.script([calls(REPAIR), says("done")])
    async with ground.client(PANEL) as client:
        document = client.open(path.as_uri(), "b = hight\n")
        await client.request("agent/prompt", prompt("repair it", wait=True))
        assert document.text == "b = h\n"
        assert path.read_text("utf-8") == "b = h\n"


async def test_an_edit_outside_of_the_workspace_is_refused_and_the_model_told(
    ground: Ground,
) -> None:
    outside = ground.root.parent / "outside.py"
    outside.write_text("secret = 1\n", encoding="utf-8")
    edit = ("edit", {"path": "../outside.py", "edits": [{"oldText": "1", "newText": "2"}]})
    ground.provider.script([calls(edit), says("ok")])
    async with ground.client(VSCODE) as client:
        await client.request("agent/prompt", prompt("try", wait=True))
        assert "outside" in tool_texts(ground.provider.requests[-1])[0]
        assert outside.read_text("utf-8") == "secret = 1\n"


async def test_a_change_with_a_null_range_is_the_whole_text(ground: Ground) -> None:
    path = ground.file("shape.py", DISK)
    ground.provider.script([calls(READ), says("done")])
    async with ground.client(VSCODE) as client:
        client.open(path.as_uri(), DISK)
        client.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": path.as_uri(), "version": 2},
                "contentChanges": [{"range": None, "rangeLength": None, "text": "typed = 1\n"}],
            },
        )
        await client.request("agent/prompt", prompt("look", wait=True))
        assert tool_texts(ground.provider.requests[-1])[0].startswith("typed = 1")
