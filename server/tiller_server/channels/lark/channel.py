"""Feishu or Lark as a chat platform, for one app."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

import anyio
from typing_extensions import override

from agent_core.channels.messaging.port import (
    ApprovalPrompt,
    Capabilities,
    ChatAttachment,
    InboundMessage,
    InboundSink,
    MessagingChannel,
    Reaction,
    RunningAnswer,
    SentMessage,
    Settlement,
    Target,
)
from agent_core.kernel import Clock
from tiller_server.channels.lark.api.account import LarkAccount
from tiller_server.channels.lark.api.rest import LarkApi, open_api
from tiller_server.channels.lark.cards.answers import LarkAnswers
from tiller_server.channels.lark.connection.endpoint import (
    ConnectionConfig,
    ConnectionFailed,
    request_endpoint,
)
from tiller_server.channels.lark.connection.long_connection import LongConnection
from tiller_server.channels.lark.history import LarkHistory
from tiller_server.channels.lark.messages import FILE_BYTES, LarkMessages, MessagePlace
from tiller_server.channels.lark.people import People
from tiller_server.channels.lark.receiver import Bot, EventReceiver

CAPABILITIES: Final = Capabilities(
    text_bytes=24 * 1024,
    upload_bytes=FILE_BYTES,
    key_window_s=3_600.0,
    chat_rate=5.0,
    app_rate=16.0,  # 1,000 per minute; 50 per second is the shorter limit
    stream_interval_s=0.5,
    has_threads=True,
    history=True,
)


class LarkChannel(MessagingChannel):
    """The `MessagingChannel` of one app."""

    def __init__(self, api: LarkApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._bot = Bot(api)
        self._messages = LarkMessages(api)
        self._history = LarkHistory(api)
        self._people = People(api, clock)
        self._answers = LarkAnswers(api, self._messages, clock)
        self.connection = LongConnection(api.account, api.client, clock)

    @property
    @override
    def name(self) -> str:
        return "lark"

    @property
    @override
    def account(self) -> str:
        return self._api.account.app_id

    @property
    @override
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    @override
    async def run(self, sink: InboundSink) -> None:
        receiver = EventReceiver(
            sink,
            bot=self._bot,
            messages=self._messages,
            history=self._history,
            people=self._people,
            clock=self._clock,
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._answers.renew_forever)
            await self.connection.run(receiver)

    @override
    async def fetch(self, attachment: ChatAttachment, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        async with aclosing(self._history.fetch(attachment, limit_bytes=limit_bytes)) as chunks:
            async for chunk in chunks:
                yield chunk

    @override
    async def history(self, target: Target, *, since_ms: int) -> Sequence[InboundMessage]:
        bot = await self._bot.load()
        messages = await self._history.messages(target, since_ms=since_ms, bot=bot)
        return tuple([await self._people.named(message) for message in messages])

    @override
    async def find_sent(self, target: Target, *, key: str, since_ms: int) -> str | None:
        return await self._history.find(target, key=key, since_ms=since_ms)

    @override
    async def post(
        self,
        target: Target,
        text: str,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
    ) -> SentMessage:
        delivery = MessagePlace(target=target, key=key, reply_to=reply_to, in_thread=in_thread)
        return await self._messages.post(delivery, text)

    @override
    async def post_file(
        self, target: Target, name: str, content: bytes, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        delivery = MessagePlace(target=target, key=key, reply_to=reply_to)
        return await self._messages.post_file(delivery, name, content)

    @override
    async def open_answer(
        self,
        target: Target,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
        resume_token: str | None = None,
    ) -> RunningAnswer:
        delivery = MessagePlace(target=target, key=key, reply_to=reply_to, in_thread=in_thread)
        return await self._answers.open(delivery, resume_token=resume_token)

    @override
    async def ask(
        self, target: Target, prompt: ApprovalPrompt, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        delivery = MessagePlace(target=target, key=key, reply_to=reply_to)
        return await self._messages.ask(delivery, prompt)

    @override
    async def settle(
        self, target: Target, message: str, prompt: ApprovalPrompt, settlement: Settlement
    ) -> None:
        del target  # the id of a message is enough
        await self._messages.settle(message, prompt, settlement)

    @override
    async def react(self, message: str, reaction: Reaction) -> None:
        await self._messages.react(message, reaction)


@asynccontextmanager
async def open_lark(account: LarkAccount, clock: Clock) -> AsyncGenerator[LarkChannel]:
    """Open the channel of an app; its connections are closed at the end."""
    async with open_api(account, clock) as api:
        yield LarkChannel(api, clock)


async def probe_connection(account: LarkAccount, clock: Clock) -> str:
    """Return why the platform gives the app no long connection; empty: it does."""
    async with open_api(account, clock) as api:
        try:
            _ = await request_endpoint(api.client, account, ConnectionConfig(), clock)
        except ConnectionFailed as error:
            return str(error)
    return ""
