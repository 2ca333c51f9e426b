"""What the agent changed, looked at and decided over the wire: by a panel, by two windows, by an editor without a plugin."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, PANEL, VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
TEXT = "".join(f"line {number}\n" for number in range(1, 31))
FILES = 50


def edited(text: str = TEXT) -> str:
    for number in (2, 15, 29):
        text = text.replace(f"line {number}\n", f"LINE {number}\n")
    return text


def edit(name: str) -> tuple[str, Json]:
    swaps = [{"oldText": f"line {n}\n", "newText": f"LINE {n}\n"} for n in (2, 15, 29)]
    return "edit", {"path": name, "edits": swaps}


def item(hunk: Json, action: str = "reject") -> Json:
    return {"hunk": hunk["id"], "action": action}


async def run_one(ground: Ground, client: RawClient, name: str = "a.txt") -> Json:
    """Let the agent edit one file and give the change set of the run."""
    ground.provider.script([calls(("read", {"path": name})), calls(edit(name)), says("done")])
    result = await client.request("agent/prompt", prompt("go", wait=True))
    assert result["status"] == "completed"
    return result["changes"]


async def test_fifty_files_change_while_a_window_does_not_read_and_a_hunk_is_rejected(
    ground: Ground,
) -> None:
    paths = [ground.file(f"f{number:02}.txt", TEXT) for number in range(FILES)]
    reads = calls(*(("read", {"path": path.name}) for path in paths))
    ground.provider.script([reads, calls(*(edit(path.name) for path in paths)), says("done")])
    async with serving(ground) as windows, windows.window() as panel, windows.window() as stuck:
        snapshot = await opened(panel)
        await opened(stuck)
        await stuck.subscribe().ready()
        stuck.stop_reading()
        result = await panel.request("agent/prompt", prompt("go", wait=True), timeout_s=60)
        assert result["status"] == "completed"
        assert [path.read_text("utf-8") for path in paths] == [edited()] * FILES
        changes = await panel.request("agent/changes/list", {"run": result["run"]})
        assert len(changes["files"]) == FILES
        assert {len(file["hunks"]) for file in changes["files"]} == {3}
        assert result["changes"]["files"] == changes["files"]
        chosen = changes["files"][17]
        second = chosen["hunks"][1]
        assert second["before"] == second["after"]
        assert second["after"]["start"] == {"line": 14, "character": 0}
        answer = await panel.request(
            "agent/changes/resolve", {"items": [item(second)], "note": "15 stays"}
        )
        assert answer["results"] == [{"id": second["id"], "status": "done"}]
        # The file, the picture and the model agree.
        assert text_of(paths[17]) == edited().replace("LINE 15", "line 15")
        counts = {
            "files": FILES, "additions": 3 * FILES - 1, "deletions": 3 * FILES - 1,
            "unreviewed": 3 * FILES - 1,
        }  # fmt: skip
        assert (await opened(panel, snapshot["session"]))["changes"] == counts
        ground.provider.script([says("I see")])
        await panel.request("agent/prompt", prompt("go on", wait=True))
        said = str(ground.provider.requests[-1]["body"]["messages"])
        assert "15 stays" in said
        assert "f17.txt, line 15" in said
        stuck.resume_reading()
        assert (await opened(stuck, snapshot["session"]))["changes"] == counts


async def test_two_windows_decide_at_once_and_one_is_told_so(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    async with serving(ground) as windows, windows.window() as one, windows.window() as other:
        await opened(one)
        await opened(other)
        (file,) = (await run_one(ground, one))["files"]
        first, second, third = file["hunks"]
        accepting = one.call(
            "agent/changes/resolve", {"items": [item(first, "accept"), item(second)]}
        )
        rejecting = other.call(
            "agent/changes/resolve", {"items": [item(first), item(second), item(third)]}
        )
        statuses = [
            [each["status"] for each in (await call.result())["results"]]
            for call in (accepting, rejecting)
        ]
        assert statuses in (
            [["done", "done"], ["conflict", "done", "done"]],
            [["conflict", "done"], ["done", "done", "done"]],
        )
        kept = statuses[0][0] == "done"
        assert path.read_text("utf-8") == (TEXT.replace("line 2\n", "LINE 2\n") if kept else TEXT)


@pytest.mark.parametrize(
    ("profile", "steps"), [(VSCODE, [3]), (NEOVIM_0_11, [1, 1, 1])], ids=["VS Code", "Neovim"]
)
async def test_a_change_set_is_rejected_in_one_step_where_the_editor_can(
    ground: Ground, profile: Profile, steps: list[int]
) -> None:
    paths = [ground.file(name, TEXT) for name in ("a.txt", "b.txt", "c.txt")]
    reads = calls(*(("read", {"path": path.name}) for path in paths))
    ground.provider.script([reads, calls(*(edit(path.name) for path in paths)), says("done")])
    async with serving(ground) as windows, windows.window(profile) as client:
        await opened(client)
        documents = [client.open(path.as_uri(), TEXT) for path in paths]
        result = await client.request("agent/prompt", prompt("go", wait=True))
        assert [one.text for one in documents] == [edited()] * 3
        before = len(client.of("workspace/applyEdit"))
        wish = {"changeSet": result["changes"]["id"], "action": "reject"}
        answer = await client.request("agent/changes/resolve", {"items": [wish]})
        assert [one["status"] for one in answer["results"]] == ["done"]
        edits = client.of("workspace/applyEdit")[before:]
        assert [len(one["edit"]["documentChanges"]) for one in edits] == steps
        assert [one.text for one in documents] == [TEXT] * 3
        left = await client.request("agent/changes/list", {"run": result["run"]})
        states = {hunk["state"] for file in left["files"] for hunk in file["hunks"]}
        assert states == {"rejected"}


async def test_the_patch_is_one_that_git_takes(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    async with serving(ground) as windows, windows.window() as client:
        await opened(client)
        await run_one(ground, client)
        changes = await client.request("agent/changes/list", {"format": "gitPatch"})
        assert changes["files"][0]["hunks"] == []
        path.write_text(TEXT, encoding="utf-8")
        git(ground.root, "apply", "-", said=changes["patch"])
        assert path.read_text("utf-8") == edited()


async def test_what_was_committed_is_accepted(ground: Ground) -> None:
    ground.file("a.txt", TEXT)
    git(ground.root, "init", "-q")
    git(ground.root, "add", "a.txt")
    git(ground.root, "commit", "-q", "-m", "before")
    async with serving(ground) as windows, windows.window() as client:
        await opened(client)
        (file,) = (await run_one(ground, client))["files"]
        assert {one["state"] for one in file["hunks"]} == {"pending"}
        git(ground.root, "commit", "-q", "-a", "-m", "after")
        changes = await client.request("agent/changes/list", {})
        assert {one["state"] for one in changes["files"][0]["hunks"]} == {"accepted"}
        assert (await opened(client))["changes"]["unreviewed"] == 0


def git(root: Path, *words: str, said: str = "") -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], cwd=root, input=said.encode(), check=True)


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize("profile", [NEOVIM_0_11, HELIX, VSCODE], ids=lambda one: one.name)
async def test_an_editor_without_a_plugin_shows_hints_and_rejects_by_a_code_action(
    ground: Ground, profile: Profile
) -> None:
    path = ground.file("a.txt", TEXT)
    uri = path.as_uri()
    async with serving(ground) as windows, windows.window(profile) as client:
        document = client.open(uri, TEXT)
        await opened(client)
        await run_one(ground, client)
        assert document.text == edited()
        await soon(lambda: lines_of(client, uri) == [1, 14, 28])
        (hint, *_) = hints_of(client, uri)
        assert (hint["severity"], hint["source"]) == (4, "tiller")
        assert hint["message"] == "Changed by the agent; before: line 2"
        client.change(uri, "mine\n" + document.text)
        await soon(lambda: lines_of(client, uri) == [2, 15, 29])
        here = {"line": 15, "character": 3}
        actions = await client.request(
            "textDocument/codeAction",
            {
                "textDocument": {"uri": uri},
                "range": {"start": here, "end": here},
                "context": {"diagnostics": []},
            },
        )
        titles = [one["title"] for one in actions]
        assert titles[:4] == [
            "Tiller: Keep this change",
            "Tiller: Reject this change",
            "Tiller: Keep all in file",
            "Tiller: Reject all in file",
        ]
        assert {one["kind"] for one in actions[:4]} == {"quickfix.tiller"}
        answer = await client.request("workspace/executeCommand", actions[1]["command"])
        assert answer == {"results": ["done"]}
        assert document.text == "mine\n" + edited().replace("LINE 15", "line 15")
        await soon(lambda: lines_of(client, uri) == [2, 29])
        assert await client.request("workspace/executeCommand", {"command": "tiller.accept"}) == {
            "results": ["done"]
        }
        await soon(lambda: lines_of(client, uri) == [])
        assert client.undeclared == []


def hints_of(client: RawClient, uri: str) -> list[Json]:
    told = [
        one["params"]
        for one in client.received
        if one.get("method") == "textDocument/publishDiagnostics" and one["params"]["uri"] == uri
    ]
    return told[-1]["diagnostics"] if told else []


def lines_of(client: RawClient, uri: str) -> list[int]:
    return [one["range"]["start"]["line"] for one in hints_of(client, uri)]


async def test_hints_come_back_with_the_editor_and_go_with_the_document(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    async with serving(ground) as windows:
        async with windows.window(VSCODE) as client:
            await opened(client)
            await run_one(ground, client)
        async with windows.window(VSCODE) as client:
            await opened(client)
            client.open(path.as_uri(), text_of(path))
            await soon(lambda: lines_of(client, path.as_uri()) == [1, 14, 28])
            only = {"diagnostics": [], "only": ["source"]}
            where = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}
            about = {"textDocument": {"uri": path.as_uri()}, "range": where}
            asked = {**about, "context": only}
            assert await client.request("textDocument/codeAction", asked) == []
            asked = {**about, "context": {**only, "only": ["quickfix"]}}
            assert len(await client.request("textDocument/codeAction", asked)) == 4
            client.close_document(path.as_uri())
            await soon(lambda: lines_of(client, path.as_uri()) == [])


async def test_an_undo_in_the_editor_is_a_rejection(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    async with serving(ground) as windows, windows.window(VSCODE) as client:
        client.open(path.as_uri(), TEXT)
        snapshot = await opened(client)
        await run_one(ground, client)
        client.change(path.as_uri(), TEXT)
        await soon(lambda: hints_of(client, path.as_uri()) == [])
        changes = await client.request("agent/changes/list", {})
        assert {one["state"] for one in changes["files"][0]["hunks"]} == {"rejected"}
        assert (await opened(client, snapshot["session"]))["changes"]["unreviewed"] == 0


@pytest.mark.parametrize("profile", [PANEL, VSCODE], ids=lambda one: one.name)
async def test_who_shows_changes_itself_or_wants_none_gets_no_hints(
    ground: Ground, profile: Profile
) -> None:
    path = ground.file("a.txt", TEXT)
    chosen: Json = {"edit": {"review": "none"}} if profile is VSCODE else {}
    async with serving(ground) as windows, windows.window(profile, **chosen) as client:
        client.open(path.as_uri(), TEXT)
        await opened(client)
        await run_one(ground, client)
        assert not any(
            one.get("method") == "textDocument/publishDiagnostics" for one in client.received
        )


async def test_a_client_that_draws_changes_is_shown_those_of_each_run(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    declared = {**PANEL.capabilities, "experimental": {"agent": {"v": 1, "diffView": {}}}}
    async with serving(ground) as windows, windows.window(replace(PANEL, capabilities=declared)) as client:  # fmt: skip
        snapshot = await opened(client)
        changes = await run_one(ground, client)
        await soon(lambda: shown_to(client))
        (told,) = shown_to(client)
        assert told == {"session": snapshot["session"], "changeSet": changes}
        assert told["changeSet"]["files"][0]["uri"] == path.as_uri()


def shown_to(client: RawClient) -> list[Json]:
    return [one["params"] for one in client.received if one.get("method") == "agent/changes/show"]


async def test_what_the_run_itself_changes_is_rejected_at_its_end(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    with serving_slowly(ground) as release:
        async with serving(ground) as windows, windows.window() as client:
            await opened(client)
            ground.provider.script(
                [
                    calls(("read", {"path": "a.txt"})),
                    calls(edit("a.txt")),
                    calls(("bash", {"command": f"while [ ! -e {release} ]; do sleep 0.05; done"})),
                    says("done"),
                ]
            )
            stream = client.subscribe()
            await stream.ready()
            await client.request("agent/prompt", prompt("go"))
            await stream.wait(type="edit.applied")
            (file,) = (await client.request("agent/changes/list", {}))["files"]
            call = client.call("agent/changes/resolve", {"items": [item(file["hunks"][0])]})
            taken = await client.request(
                "agent/changes/resolve", {"items": [item(file["hunks"][1], "accept")]}
            )
            assert taken["results"][0]["status"] == "done"
            assert text_of(path) == edited()
            assert call.message is None
            touch(release)
            await stream.wait(type="run.ended")
            assert (await call.result())["results"][0]["status"] == "done"
            assert text_of(path) == edited().replace("LINE 2\n", "line 2\n")
            files = (await client.request("agent/changes/list", {}))["files"]
            assert [one["state"] for one in files[0]["hunks"]] == [
                "rejected",
                "accepted",
                "pending",
            ]
            assert stream.faults == []


async def test_who_leaves_while_it_waits_is_served_all_the_same(ground: Ground) -> None:
    path = ground.file("a.txt", TEXT)
    with serving_slowly(ground) as release:
        async with serving(ground) as windows, windows.window() as stays:
            await opened(stays)
            stream = stays.subscribe()
            await stream.ready()
            ground.provider.script(
                [
                    calls(("read", {"path": "a.txt"})),
                    calls(edit("a.txt")),
                    calls(("bash", {"command": f"while [ ! -e {release} ]; do sleep 0.05; done"})),
                    says("done"),
                ]
            )
            async with windows.window() as leaves:
                await opened(leaves)
                await leaves.request("agent/prompt", prompt("go"))
                await stream.wait(type="edit.applied")
                (file,) = (await leaves.request("agent/changes/list", {}))["files"]
                asked = {"items": [item(one) for one in file["hunks"]]}
                call = leaves.call("agent/changes/resolve", asked)
                await leaves.request("agent/status", {})
                assert call.message is None
            touch(release)
            await stream.wait(type="edit.rejected")
            await soon(lambda: text_of(path) == TEXT)


@contextmanager
def serving_slowly(ground: Ground) -> Generator[Path]:
    """Give the file for which a command waits, and let it go on whatever happens."""
    release = ground.root / "release"
    try:
        yield release
    finally:
        touch(release)


def touch(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([{"hunk": "x", "action": "explode"}], id="an unknown action"),
        pytest.param([{"action": "accept"}], id="no target"),
        pytest.param([{"file": "http://x/", "action": "accept"}], id="no file"),
        pytest.param([{"hunk": "x", "file": "file:///x", "action": "accept"}], id="two targets"),
    ],
)
async def test_what_makes_no_sense_is_refused(ground: Ground, items: list[Json]) -> None:
    async with serving(ground) as windows, windows.window() as client:
        await opened(client)
        with pytest.raises(Exception, match="-32602"):
            await client.request("agent/changes/resolve", {"items": items})
