"""What extensions show, in each kind of client, and what they are told of what nobody shows."""

from typing import Any

import pytest

from tests.support.clients.chatting import chatting
from tests.support.clients.office import opened, soon
from tests.support.clients.plain_windows import messages
from tests.support.clients.server import Ground, prompt
from tests.support.clients.windows import Windows, serving
from tests.support.lsp.lsp_client import ClientError, RawClient
from tests.support.lsp.lsp_profiles import HELIX, NEOVIM_0_11, PANEL
from tests.support.programs.terminal import tiller
from tiller_server.lsp.wire.extensions import ExtensionListResult, ExtensionRenderResult
from tiller_server.lsp.wire.parsing import parse

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
SHOWS = """
from pathlib import Path
from agent_core.extensions import ListView, Row, TableView

def extension(api):
    api.flag("loud", kind="string", default="no")

    @api.command()
    def show(words, ctx):
        ctx.ui.status("s", "busy")
        ctx.ui.status("s", "busy")
        ctx.ui.widget("w", ListView(title="Plan", rows=[Row(text="a", done=True), Row(text="b")]))
        ctx.ui.widget("t", TableView(head=["x", "y"], rows=[["1", "2"]]))
        ctx.ui.title("mine")
        ctx.ui.set_editor_text("try this")
        ctx.ui.notify("look here", "warning")
        part = Path(ctx.root, "unshown.part")
        part.write_text(" ".join(sorted(ctx.ui.unshown)))
        part.rename(part.with_name("unshown"))  # whole as soon as it is there

    @api.command()
    async def tell(words, ctx):
        await api.send_message("plain words", custom_type="card", details={"n": 1})
        await api.send_message("other words", custom_type="broken")

    @api.message_renderer("card")
    def card(message):
        return ListView(title="Card", rows=[Row(text=str(message.details["n"]))])

    @api.message_renderer("broken")
    def broken(message):
        return 7

    @api.shortcut("Ctrl+K", description="Boom")
    def key(ctx):
        raise RuntimeError("boom")
"""


@pytest.fixture(autouse=True)
def shows(ground: Ground) -> None:
    ground.configure(sandbox="off")
    path = ground.dirs.config / "extensions" / "shows.py"
    path.parent.mkdir(parents=True)
    path.write_text(SHOWS)


async def command(client: RawClient, words: str) -> None:
    taken = await client.request("agent/prompt", prompt(words))
    assert taken["accepted"] == "handled"


async def unshown(ground: Ground) -> str:
    path = ground.root / "unshown"
    await soon(path.exists)
    return path.read_text()


async def say(windows: Windows, words: str) -> None:
    """Say something in the only session, as some other window does."""
    (hosted,) = (await windows.sessions()).values()
    receipt = await hosted.session.prompt(words)
    assert receipt.accepted == "handled"


async def test_a_client_that_follows_the_events_gets_all_of_it(ground: Ground) -> None:
    async with opened(ground) as office:
        client = await office.seat(PANEL)
        stream = client.subscribe()
        await stream.ready()
        await command(client, "/show")
        await stream.wait(type="ui.notify", view={"text": "look here", "level": "warning"})
        assert stream.of("ui.title")[0]["extension"] == "shows"
        assert stream.of("ui.editorText")[0]["view"] == {"text": "try this", "mode": "replace"}
        assert await unshown(ground) == ""
        assert messages(client) == []


async def test_a_plain_client_is_shown_a_message_and_the_extension_told_of_the_rest(
    ground: Ground,
) -> None:
    async with serving(ground) as windows, windows.window(HELIX) as client:
        await client.request("agent/session/open", {})
        await say(windows, "/show")
        assert await unshown(ground) == "editorText status title widget"
        await soon(lambda: messages(client))
        assert messages(client) == ["shows: look here"]


