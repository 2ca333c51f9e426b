"""Views and keys of extensions in `tiller chat`."""

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, calls, says

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DRAWN_TOOL = """
from agent_core.extensions import ListView, Row


def extension(api):
    @api.tool(
        parameters={"type": "object"},
        kind="read",
        label="Directory",
        view_result=lambda result: ListView(title="People", rows=[Row(text="Ada", done=True)]),
    )
    async def find(arguments, ctx):
        "Find people."
        return "text for the model"
"""


def test_a_result_of_an_extension_is_drawn_as_its_view(ground: Ground) -> None:
    path = ground.file("directory.py", DRAWN_TOOL)
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    ground.provider.script([calls(("find", {})), says("Found.")])
    with chat(ground, "--extension", str(path)) as window:
        window.line("who?")
        _ = window.until("People\n  - [x] Ada")
        _ = window.until("Directory")
        _ = window.until("Found.")
        assert leave(window) == 0
    assert b"text for the model" not in window.raw


SHORTCUTS = """
def extension(api):
    @api.shortcut("alt+x", description="Say hello")
    async def hello(ctx):
        ctx.ui.notify("hello from a key")

    @api.shortcut("ctrl+t", description="Tick")
    async def tick(ctx):
        ctx.ui.notify("tick from a key")

    @api.shortcut("ctrl+c", description="Never")
    async def never(ctx):
        ctx.ui.notify("never")
"""


def test_keys_of_an_extension_work_while_a_line_is_typed(ground: Ground) -> None:
    path = ground.file("keys.py", SHORTCUTS)
    with chat(ground, "--extension", str(path)) as window:
        _ = window.until("'ctrl+c' of extension keys is reserved")
        window.type("half a line")
        window.type("\x1bx")
        _ = window.until("hello from a key")
        window.type("\x14")
        _ = window.until("tick from a key")
        _ = window.until("> half a line")
        window.type("\x15")
        window.line("/key")
        _ = window.until("alt+x  Say hello (keys)")
        assert leave(window) == 0
    assert b"never" not in window.raw
