"""Code actions, lenses and the diff document of editors that know plain LSP and nothing of ours."""

import asyncio
from typing import Any

import pytest

from tests.support.clients.office import soon
from tests.support.clients.plain_windows import actions, command, ends, press, titled, write
from tests.support.clients.server import Ground, calls, says
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import EGLOT, HELIX, NEOVIM_0_11, PANEL, VSCODE, Profile

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
TEXT = "def one():\n    pass\n\n\ndef two():\n    return 2  # tiller: return 3 instead\n"
PLAIN = [NEOVIM_0_11, HELIX, EGLOT]


def problem(line0: int, message: str, **more: Any) -> Json:
    at = {"line": line0, "character": 0}
    return {"range": {"start": at, "end": at}, "message": message, **more}


def titles(found: list[Json]) -> list[str]:
    return [one["title"].removeprefix("Tiller: ") for one in found]


def words(ground: Ground) -> str:
    """Give what the user said last, as the model was asked."""
    said = [
        one for one in ground.provider.requests[-1]["body"]["messages"] if one["role"] == "user"
    ]
    return str(said[-1]["content"])


@pytest.mark.parametrize("profile", PLAIN, ids=lambda one: one.name)
async def test_problems_are_fixed_from_where_they_are_shown(
    ground: Ground, profile: Profile
) -> None:
    path = ground.file("src/a.py", TEXT)
    fixed = TEXT.replace("    pass", "    return 1")
    ground.provider.script(
        [calls(("read", {"path": "src/a.py"})), write("src/a.py", fixed), says("done")]
    )
    shown = [
        problem(1, "one returns nothing", source="checker", code="E7"),
        problem(1, "Changed by the agent.", source="tiller"),
    ]
    async with serving(ground) as windows, windows.window(profile) as client:
        document = client.open(path.as_uri(), TEXT)
        found = await actions(client, path.as_uri(), 1, diagnostics=shown)
        action = titled(found, "Fix diagnostics here")
        assert action["kind"] == "quickfix.tiller"
        assert action["diagnostics"] == shown[:1]
        await press(client, found, "Fix diagnostics here")
        await soon(lambda: document.text == fixed)
        await soon(lambda: ends(client))
        (first, *_) = ground.provider.requests
        said = str(first["body"]["messages"][-1]["content"])
        assert "Fix this problem in `src/a.py`" in said
        assert "- line 2: one returns nothing (checker E7)" in said
        assert "Changed by the agent" not in said
        assert client.undeclared == []


async def test_what_is_offered_depends_on_the_place(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    usual = ["Implement this", "Explain this", "Review this file", "Open the chat file"]
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), TEXT)
        assert titles(await actions(client, path.as_uri(), 0)) == usual
        assert titles(await actions(client, path.as_uri(), 5)) == [
            "Do what this comment asks",
            *usual,
        ]
        selected = titles(await actions(client, path.as_uri(), 0, last0=3))
        assert selected[:2] == ["Implement the selection", "Explain the selection"]
        with_problem = await actions(client, path.as_uri(), 0, diagnostics=[problem(0, "no")])
        assert titles(with_problem)[0] == "Fix diagnostics here"
        assert titles(await actions(client, path.as_uri(), 5, only=["quickfix"])) == [
            "Do what this comment asks"
        ]
        assert titles(await actions(client, path.as_uri(), 5, only=["refactor"])) == usual
        assert titles(await actions(client, path.as_uri(), 5, only=["refactor.tiller"])) == usual
        assert await actions(client, path.as_uri(), 5, only=["source.organizeImports"]) == []
        assert await actions(client, "untitled:Untitled-1", 0) == []
        # Nothing of this opened a session: an editor asks at every step.
        assert await windows.sessions() == {}