async def test_in_the_chat_file_views_stand_as_words(ground: Ground) -> None:
    async with serving(ground) as windows, chatting(windows, NEOVIM_0_11) as chat:
        await chat.open()
        await say(windows, "/show")
        await chat.has("shows: look here")
        assert await unshown(ground) == "title"
        assert chat.text.count("shows · busy") == 1
        assert "Plan\n- [x] a\n- b" in chat.text
        assert "| x   | y   |\n| --- | --- |\n| 1   | 2   |" in chat.text
        assert "shows suggests to say: try this" in chat.text
        assert messages(chat.client) == []


async def test_who_looks_later_sees_what_stands_and_code_that_is_gone_shows_nothing(
    ground: Ground,
) -> None:
    async with opened(ground) as office:
        client = await office.seat(PANEL)
        await command(client, "/show")
        await unshown(ground)
        late = client.subscribe()
        await late.ready()
        stands = [(one["type"], one["view"].get("key")) for one in late.snapshot["views"]]
        assert stands == [
            ("ui.status", "s"),
            ("ui.widget", "w"),
            ("ui.widget", "t"),
            ("ui.title", None),
        ]
        (ground.dirs.config / "extensions" / "shows.py").unlink()
        await client.request("agent/resources/reload", {})
        gone = await late.wait(type="ui.title", extension="shows")
        assert gone["view"] == {"text": None}
        later = client.subscribe()
        await later.ready()
        assert "views" not in later.snapshot


async def test_messages_are_shown_as_their_extension_says(ground: Ground) -> None:
    async with opened(ground) as office:
        client = await office.seat(PANEL)
        stream = client.subscribe()
        await stream.ready()
        await command(client, "/tell")
        session = await office.session()
        await soon(lambda: len(stream.of("message.ended")) == 2)
        card, broken = [one["entry"] for one in stream.of("message.ended")]
        listed = await client.request("agent/extension/list", {})
        _ = parse(ExtensionListResult, listed, method="agent/extension/list")
        assert [one["customType"] for one in listed["renderers"]] == ["card", "broken"]
        assert listed["flags"] == [
            {"name": "loud", "extension": "shows", "kind": "string", "value": "no"}
        ]
        shown = await client.request("agent/extension/render", {"entry": card})
        _ = parse(ExtensionRenderResult, shown, method="agent/extension/render")
        assert shown == {"view": {"kind": "list", "title": "Card", "rows": [{"text": "1"}]}}
        assert await client.request("agent/extension/render", {"entry": broken}) == {"view": None}
        error = await stream.wait(type="extension.error", event="message_renderer")
        assert "must give a view or words" in error["error"]
        with pytest.raises(ClientError, match="no message of an extension"):
            await client.request("agent/extension/render", {"entry": session.id})


async def test_a_key_that_fails_is_told_and_one_that_nobody_offers_is_refused(
    ground: Ground,
) -> None:
    async with opened(ground) as office:
        client = await office.seat(PANEL)
        stream = client.subscribe()
        await stream.ready()
        assert await client.request("agent/extension/press", {"key": "ctrl+k"}) == {}
        error = await stream.wait(type="extension.error")
        assert error["extension"] == "ctrl+k"
        assert error["error"].startswith("RuntimeError: boom (")
        with pytest.raises(ClientError, match="no extension offers the key 'f1'; offered are ctrl"):
            await client.request("agent/extension/press", {"key": "f1"})


async def test_who_only_watches_presses_no_key(ground: Ground) -> None:
    async with opened(ground) as office:
        client = await office.seat(PANEL, client={"name": "w", "role": "observer"})
        with pytest.raises(ClientError):
            await client.request("agent/extension/press", {"key": "ctrl+k"})


@pytest.mark.parametrize(("shape", "left"), [((), "title"), (("--json",), "")])
def test_a_single_run_says_that_it_names_no_window(
    ground: Ground, shape: tuple[str, ...], left: str
) -> None:
    ground.configure(sandbox="off", defaultProjectTrust="always")
    assert tiller(ground, "run", *shape, "/show").code == 0
    assert (ground.root / "unshown").read_text() == left
