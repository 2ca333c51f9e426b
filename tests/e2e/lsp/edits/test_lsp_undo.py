"""What a user makes of the agent's edits reaches everybody: undone, saved, asked about before a command, or proposed."""

import anyio
import pytest

from tests.support.clients.server import Ground, calls, prompt, says, tool_texts
from tests.support.lsp.lsp_answers import Chooses
from tests.support.lsp.lsp_profiles import MINIMAL, NEOVIM_0_11, PANEL, VSCODE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

DISK = "one\ntwo\nthree\n"
EDITED = "one\n2\nthree\n"
EDIT = ("edit", {"path": "a.py", "edits": [{"oldText": "two", "newText": "2"}]})
CAT = ("bash", {"command": "cat a.py"})
UNDID = "The user undid your edit"


async def test_an_undo_is_told_once_to_everybody_and_to_the_model_with_the_next_prompt(
    ground: Ground,
) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), says("done"), says("I see"), says("and so on")])
    async with ground.client(VSCODE) as client:
        client.open(path.as_uri(), DISK)
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go", wait=True))
        applied = await stream.wait(type="edit.applied")
        client.change(path.as_uri(), DISK)
        undone = await stream.wait(type="edit.undone")
        assert (undone["edit"], undone["call"]) == (applied["edit"], applied["call"])
        assert undone["documents"][0] | {"version": 0, "sha256": ""} == {
            "uri": path.as_uri(),
            "status": "undone",
            "saved": False,
            "version": 0,
            "sha256": "",
        }
        assert "run" not in undone, "nothing of a run follows its end"
        for words in ("what now?", "and?"):
            await client.request("agent/prompt", prompt(words, wait=True))
        asked = [str(one["body"]["messages"]) for one in ground.provider.requests]
        assert [one.count(UNDID) for one in asked] == [0, 0, 1, 1]
        assert len(stream.of("edit.undone")) == 1
        assert stream.faults == []


async def test_an_undo_right_before_a_prompt_is_part_of_it(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), says("done"), says("I see")])
    async with ground.client(NEOVIM_0_11) as client:
        client.open(path.as_uri(), DISK)
        await client.request("agent/prompt", prompt("go", wait=True))
        client.change(path.as_uri(), DISK)
        await client.request("agent/prompt", prompt("what now?", wait=True))
        assert UNDID in str(ground.provider.requests[-1]["body"]["messages"])


async def test_a_save_by_the_user_is_told(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), says("done")])
    async with ground.client(VSCODE) as client:
        client.open(path.as_uri(), DISK)
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go", wait=True))
        applied = await stream.wait(type="edit.applied")
        assert applied["documents"][0]["saved"] is False
        client.editor.save(path.as_uri())
        saved = await stream.wait(type="edit.saved")
        assert (saved["edit"], saved["documents"][0]["saved"]) == (applied["edit"], True)


async def test_a_panel_is_asked_for_the_edit_by_the_id_of_its_events(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), calls(CAT), says("done")])
    async with ground.client(PANEL) as client:
        client.open(path.as_uri(), DISK)
        stream = client.subscribe()
        await stream.ready()
        result = await client.request("agent/prompt", prompt("go", wait=True))
        applied = await stream.wait(type="edit.applied")
        (asked,) = [m["params"] for m in client.received if m.get("method") == "agent/edit/apply"]
        named = asked["edit"]
        assert (named["id"], named["toolCall"]) == (applied["edit"], applied["call"])
        assert (named["run"], bool(named["session"])) == (result["run"], True)
        assert tool_texts(ground.provider.requests[-1])[-1] == EDITED
        assert client.undeclared == []


async def test_a_plain_editors_user_is_asked_once_before_commands_read_old_files(
    ground: Ground,
) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), calls(CAT), calls(CAT), says("done")])
    async with ground.client(VSCODE) as client:
        asked = client.handlers["window/showMessageRequest"] = Chooses("Run on old files")
        client.open(path.as_uri(), DISK)
        await client.request("agent/prompt", prompt("go", wait=True))
        (dialog,) = asked.asked
        titles = [one["title"] for one in dialog["actions"]]
        assert titles == ["I saved – go on", "Run on old files", "Write my agent edits to disk"]
        assert all(len(title) <= 60 for title in titles)
        for told in tool_texts(ground.provider.requests[-1])[1:]:
            assert told.startswith(DISK)
            assert f"programs read the old text from the disk: {path}" in told


async def test_a_question_about_saving_goes_away_when_the_user_saves(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), calls(CAT), says("done")])
    async with ground.client(VSCODE) as client:
        shown = anyio.Event()
        client.handlers["window/showMessageRequest"] = lambda _params, _reply: shown.set()
        client.open(path.as_uri(), DISK)
        call = client.call("agent/prompt", prompt("go", wait=True))
        await shown.wait()
        client.editor.save(path.as_uri())
        assert (await call.result())["status"] == "completed"
        assert tool_texts(ground.provider.requests[-1])[-1] == EDITED
        assert any(m.get("method") == "$/cancelRequest" for m in client.received)


