"""Slack as a chat platform."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

import anyio
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from agent_core.channels.messaging.port import (
    ApprovalPrompt,
    Capabilities,
    ChatAttachment,
    ClickReply,
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
    InboundClick,
    InboundMessage,
    InboundSink,
    Reaction,
    RunningAnswer,
    SentMessage,
    Settlement,
    Target,
)
from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.channels.slack.account import SlackAccount
from tiller_server.channels.slack.answer import (
    PLACEHOLDER,
    SlackAnswer,
    marked,
    post_markdown,
    resumed,
)
from tiller_server.channels.slack.api import SlackApi
from tiller_server.channels.slack.blocks import approval_blocks, settled_blocks, summary
from tiller_server.channels.slack.connection import PING_S, SlackSocket
from tiller_server.channels.slack.messages import (
    channel_and_ts,
    click_of,
    command_of,
    inbound_of,
    message_id,
    time_ms,
)

PAGE: Final = 200
TEXT_BYTES: Final = 11_000
"""Of a message; `markdown_text` may have 12,000 characters."""
MOST_PAGES: Final = 20
REACTIONS: Final[Mapping[Reaction, str]] = {
    "started": "eyes",
    "completed": "white_check_mark",
    "aborted": "octagonal_sign",
    "failed": "x",
}
CAPABILITIES: Final = Capabilities(
    text_bytes=TEXT_BYTES,
    upload_bytes=100 * 1024 * 1024,
    key_window_s=0,
    chat_rate=1.0,  # https://docs.slack.dev/apis/web-api/rate-limits
    app_rate=20.0,
    stream_interval_s=1.5,  # chat.update: tier 3, 50 calls in a minute
    has_threads=True,
    history=True,
    command_mark="!",  # Slack keeps texts that begin with a slash for its own commands
)
_log = logging.getLogger(__name__)


class SlackChannel:
    """An app of Slack."""

    def __init__(self, account: SlackAccount, *, clock: Clock, ping_s: float = PING_S) -> None:
        """Create it; `run` connects.

        Args:
            account: The app and its tokens.
            clock: Time.
            ping_s: Time between two pings of the connection.
        """
        self._account = account
        self._api = SlackApi(account.bot_token, base_url=account.base_url)
        self._clock = clock
        self._ping_s = ping_s
        self._user = ""
        self._team = ""

    @property
    def name(self) -> str:
        """Name of the platform."""
        return "slack"

    @property
    def account(self) -> str:
        """Id of the bot's user in its workspace; empty until `identify` or `run`."""
        return f"{self._team}.{self._user}" if self._user else ""

    @property
    def capabilities(self) -> Capabilities:
        """Limits of Slack."""
        return CAPABILITIES

    async def identify(self) -> str:
        """Ask Slack who the bot is; return its name and workspace for people.

        Raises:
            DeliveryError: The token is refused, or Slack cannot be used.
        """
        answer = await self._api.call("auth.test")
        self._user, self._team = as_text(answer.get("user_id")), as_text(answer.get("team_id"))
        return f"{as_text(answer.get('user'))} in {as_text(answer.get('team'))}"

    # ------------------------------------------------------------------ receiving

    async def run(self, sink: InboundSink) -> None:
        """Keep the connection; returns when cancelled."""
        sink.connection_changed("connecting")
        while not self._user:
            try:
                _ = await self.identify()
            except DeliveryError as error:
                sink.connection_changed("degraded", str(error))
                await anyio.sleep(self._ping_s)
        socket = SlackSocket(
            self._account.app_token,
            web=self._api.client,
            on_state=sink.connection_changed,
            ping_s=self._ping_s,
        )

        async def received(_: object, request: SocketModeRequest) -> None:
            await self._receive(sink, socket, request)

        socket.socket_mode_request_listeners.append(received)
        try:
            await socket.connect_to_new_endpoint(force=True)
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await socket.close()
            sink.connection_changed("stopped")

    async def _receive(
        self, sink: InboundSink, socket: SlackSocket, request: SocketModeRequest
    ) -> None:
        body = as_object(cast("JsonValue", request.payload))
        click: InboundClick | None = None
        match request.type:
            case "events_api":
                event = inbound_of(as_object(body.get("event")), bot=self._user)
                if event is not None:
                    await sink.receive(event)
            case "slash_commands":
                await sink.receive(command_of(body, at_ms=self._clock.now_ms()))
            case "interactive":
                click = click_of(body)
            case _:
                _log.info("An envelope of the unknown type %r was acknowledged.", request.type)
        # After it is stored: Slack sends again what is not acknowledged within 3 s.
        reply = None if click is None else await sink.click(click)
        await socket.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        if click is not None and reply is not None:
            with suppress(DeliveryError):
                await self._show_reply(click, reply)

    async def _show_reply(self, click: InboundClick, reply: ClickReply) -> None:
        if reply.prompt is not None and reply.settlement is not None:
            await self.settle(click.target, click.message, reply.prompt, reply.settlement)
        if reply.kind in {"warning", "error"} or reply.settlement is None:
            _ = await self._api.call(
                "chat.postEphemeral",
                channel=click.target.chat,
                user=click.sender.id,
                thread_ts=click.target.thread,
                text=reply.text,
            )

    async def fetch(self, attachment: ChatAttachment, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the bytes of a file of a message."""
        answer = await self._api.get("files.info", file=attachment.ref)
        url = as_text(as_object(answer.get("file")).get("url_private_download"))
        if not url:
            message = f"Slack has no content of the file {attachment.name!r}."
            raise DeliveryImpossible(message)
        async for part in self._api.download(url, limit_bytes=limit_bytes):
            yield part

    async def history(self, target: Target, *, since_ms: int) -> Sequence[InboundMessage]:
        """Return the messages of a channel or thread since a time, oldest first."""
        found = [
            event
            async for message in self._messages(target, since_ms=since_ms)
            if (event := inbound_of({**message, "channel": target.chat}, bot=self._user))
            is not None
        ]
        messages = [event for event in found if isinstance(event, InboundMessage)]
        return sorted(messages, key=lambda message: message.at_ms)

    async def find_sent(self, target: Target, *, key: str, since_ms: int) -> str | None:
        """Return the id of the message whose metadata holds a key."""
        async for message in self._messages(target, since_ms=since_ms):
            payload = as_object(as_object(message.get("metadata")).get("event_payload"))
            if payload.get("key") == key:
                return message_id(target.chat, as_text(message.get("ts")))
        return None

    async def _messages(self, target: Target, *, since_ms: int) -> AsyncGenerator[JsonObject]:
        method = "conversations.history" if target.thread is None else "conversations.replies"
        place: dict[str, str | int | bool] = {
            "channel": target.chat,
            "oldest": f"{max(0, since_ms) / 1000:.6f}",
            "inclusive": True,
            "include_all_metadata": True,
            "limit": PAGE,
        }
        if target.thread is not None:
            place["ts"] = target.thread
        for _ in range(MOST_PAGES):
            answer = await self._api.get(method, **place)
            listed = answer.get("messages")
            for message in listed if isinstance(listed, list | tuple) else ():
                # A thread's first message comes with every page, however old it is.
                if is_object(message) and time_ms(as_text(message.get("ts"))) >= since_ms:
                    yield message
            place["cursor"] = as_text(as_object(answer.get("response_metadata")).get("next_cursor"))
            if not place["cursor"]:
                return

    # ------------------------------------------------------------------ sending

    async def post(
        self,
        target: Target,
        text: str,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
    ) -> SentMessage:
        """Send a message."""
        thread = _thread(target, reply_to, in_thread=in_thread)
        return await post_markdown(self._api, target, text, key=key, thread=thread)

    async def post_file(
        self, target: Target, name: str, content: bytes, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        """Send a file; a message of its own holds the key, since an upload has no place for it."""
        await self._api.upload(name, content, channel=target.chat, thread=target.thread)
        return await self.post(target, f"`{name}`", key=key, reply_to=reply_to)

    async def open_answer(
        self,
        target: Target,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
        resume_token: str | None = None,
    ) -> RunningAnswer:
        """Open an answer, or go on with one that another process had opened."""
        if resume_token is not None:
            return resumed(self._api, resume_token)
        sent = await self.post(target, PLACEHOLDER, key=key, reply_to=reply_to, in_thread=in_thread)
        return SlackAnswer(self._api, sent)

    async def ask(
        self, target: Target, prompt: ApprovalPrompt, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        """Send an approval with its buttons."""
        thread = _thread(target, reply_to, in_thread=False)
        sent = await self._api.call(
            "chat.postMessage",
            channel=target.chat,
            thread_ts=thread,
            text=summary(prompt),
            blocks=approval_blocks(prompt),
            metadata=marked(key),
        )
        return SentMessage(message=message_id(target.chat, as_text(sent.get("ts"))), thread=thread)

    async def settle(
        self, target: Target, message: str, prompt: ApprovalPrompt, settlement: Settlement
    ) -> None:
        """Redraw an approval as answered."""
        _ = target  # ids of messages hold their channel
        channel, ts = channel_and_ts(message)
        _ = await self._api.call(
            "chat.update",
            channel=channel,
            ts=ts,
            text=summary(prompt),
            blocks=settled_blocks(prompt, settlement),
        )

    async def react(self, message: str, reaction: Reaction) -> None:
        """Set the reaction to a message; the one of the beginning is removed at the end."""
        channel, ts = channel_and_ts(message)
        place: JsonObject = {"channel": channel, "timestamp": ts}
        if reaction != "started":
            with suppress(DeliveryImpossible):  # it was not set
                _ = await self._api.call("reactions.remove", **place, name=REACTIONS["started"])
        try:
            _ = await self._api.call("reactions.add", **place, name=REACTIONS[reaction])
        except DeliveryImpossible as error:
            if "already_reacted" not in str(error):
                raise


def _thread(target: Target, reply_to: str | None, *, in_thread: bool) -> str | None:
    if target.thread is not None or not in_thread or reply_to is None:
        return target.thread
    return channel_and_ts(reply_to)[1]


@asynccontextmanager
async def open_slack(account: SlackAccount, clock: Clock) -> AsyncGenerator[SlackChannel]:
    """Open the channel of an app, as soon as Slack can be used.

    Raises:
        DeliveryImpossible: Slack refuses the token of the bot.
    """
    channel = SlackChannel(account, clock=clock)
    while True:
        try:
            _ = await channel.identify()
            break
        except (DeliveryDelayed, DeliveryUncertain) as error:
            _log.warning("%s Tried again in %g s.", error, PING_S)
            await clock.sleep(PING_S)
    yield channel


async def probe_socket(account: SlackAccount) -> str:
    """Return why Slack gives the app no connection of Socket Mode; empty: it does."""
    api = SlackApi(account.app_token, base_url=account.base_url)
    try:
        _ = await api.call("apps.connections.open")
    except DeliveryError as error:
        return str(error)
    return ""