async def test_odd_questions_for_actions_are_answered(ground: Ground) -> None:
    uri = ground.file("a.py", TEXT).as_uri()
    odd: list[Json] = [
        {},
        {"textDocument": {"uri": 3}},
        {"textDocument": {"uri": uri}},
        {"textDocument": {"uri": uri}, "range": {"start": 1}},
        {"textDocument": {"uri": uri}, "range": {"start": {"line": -1}, "end": {"line": 0}}},
        {"textDocument": None, "range": None, "context": 7},
    ]
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(uri, TEXT)
        for params in odd:
            assert await client.request("textDocument/codeAction", params) == []
            assert await client.request("textDocument/codeLens", params) == []
        far = await actions(client, uri, 2**31 - 2, last0=2**31 - 1, diagnostics=[3, {}, None])
        assert titles(far)[0] == "Implement the selection"


async def test_a_comment_is_done_in_the_lines_it_stands(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    done = TEXT.replace("return 2  # tiller: return 3 instead", "return 3")
    ground.provider.script([calls(("read", {"path": "a.py"})), write("a.py", done), says("done")])
    async with serving(ground) as windows, windows.window(NEOVIM_0_11) as client:
        document = client.open(path.as_uri(), TEXT)
        found = await actions(client, path.as_uri(), 5)
        await press(client, found, "Do what this comment asks")
        await soon(lambda: document.text == done)
        said = str(ground.provider.requests[0]["body"]["messages"][-1]["content"])
        assert "A comment in line 6 of `a.py` asks you: return 3 instead" in said


async def test_a_comment_hides_nothing_from_its_reader(ground: Ground) -> None:
    text = "# tiller: be\u202e kind\U000e0041\n"
    path = ground.file("a.py", text)
    ground.provider.script([says("done")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), text)
        await press(client, await actions(client, path.as_uri(), 0), "Do what this comment asks")
        await soon(lambda: ends(client))
        assert "\u202e" not in words(ground)
        assert "\U000e0041" not in words(ground)


async def test_an_explanation_is_in_the_chat_file(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    ground.provider.script([says("It does nothing at all.")])
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), TEXT)
        found = await actions(client, path.as_uri(), 0, last0=1)
        await press(client, found, "Explain the selection")
        chat = ground.root / ".tiller/chat.md"
        await soon(lambda: chat.exists() and "It does nothing at all." in chat.read_text("utf-8"))
        assert "Explain lines 1 to 2 of `a.py`" in chat.read_text("utf-8")


async def test_while_something_runs_it_can_be_stopped_from_anywhere(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    ground.provider.script([calls(("bash", {"command": "sleep 30"})), says("done")])
    async with serving(ground) as windows, windows.window(EGLOT) as client:
        client.open(path.as_uri(), TEXT)
        await command(client, "send", "go")
        found = await actions(client, path.as_uri(), 0)
        assert (await press(client, found, "Stop"))["status"] == "cancelled"
        assert "Stop" not in titles(await actions(client, path.as_uri(), 0))


async def test_the_chat_file_has_the_rest(ground: Ground) -> None:
    ground.provider.script([write("b.txt", "new\n"), says("done")])
    async with serving(ground) as windows, windows.window(EGLOT) as client:
        chat = (await command(client, "chat"))["uri"]
        found = titles(await actions(client, chat, 0))
        assert "Send" in found
        assert {"Choose a model", "Sign in", "Begin a new session", "Show the status"} <= {*found}
        assert not {"Keep all changes", "Stop", "Explain this"} & {*found}
        await command(client, "send", "go")
        await soon(lambda: ends(client))
        found_now = await actions(client, chat, 0)
        await press(client, found_now, "Keep all changes")
        assert "Keep all changes" not in titles(await actions(client, chat, 0))


@pytest.mark.parametrize(
    ("profile", "plain", "has"),
    [(PANEL, {}, False), (PANEL, {"actions": True}, True), (HELIX, {"actions": False}, False)],
    ids=["panel", "panel that wants them", "helix that does not"],
)
async def test_who_has_better_ways_is_left_alone(
    ground: Ground, profile: Profile, plain: Json, has: bool
) -> None:
    path = ground.file("a.py", TEXT)
    async with serving(ground) as windows, windows.window(profile, plain=plain) as client:
        client.open(path.as_uri(), TEXT)
        assert bool(await actions(client, path.as_uri(), 0)) is has


async def test_without_a_model_it_is_said_where_to_get_one(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    (ground.dirs.config / "models.json").unlink()
    (ground.dirs.config / "settings.json").write_text('{"defaultProjectTrust": "always"}', "utf-8")
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), TEXT)
        await opened(client)
        assert {"Choose a model", "Sign in"} <= {*titles(await actions(client, path.as_uri(), 0))}


