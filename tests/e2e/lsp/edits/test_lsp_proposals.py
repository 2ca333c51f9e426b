"""An edit that no editor could take is applied when its user says so, and they are told where."""

from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import MINIMAL, VSCODE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

Json = dict[str, Any]
DISK = "one\ntwo\nthree\n"
DONE = "one\n2\nthree\n"
TYPED = f"typed\n{DISK}"


def work(*names: str) -> list[Json]:
    swap = [{"oldText": "two", "newText": "2"}]
    edits = [("edit", {"path": name, "edits": swap}) for name in names]
    return [calls(*(("read", {"path": name}) for name in names)), calls(*edits), says("done")]


async def proposed(ground: Ground, client: RawClient, *names: str) -> None:
    """Have the agent edit files that have unsaved text in an editor that takes no edits."""
    for name in names:
        client.open((ground.root / name).as_uri(), DISK)
        client.change((ground.root / name).as_uri(), TYPED)
    ground.provider.script(work(*names))
    result = await client.request("agent/prompt", prompt("go", wait=True))
    assert result["status"] == "completed"


async def apply(client: RawClient, *arguments: Json) -> Json:
    named = {"arguments": list(arguments)} if arguments else {}
    return await client.request("workspace/executeCommand", {"command": "tiller.apply", **named})


async def actions(client: RawClient, uri: str, **context: Any) -> list[Json]:
    start = {"line": 0, "character": 0}
    found = await client.request(
        "textDocument/codeAction",
        {
            "textDocument": {"uri": uri},
            "range": {"start": start, "end": start},
            "context": {"diagnostics": [], **context},
        },
    )
    return [one for one in found if one["command"]["command"] == "tiller.apply"]


async def test_what_waits_is_applied_once_the_user_has_saved(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    async with serving(ground) as windows, windows.window(MINIMAL) as client:
        await opened(client)
        assert (await apply(client))["status"] == "none"
        await proposed(ground, client, "a.py")
        uri = path.as_uri()
        (action,) = await actions(client, uri)
        assert (action["title"], action["kind"]) == (
            "Tiller: Apply the proposed change", "quickfix.tiller",
        )  # fmt: skip
        assert await actions(client, uri, only=["source"]) == []
        assert len(await actions(client, uri, only=["quickfix"])) == 1
        waits = await client.request("workspace/executeCommand", action["command"])
        assert waits["status"] == "waiting"
        assert "minimal, which takes no edits. Save it there" in waits["text"]
        client.editor.save(uri)
        done = await client.request("workspace/executeCommand", action["command"])
        assert done["status"] == "applied"
        assert "on the disk; reload it in minimal" in done["text"]
        shown = client.of("window/showMessage")[-1]
        assert (shown["type"], shown["message"]) == (3, done["text"])
        assert path.read_text("utf-8") == f"typed\n{DONE}"
        assert await actions(client, uri) == []
        assert (await apply(client))["status"] == "none"
        # It is the agent's change like any other, and the model hears of it.
        changes = await client.request("agent/changes/list", {})
        assert [one["state"] for file in changes["files"] for one in file["hunks"]] == ["pending"]
        ground.provider.script([says("fine")])
        await client.request("agent/prompt", prompt("and now?", wait=True))
        assert "has applied your edit" in str(ground.provider.requests[-1]["body"]["messages"])


async def test_it_is_applied_in_another_window_that_owns_the_file(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    async with serving(ground) as windows, windows.window(MINIMAL) as one:
        await opened(one)
        await proposed(ground, one, "a.py")
        one.close_document(path.as_uri())
        async with windows.window(VSCODE) as other:
            await opened(other)
            document = other.open(path.as_uri(), DISK)
            other.change(path.as_uri(), f"{DISK}more\n")
            done = await apply(one)
            # What the first window had unsaved is gone, and what the edit was for with it: it is merged all the same.
            assert (done["status"], document.text) == ("applied", f"{DONE}more\n")
            assert "in Visual Studio Code, unsaved" in done["text"]


async def test_where_the_same_lines_were_changed_it_goes_on_waiting(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    async with serving(ground) as windows, windows.window(MINIMAL) as client:
        await opened(client)
        await proposed(ground, client, "a.py")
        client.change(path.as_uri(), DISK.replace("two", "zwei"))
        client.editor.save(path.as_uri())
        told = await apply(client)
        assert told["status"] == "conflict"
        assert "the same lines were changed" in told["text"]
        assert ".diff" in told["text"]
        assert path.read_text("utf-8") == DISK.replace("two", "zwei")
        client.change(path.as_uri(), DONE)
        client.editor.save(path.as_uri())
        assert (await apply(client))["status"] == "nothing"
        assert (await apply(client))["status"] == "none"


async def test_of_several_the_one_that_was_touched_last_is_meant(ground: Ground) -> None:
    paths = {name: ground.file(name, DISK) for name in ("a.py", "b.py", "c.py")}
    async with serving(ground) as windows, windows.window(MINIMAL) as client:
        await opened(client)
        await proposed(ground, client, "a.py", "b.py")
        for name in ("b.py", "a.py"):
            client.editor.save(paths[name].as_uri())
        client.open(paths["c.py"].as_uri(), DISK)
        unsure = await apply(client)
        assert unsure["status"] == "none"
        assert "changes wait for a.py, b.py" in unsure["text"]
        client.change(paths["b.py"].as_uri(), f"{TYPED}#\n")
        client.editor.save(paths["b.py"].as_uri())
        done = await apply(client)
        assert (done["status"], paths["a.py"].read_text("utf-8")) == ("applied", TYPED)
        assert paths["b.py"].read_text("utf-8") == f"typed\n{DONE}#\n"
        # Now it is the only one.
        assert (await apply(client))["status"] == "applied"
        assert paths["a.py"].read_text("utf-8") == f"typed\n{DONE}"


async def test_it_survives_the_process_and_a_file_that_is_gone_is_told(ground: Ground) -> None:
    path = ground.file("a.py", DISK)
    async with serving(ground) as windows, windows.window(MINIMAL, clientId="w") as client:
        session = (await opened(client))["session"]
        await proposed(ground, client, "a.py")
    async with serving(ground) as windows, windows.window(MINIMAL, clientId="w") as client:
        await opened(client, session)
        path.rename(path.with_name("elsewhere.py"))
        gone = await apply(client)
        assert (gone["status"], "not there any more" in gone["text"]) == ("conflict", True)
        path.with_name("elsewhere.py").rename(path)
        client.open(path.as_uri(), DISK)
        (action,) = await actions(client, path.as_uri())
        done = await client.request("workspace/executeCommand", action["command"])
        assert (done["status"], path.read_text("utf-8")) == ("applied", DONE)


@pytest.mark.parametrize("odd", [{"proposal": 5}, {"session": [], "proposal": "x"}, "words", 7])
async def test_odd_arguments_are_named(ground: Ground, odd: Any) -> None:
    async with serving(ground) as windows, windows.window(MINIMAL) as client:
        await opened(client)
        with pytest.raises(ClientError) as refused:
            await apply(client, odd)
        assert refused.value.code == -32602


async def test_what_is_not_known_and_who_may_not_decide_is_told(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(MINIMAL) as client:
        await opened(client)
        told = await apply(client, {"proposal": "../../etc/passwd"})
        assert (told["status"], "does not wait" in told["text"]) == ("none", True)
        observer = {"role": "observer"}
        async with windows.window(MINIMAL, client=observer) as looks:
            await opened(looks)
            with pytest.raises(ClientError):
                await apply(looks)