async def test_nobody_is_asked_who_does_not_want_to_be(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), calls(CAT), says("done")])
    options = {"agent": {"edit": {"saveBarrier": "off"}}}
    async with ground.client(VSCODE, options=options) as client:
        asked = client.handlers["window/showMessageRequest"] = Chooses()
        client.open(path.as_uri(), DISK)
        await client.request("agent/prompt", prompt("go", wait=True))
        assert asked.asked == []
        assert "programs read the old text" in tool_texts(ground.provider.requests[-1])[-1]


async def test_an_edit_that_the_editor_cannot_take_is_proposed(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), says("done")])
    async with ground.client(MINIMAL) as client:
        client.open(path.as_uri(), DISK)
        client.change(path.as_uri(), f"typed\n{DISK}")
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go", wait=True))
        proposed = await stream.wait(type="edit.proposed")
        assert proposed["documents"][0]["status"] == "proposed"
        (patch,) = ground.dirs.data.glob("proposals/*/*.diff")
        told = tool_texts(ground.provider.requests[-1])[0]
        assert str(patch) in told
        assert "not applied" in told
        assert "+2" in patch.read_text("utf-8")
        assert path.read_text("utf-8") == DISK


TWO_EDITS = ("edit", {"path": "a.py", "edits": [{"oldText": "one", "newText": "1"}, {"oldText": "three", "newText": "3"}]})  # fmt: skip
TWO_EDITED = "1\ntwo\n3\n"
FIRST_ONLY = "1\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("texts", "states", "last"),
    [
        ([TWO_EDITED], ["accepted", "pending"], "undid their rejection"),
        ([TWO_EDITED, DISK], ["orphaned", "rejected"], UNDID),
        ([DISK], ["orphaned", "rejected"], UNDID),
        ([TWO_EDITED, DISK, TWO_EDITED, FIRST_ONLY], ["accepted", "rejected"], "rejected your changes in"),
    ],
    ids=["the rejection", "one after the other", "both at once", "and done again"],
)  # fmt: skip
async def test_after_an_undone_rejection_hunks_and_model_know_what_the_text_holds(
    ground: Ground, texts: list[str], states: list[str], last: str
) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(TWO_EDITS), says("done"), says("I see")])
    async with ground.client(VSCODE) as client:
        document = client.open(path.as_uri(), DISK)
        stream = client.subscribe()
        await stream.ready()
        result = await client.request("agent/prompt", prompt("go", wait=True))
        (file,) = result["changes"]["files"]
        keep, reject = (
            {"hunk": hunk["id"], "action": action}
            for hunk, action in zip(file["hunks"], ("accept", "reject"), strict=True)
        )
        await client.request("agent/changes/resolve", {"items": [keep, reject]})
        assert document.text == FIRST_ONLY
        for text in texts:
            client.change(path.as_uri(), text)
            await client.request("agent/status", {})
        await client.request("agent/prompt", prompt("what now?", wait=True))
        changes = await client.request("agent/changes/list", {})
        assert [hunk["state"] for hunk in changes["files"][0]["hunks"]] == states
        said = str(ground.provider.requests[-1]["body"]["messages"])
        told = ("undid their rejection", UNDID, "brought your edit", "rejected your changes in")
        assert max(told, key=said.rfind) == last


async def test_after_an_undone_restore_the_changes_wait_again_and_can_be_restored_again(
    ground: Ground,
) -> None:
    path = ground.file("a.py", DISK)
    ground.provider.script([calls(EDIT), says("done"), says("I see")])
    async with ground.client(VSCODE) as client:
        document = client.open(path.as_uri(), DISK)
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("go", wait=True))
        (point,) = (await client.request("agent/checkpoint/list", {}))["checkpoints"]
        back = {"checkpoint": point["checkpoint"], "scope": "files"}
        await client.request("agent/checkpoint/restore", back)
        assert document.text == DISK
        client.change(path.as_uri(), EDITED)
        undone = await stream.wait(type="edit.undone")
        assert undone["documents"][0]["why"] == "the restore was undone in the editor"
        await client.request("agent/prompt", prompt("what now?", wait=True))
        changes = await client.request("agent/changes/list", {})
        assert [hunk["state"] for hunk in changes["files"][0]["hunks"]] == ["pending"]
        said = str(ground.provider.requests[-1]["body"]["messages"])
        assert said.rfind("undid the restore") > said.rfind("took files back")
        assert UNDID not in said
        again = await client.request("agent/checkpoint/preview", back)
        assert [file["status"] for file in again["files"]] == ["agentOnly"]
