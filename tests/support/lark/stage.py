"""The adapter in front of the fake platform, both on one clock that stands still until a test moves it."""

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from agent_core.channels.messaging.port import (
    ClickReply,
    ConnectionState,
    InboundClick,
    InboundMessage,
    InboundRecall,
    Target,
)
from tests.support.harness.clock import HeldClock
from tests.support.lark.platform import LarkPlatform, open_platform
from tests.support.lark.routes import SECRET
from tests.support.lark.world import APP, CardEntity, Sent
from tiller_server.channels.lark.api.account import LarkAccount
from tiller_server.channels.lark.channel import LarkChannel, open_lark

GROUP = Target(chat="oc_group")


async def until(condition: Callable[[], object], *, within_s: float = 10) -> None:
    """Wait until a condition holds that sockets bring about."""
    with anyio.fail_after(within_s):
        while not condition():  # noqa: ASYNC110 - sockets of another library bring it about
            await anyio.sleep(0.001)


@dataclass(kw_only=True)
class RecordingSink:
    """Stores what comes."""

    events: list[InboundMessage | InboundRecall] = field(default_factory=list)
    clicks: list[InboundClick] = field(default_factory=list)
    states: list[tuple[ConnectionState, str]] = field(default_factory=list)
    reply: ClickReply = field(default_factory=lambda: ClickReply(text="Allowed", kind="success"))
    failures: int = 0
    """How many of the next events cannot be stored."""
    hangs: bool = False

    async def receive(self, event: InboundMessage | InboundRecall) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no space left on device")
        if self.hangs:
            await anyio.sleep_forever()
        self.events.append(event)

    async def click(self, event: InboundClick) -> ClickReply:
        self.clicks.append(event)
        if self.hangs:
            await anyio.sleep_forever()
        return self.reply

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        self.states.append((state, reason))

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, InboundMessage)]

    def is_connected(self) -> bool:
        return bool(self.states) and self.states[-1][0] == "connected"


@dataclass(kw_only=True)
class Stage:
    """A platform and a channel."""

    clock: HeldClock
    platform: LarkPlatform
    channel: LarkChannel
    sink: RecordingSink

    async def pass_time(self, seconds: float, *, sleeps: float) -> None:
        """Move time in steps of a timer; each waits until the timer of that length sleeps again."""
        for _ in range(round(seconds / sleeps)):
            before = self.clock.slept.count(sleeps)
            await until(lambda: sleeps in self.clock.slept)
            self.clock.advance(sleeps)
            await until(lambda n=before: self.clock.slept.count(sleeps) > n)

    def last(self) -> Sent:
        return list(self.platform.world.messages.values())[-1]

    def card(self, message: str) -> CardEntity:
        card = self.platform.world.messages[message].card
        assert card is not None
        return self.platform.world.cards[card]


def account_of(platform: LarkPlatform) -> LarkAccount:
    """Return the app that the platform accepts."""
    return LarkAccount(app_id=APP, app_secret=SECRET, domain=platform.url)


@asynccontextmanager
async def open_stage(*, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Stage]:
    """Open a channel that sends only."""
    clock = HeldClock()
    async with (
        open_platform(clock, tls=tls) as platform,
        open_lark(account_of(platform), clock) as channel,
    ):
        yield Stage(clock=clock, platform=platform, channel=channel, sink=RecordingSink())


@asynccontextmanager
async def running(stage: Stage) -> AsyncGenerator[None]:
    """Run the receiving side; connected when the block begins, unless the platform refuses."""
    async with anyio.create_task_group() as group:
        group.start_soon(stage.channel.run, stage.sink)
        try:
            yield
        finally:
            group.cancel_scope.cancel()


@asynccontextmanager
async def connected_stage() -> AsyncGenerator[Stage]:
    """Open a channel that is connected, with its first pong."""
    async with open_stage() as stage, running(stage):
        await until(stage.sink.is_connected)
        await until(lambda: "pong" in stage.channel.connection.counts)
        yield stage