# ---------------------------------------------------------------------- lenses


def lensed(profile: Profile) -> bool:
    return "codeLens" in profile.capabilities.get("textDocument", {})


@pytest.mark.parametrize("profile", [NEOVIM_0_11, HELIX, VSCODE, EGLOT], ids=lambda one: one.name)
async def test_lenses_are_offered_to_who_shows_them(ground: Ground, profile: Profile) -> None:
    async with serving(ground) as windows, windows.window(profile) as client:
        offered = client.result["capabilities"]
        assert ("codeLensProvider" in offered) is lensed(profile)
        assert set(offered["codeActionProvider"]["codeActionKinds"]) == {
            "quickfix.tiller", "refactor.tiller",
        }  # fmt: skip


async def lenses(client: RawClient, uri: str) -> list[Json]:
    return await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})


async def test_lenses_keep_reject_and_stop(ground: Ground) -> None:
    path = ground.file("a.py", TEXT)
    changed = TEXT.replace("    pass", "    return 1")
    gate = ground.root / "go"
    ground.provider.script(
        [
            calls(("read", {"path": "a.py"})),
            write("a.py", changed),
            calls(("bash", {"command": f"while [ ! -e {gate} ]; do sleep 0.05; done"})),
            says("done"),
        ]
    )
    async with serving(ground) as windows, windows.window(VSCODE) as client:
        refreshed: list[Json] = []
        client.handlers["workspace/codeLens/refresh"] = lambda params, reply: (
            refreshed.append(params), reply(None),
        )[0]  # fmt: skip
        document = client.open(path.as_uri(), TEXT)
        assert await lenses(client, path.as_uri()) == []
        await command(client, "send", "go")
        await soon(lambda: document.text == changed)
        await soon(lambda: refreshed)
        found = await lenses(client, path.as_uri())
        assert titled(found, "Stop")["range"]["start"]["line"] == 0
        gate.touch()
        await soon(lambda: ends(client))
        await hinted(client, path.as_uri())
        found = await lenses(client, path.as_uri())
        assert titled(found, "Keep all in file")["range"]["start"]["line"] == 1
        await press(client, found, "Reject all in file")
        await soon(lambda: document.text == TEXT)
        assert client.undeclared == []


async def hinted(client: RawClient, uri: str) -> None:
    """Wait until the hints of a document are shown."""
    await soon(
        lambda: any(
            one.get("method") == "textDocument/publishDiagnostics"
            and one["params"]["uri"] == uri
            and one["params"]["diagnostics"]
            for one in client.received
        )
    )


async def test_the_chat_file_has_lenses(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(VSCODE) as client:
        chat = (await command(client, "chat"))["uri"]
        assert titled(await lenses(client, chat), "Send")["command"]["command"] == "tiller.send"


async def test_thousands_of_questions_for_actions_cost_little(ground: Ground) -> None:
    big = "x = 1  # nothing\n" * 60_000
    path = ground.file("big.py", big)
    async with serving(ground) as windows, windows.window(HELIX) as client:
        client.open(path.as_uri(), big)
        await actions(client, path.as_uri(), 0)
        async with asyncio.timeout(10):
            for line0 in range(0, 60_000, 300):
                await actions(client, path.as_uri(), line0)
