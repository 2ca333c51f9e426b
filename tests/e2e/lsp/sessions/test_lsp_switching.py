"""An extension is asked before a window goes from one session to another, whichever way it goes."""

import pytest

from tests.support.clients.server import Ground
from tests.support.clients.windows import opened, serving
from tests.support.lsp.lsp_connection import ClientError
from tests.support.lsp.lsp_profiles import MINIMAL, PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

STAYS = """
from agent_core.hooks import SessionSwitching, SwitchCancelled

def extension(api):
    @api.on(SessionSwitching)
    def leaving(event, ctx):
        return SwitchCancelled(reason="the build runs")
"""


@pytest.fixture(autouse=True)
def stays(ground: Ground) -> None:
    folder = ground.dirs.config / "extensions"
    folder.mkdir()
    (folder / "stays.py").write_text(STAYS, encoding="utf-8")


async def test_a_new_session_by_command_is_refused_with_the_reason(ground: Ground) -> None:
    async with serving(ground) as windows, windows.window(MINIMAL) as window:
        session = (await opened(window))["session"]
        with pytest.raises(ClientError, match="wants this session to stay: the build runs"):
            await window.request(
                "workspace/executeCommand", {"command": "tiller.new", "arguments": []}
            )
        assert (await opened(window))["session"] == session
        assert list(await windows.sessions()) == [session]


@pytest.mark.parametrize("which", ["new", "latest"])
async def test_another_session_by_request_is_refused_with_the_reason(
    ground: Ground, which: str
) -> None:
    async with serving(ground) as windows, windows.window(PANEL) as window:
        session = (await opened(window))["session"]
        with pytest.raises(ClientError, match="wants this session to stay: the build runs"):
            await opened(window, which)
        assert (await opened(window))["session"] == session
