"""Whose configuration counts in a session that windows come to and leave."""

from typing import Any

import pytest

from tests.support.clients.server import Ground
from tests.support.clients.windows import Windows, serving
from tests.support.lsp.lsp_profiles import PANEL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

PLAN = {"mode": "plan"}


async def mode(windows: Windows, **agent: Any) -> str:
    """Give the mode that a window finds."""
    async with windows.window(PANEL, **agent) as client:
        opened = await client.request("agent/session/open", {"session": "latest"})
        return opened["config"]["mode"]


@pytest.fixture(autouse=True)
def configured(ground: Ground) -> None:
    ground.configure(permission={"mode": "auto"})


async def test_a_window_that_is_not_restricted_any_more_has_its_mode_again(ground: Ground) -> None:
    async with (
        serving(ground) as windows,
        windows.window(PANEL, clientId="w", permission=PLAN) as it,
    ):
        assert (await it.request("agent/session/open", {}))["config"]["mode"] == "plan"
        # The former connection of the window is not gone yet.
        assert await mode(windows, clientId="w") == "auto"
        assert await mode(windows, clientId="w", permission=PLAN) == "plan"


async def test_another_window_changes_nothing_for_those_that_are_there(ground: Ground) -> None:
    async with serving(ground) as windows:
        async with windows.window(PANEL, clientId="w", permission=PLAN) as it:
            await it.request("agent/session/open", {})
            assert await mode(windows, clientId="other") == "plan"
        assert await mode(windows, clientId="other") == "auto"
