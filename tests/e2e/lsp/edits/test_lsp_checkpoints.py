"""Going back over LSP: what the agent did is gone, also in open documents; what was typed is there."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.clients.office import Office, opened, soon
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.lsp.lsp_answers import Chooses
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import HELIX, VSCODE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

SHOW = "window/showMessageRequest"
OPEN = "def area(w, h):\n    return w * hight\n\n\ndef other():\n    pass\n"
REPAIR = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
WORK = [
    calls(("read", {"path": "shape.py"})),
    calls(REPAIR),
    calls(("write", {"path": "new/made.py", "content": "made = 1\n"})),
    calls(("bash", {"command": "echo two > plain.txt; echo x > by_command.txt"})),
    says("done"),
]


@pytest.fixture
async def office(ground: Ground) -> AsyncGenerator[Office]:
    ground.configure(sandbox="off")
    ground.file("shape.py", OPEN)
    ground.file("plain.txt", "one\n")
    ground.provider.script(WORK)
    async with opened(ground) as office:
        yield office


def uri(office: Office, name: str) -> str:
    return (office.ground.root / name).as_uri()


def disk(office: Office) -> dict[str, str]:
    root = office.ground.root
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8")
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".tiller" not in path.parts
    }


async def test_a_run_is_taken_back_in_the_buffer_and_on_the_disk_and_forth_again(
    office: Office,
) -> None:
    client = await office.seat(VSCODE)
    document = client.open(uri(office, "shape.py"), OPEN)
    client.change(uri(office, "shape.py"), OPEN.replace("other", "andere"))
    before = disk(office)
    result = await client.request("agent/prompt", prompt("go", wait=True))
    assert result["status"] == "completed"
    assert "w * h\n" in document.text
    after, edited = disk(office), document.text
    listed = await client.request("agent/checkpoint/list", {})
    (made,) = listed["checkpoints"]
    assert (made["run"], made["files"]) == (result["run"], 4)
    asked = {"checkpoint": made["checkpoint"], "scope": "files"}
    shown = await client.request("agent/checkpoint/preview", asked)
    assert {one["uri"]: one["status"] for one in shown["files"]} == dict.fromkeys(
        (uri(office, n) for n in ("shape.py", "new/made.py", "by_command.txt", "plain.txt")),
        "agentOnly",
    )
    (diff,) = [one["diff"] for one in shown["files"] if one["uri"].endswith("shape.py")]
    assert "-    return w * h\n+    return w * hight\n" in diff
    done = await client.request("agent/checkpoint/restore", {**asked, "onConflict": "skip"})
    assert (len(done["restored"]), done["skipped"]) == (4, [])
    assert disk(office) == before
    assert document.text == OPEN.replace("other", "andere")
    again = {"checkpoint": done["undo"], "scope": "files", "onConflict": "skip"}
    await client.request("agent/checkpoint/restore", again)
    assert (disk(office), document.text) == (after, edited)


async def test_what_was_typed_since_stays_and_by_choice_only_the_agents_lines_go(
    office: Office,
) -> None:
    client = await office.seat(VSCODE)
    document = client.open(uri(office, "shape.py"), OPEN)
    await client.request("agent/prompt", prompt("go", wait=True))
    client.change(uri(office, "shape.py"), f"{document.text}# mine\n")
    (made,) = (await client.request("agent/checkpoint/list", {}))["checkpoints"]
    asked = {"checkpoint": made["checkpoint"], "scope": "files", "files": [uri(office, "shape.py")]}
    with pytest.raises(ClientError) as refused:
        await client.request("agent/checkpoint/restore", {**asked, "onConflict": "skip"})
    assert refused.value.data["kind"] == "CheckpointConflict"
    done = await client.request("agent/checkpoint/restore", {**asked, "onConflict": "merge"})
    assert (done["restored"], document.text) == ([uri(office, "shape.py")], f"{OPEN}# mine\n")


async def test_what_is_open_in_one_editor_goes_back_in_one_step(office: Office) -> None:
    names = ["one.py", "two.py", "three.py"]
    work = [("edit", {"path": n, "edits": [{"oldText": "hight", "newText": "h"}]}) for n in names]
    for name in names:
        office.ground.file(name, OPEN)
    client = await office.seat(VSCODE)
    documents = [client.open(uri(office, name), OPEN) for name in names]
    reads = calls(*(("read", {"path": name}) for name in names))
    office.ground.provider.script([reads, calls(*work), says("done")])
    await client.request("agent/prompt", prompt("go", wait=True))
    before = len(client.of("workspace/applyEdit"))
    edited = [one.text for one in documents]
    # The user is in the second one, elsewhere.
    client.change(uri(office, "two.py"), f"{documents[1].text}# mine\n")
    (made,) = (await client.request("agent/checkpoint/list", {}))["checkpoints"]
    asked = {"checkpoint": made["checkpoint"], "scope": "files", "onConflict": "merge"}
    done = await client.request("agent/checkpoint/restore", asked)
    assert (len(done["restored"]), done["skipped"]) == (3, [])
    (step,) = client.of("workspace/applyEdit")[before:]
    assert len(step["edit"]["documentChanges"]) == 3
    assert [one.text for one in documents] == [OPEN, f"{OPEN}# mine\n", OPEN]
    again = {"checkpoint": done["undo"], "scope": "files", "onConflict": "skip"}
    await client.request("agent/checkpoint/restore", again)
    assert [one.text for one in documents] == [edited[0], f"{edited[1]}# mine\n", edited[2]]
    assert len(client.of("workspace/applyEdit")) == before + 2


async def test_a_plain_editor_is_asked_and_then_the_last_run_is_taken_back(
    office: Office,
) -> None:
    before = disk(office)
    client = await office.seat(HELIX, handlers={SHOW: Chooses("Take back")})
    nothing = await client.request("workspace/executeCommand", {"command": "tiller.restore"})
    assert nothing == {"checkpoint": None}
    await client.request("agent/prompt", prompt("go", wait=True))
    assert disk(office) != before
    told = await client.request("workspace/executeCommand", {"command": "tiller.restore"})
    assert told["checkpoint"]
    await soon(lambda: disk(office) == before)


async def test_bad_params_are_refused_and_change_nothing(office: Office) -> None:
    client = await office.seat(VSCODE)
    await client.request("agent/prompt", prompt("go", wait=True))
    after = disk(office)
    (made,) = (await client.request("agent/checkpoint/list", {}))["checkpoints"]
    good = {"checkpoint": made["checkpoint"], "scope": "files", "onConflict": "skip"}
    for bad in (
        {"checkpoint": "nope"},
        {"scope": "everything"},
        {"onConflict": "force"},
        {"files": ["untitled:1"]},
        {"checkpoint": None},
    ):
        with pytest.raises(ClientError):
            await client.request("agent/checkpoint/restore", {**good, **bad})
    assert disk(office) == after
