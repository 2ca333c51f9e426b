"""An app of Slack beside a platform on loopback."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from agent_core.channels.messaging.port import (
    ClickReply,
    ConnectionState,
    InboundClick,
    InboundMessage,
    InboundRecall,
)
from agent_core.kernel import SystemClock
from tests.daemon.conftest import ground
from tests.support.slack.platform import APP_TOKEN, BOT_TOKEN, SlackPlatform
from tiller_server.channels.slack.account import SlackAccount
from tiller_server.channels.slack.channel import SlackChannel

__all__ = ["ground"]


class RecordingSink:
    """A receiver that keeps everything."""

    def __init__(self) -> None:
        self.events: list[InboundMessage | InboundRecall] = []
        self.clicks: list[InboundClick] = []
        self.states: list[tuple[ConnectionState, str]] = []
        self.reply = ClickReply(text="Recorded.", kind="success")
        self.fails = 0

    async def receive(self, event: InboundMessage | InboundRecall) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("disk full")
        self.events.append(event)

    async def click(self, event: InboundClick) -> ClickReply:
        self.clicks.append(event)
        return self.reply

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        self.states.append((state, reason))

    @property
    def messages(self) -> list[InboundMessage]:
        return [one for one in self.events if isinstance(one, InboundMessage)]


@pytest.fixture
async def platform() -> AsyncGenerator[SlackPlatform]:
    async with SlackPlatform().serve() as served:
        yield served


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


def account(platform: SlackPlatform, **more: str) -> SlackAccount:
    tokens = {"app_token": APP_TOKEN, "bot_token": BOT_TOKEN, **more}
    return SlackAccount(base_url=platform.workspace.base_url, **tokens)


@pytest.fixture
async def channel(platform: SlackPlatform, sink: RecordingSink) -> AsyncGenerator[SlackChannel]:
    """An app that is connected."""
    made = SlackChannel(account(platform), clock=SystemClock(), ping_s=0.1)
    async with anyio.create_task_group() as group:
        group.start_soon(made.run, sink)
        await platform.until(lambda: platform.connections > 0)
        yield made
        group.cancel_scope.cancel()
