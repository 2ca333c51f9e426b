"""Files of an ACP client: its unsaved text is read, and edits go through it."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.acp.client import AcpClient, Json, acp_client, result
from tests.support.clients.server import Ground, calls, says, tool_texts

SAVED: Final = "one\ntwo\n"
UNSAVED: Final = "one\ntwo\nthree, unsaved\n"
READ: Final = ("read", {"path": "a.txt"})
EDIT: Final = ("edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]})
FS: Final = {"fs": {"readTextFile": True, "writeTextFile": True}}
NOT_FOUND: Final = -32002


def with_files(client: AcpClient, texts: dict[str, str], *, lies: bool = False) -> None:
    """Have a client answer for files: texts that it has, over the disk."""

    def read(params: Json) -> Json:
        return {"content": texts.get(params["path"]) or Path(params["path"]).read_text("utf-8")}

    def write(params: Json) -> Json:
        if not lies:
            texts[params["path"]] = params["content"]
        return {}

    client.answers["fs/read_text_file"] = read
    client.answers["fs/write_text_file"] = write


@pytest.mark.parametrize("lies", [False, True], ids=["honest", "lying"])
async def test_unsaved_text_is_read_and_an_edit_is_verified(ground: Ground, *, lies: bool) -> None:
    path = ground.file("a.txt", SAVED)
    ground.provider.script([calls(READ), calls(EDIT), says("done")])
    texts = {str(path): UNSAVED}
    async with acp_client(ground) as client:
        with_files(client, texts, lies=lies)
        await client.initialize(FS)
        session = await client.new(ground.root)
        assert (await result(client.prompt(session, "go")))["stopReason"] == "end_turn"
        (written,) = client.asked("fs/write_text_file")
        read = client.asked("fs/read_text_file")
    told = tool_texts(ground.provider.requests[-1])
    assert "three, unsaved" in told[0]
    assert ("reported success, but the file is not as written" in told[1]) is lies
    assert written == {
        "sessionId": session,
        "path": str(path),
        "content": UNSAVED.replace("two", "2"),
    }
    assert all(one == {"sessionId": session, "path": str(path)} for one in read)
    assert texts[str(path)] == (UNSAVED if lies else UNSAVED.replace("two", "2"))
    assert path.read_text() == SAVED


@pytest.mark.parametrize("declared", [{}, {"fs": {}}, {"fs": {"readTextFile": False}}], ids=str)
async def test_a_client_that_declares_no_files_is_not_asked(ground: Ground, declared: Json) -> None:
    path = ground.file("a.txt", SAVED)
    ground.provider.script([calls(READ), calls(EDIT), says("done")])
    async with acp_client(ground) as client:
        await client.initialize(declared)
        session = await client.new(ground.root)
        await result(client.prompt(session, "go"))
        assert client.asked("fs/read_text_file") == client.asked("fs/write_text_file") == []
    assert path.read_text() == "one\n2\n"


async def test_a_client_that_refuses_or_answers_nonsense_leaves_the_disk(ground: Ground) -> None:
    _ = ground.file("a.txt", SAVED)
    ground.provider.script([calls(READ), calls(READ), calls(("read", {"path": "b.txt"})), says("")])
    async with acp_client(ground) as client:
        await client.initialize({"fs": {"readTextFile": True}})
        session = await client.new(ground.root)
        client.answers["fs/read_text_file"] = lambda _: {"content": 5}
        await result(client.prompt(session, "go"))
    told = tool_texts(ground.provider.requests[-1])
    assert "two" in told[0]
    assert "two" in told[1]
    assert "not found" in told[2].lower()


async def test_the_validator_of_the_registry_finds_a_way_to_sign_in(ground: Ground) -> None:
    """It declares terminals as clients did before `auth.terminal` (agentclientprotocol/registry, client.py)."""
    (ground.dirs.config / "models.json").unlink()
    meta = {"terminal_output": True, "terminal-auth": True}
    async with acp_client(ground) as client:
        answer = await client.initialize({"terminal": True, **FS, "_meta": meta})
    assert [one["type"] for one in answer["authMethods"]] == ["terminal"]
