"""A chat platform in memory, with its own clock, its rules and its faults; and the adapter that speaks with it."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

import anyio

from agent_core.channels.messaging.port import (
    ApprovalPrompt,
    Capabilities,
    ChatAttachment,
    ClickReply,
    DeliveryDelayed,
    DeliveryImpossible,
    DeliveryUncertain,
    InboundClick,
    InboundMessage,
    InboundRecall,
    InboundSink,
    Outcome,
    Reaction,
    Sender,
    SentMessage,
    Settlement,
    Target,
)
from agent_core.kernel import Clock

CAPABILITIES = Capabilities(
    text_bytes=4000,
    upload_bytes=1 << 20,
    key_window_s=3600,
    chat_rate=5,
    app_rate=50,
    stream_interval_s=0.5,
    has_threads=True,
    history=True,
)
BOT = Sender(id="bot", name="Tiller", is_bot=True)
FaultKind = Literal["delayed", "uncertain", "applied", "impossible"]


@dataclass(slots=True, kw_only=True)
class Fault:
    """What happens to the next calls of a method: refused for now, lost, applied and lost, refused for good."""

    method: str
    kind: FaultKind
    times: int = 1
    retry_after_s: float | None = None


@dataclass(slots=True, kw_only=True)
class Placed:
    """A message in its place."""

    id: str
    chat: str
    thread: str | None
    sender: Sender
    key: str = ""
    reply_to: str | None = None
    at_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Shown(Placed):
    """A message as people see it."""

    text: str = ""
    kind: Literal["text", "file", "answer", "approval"] = "text"
    file: tuple[str, bytes] | None = None
    prompt: ApprovalPrompt | None = None
    settlement: Settlement | None = None
    outcome: Outcome | None = None
    texts: list[str] = field(default_factory=list)
    """Every text of a running answer, in the order in which it was shown."""
    reactions: list[Reaction] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Call:
    """A call of an adapter."""

    method: str
    chat: str
    at_s: float


class MemoryPlatform:
    """The platform: outlives the processes that are connected to it."""

    def __init__(self, clock: Clock, capabilities: Capabilities = CAPABILITIES) -> None:
        self.clock = clock
        self.capabilities = capabilities
        self.messages: dict[str, Shown] = {}
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.files: dict[str, bytes] = {}
        self._keys: dict[str, tuple[str, int]] = {}
        self._incoming: deque[InboundMessage | InboundRecall] = deque()
        self._arrived = anyio.Event()
        self.inbound: dict[str, InboundMessage] = {}
        self.is_open = anyio.Event()
        """Not set: texts of running answers are under way until it is."""
        self.is_open.set()
        self._sink: InboundSink | None = None

    def write(
        self,
        text: str,
        *,
        chat: str = "dm",
        thread: str | None = None,
        sender: str = "ann",
        is_direct: bool | None = None,
        mentioned: bool = False,
        reply_to: str | None = None,
        attachments: Sequence[ChatAttachment] = (),
        is_lost: bool = False,
        is_bot: bool = False,
    ) -> InboundMessage:
        """Send a message of a person; a lost one is only in the history."""
        direct = chat.startswith("dm") if is_direct is None else is_direct
        message = InboundMessage(
            key=self._next(),
            target=Target(chat=chat, thread=thread),
            chat_kind="direct" if direct else "group",
            sender=Sender(id=sender, name=sender.title(), is_bot=is_bot),
            text=text,
            mentioned=mentioned,
            reply_to=reply_to,
            attachments=tuple(attachments),
            at_ms=self.clock.now_ms(),
        )
        self.messages[message.key] = Shown(
            id=message.key,
            chat=chat,
            thread=thread,
            sender=message.sender,
            text=text,
            at_ms=message.at_ms,
        )
        self.inbound[message.key] = message
        if not is_lost:
            self.push(message)
        return message

    def push(self, event: InboundMessage | InboundRecall) -> None:
        """Deliver an event, perhaps again."""
        self._incoming.append(event)
        self._arrived.set()

    async def click(
        self, shown: Shown, option: str, *, sender: str = "boss", **changes: Any
    ) -> ClickReply:
        """Click a button of an approval and return the answer."""
        assert shown.prompt is not None
        assert self._sink is not None, "nothing is connected"
        given: dict[str, Any] = {
            "key": self._next(),
            "target": Target(chat=shown.chat, thread=shown.thread),
            "message": shown.id,
            "sender": Sender(id=sender, name=sender.title()),
            "request": shown.prompt.request,
            "option": option,
            "digest": shown.prompt.digest,
            "at_ms": self.clock.now_ms(),
            **changes,
        }
        reply = await self._sink.click(InboundClick(**given))
        if reply.settlement is not None:
            shown.settlement = reply.settlement
        return reply

    @property
    def is_connected(self) -> bool:
        """Whether a process receives events."""
        return self._sink is not None

    def ours(self, *, chat: str | None = None, kind: str | None = None) -> list[Shown]:
        """Return the messages of the bot, oldest first."""
        return [
            shown
            for shown in self.messages.values()
            if shown.sender.is_bot
            and shown.sender is BOT
            and (chat is None or shown.chat == chat)
            and (kind is None or shown.kind == kind)
        ]

    def texts(self, chat: str = "dm") -> list[str]:
        """Return the texts of the bot in a chat, oldest first."""
        return [shown.text for shown in self.ours(chat=chat) if shown.kind in {"text", "answer"}]

    def approvals(self) -> list[Shown]:
        """Return the approvals, oldest first."""
        return self.ours(kind="approval")

    # Calls of adapters, each of which may be refused or lost by a fault.

    def call(self, method: str, chat: str, apply: Callable[[], Any]) -> Any:
        """Apply a call unless a fault stops it."""
        self.calls.append(Call(method=method, chat=chat, at_s=self.clock.monotonic_s()))
        fault = next((one for one in self.faults if one.method in {method, "*"}), None)
        if fault is None:
            return apply()
        fault.times -= 1
        if fault.times <= 0:
            self.faults.remove(fault)
        match fault.kind:
            case "delayed":
                message = "the platform is busy"
                raise DeliveryDelayed(message, retry_after_s=fault.retry_after_s)
            case "uncertain":
                message = "no answer in time"
                raise DeliveryUncertain(message)
            case "applied":
                apply()
                message = "the answer was lost"
                raise DeliveryUncertain(message)
            case "impossible":
                message = "the platform refuses it"
                raise DeliveryImpossible(message)

    def add(
        self, target: Target, key: str, *, in_thread: bool, reply_to: str | None, **more: Any
    ) -> Shown:
        """Add a message of the bot; a repeated key that is still remembered adds none."""
        assert 0 < len(key) <= 50
        now_ms = self.clock.now_ms()
        message, at_ms = self._keys.get(key, ("", 0))
        if message and now_ms - at_ms < self.capabilities.key_window_s * 1000:
            return self.messages[message]
        thread = target.thread
        if thread is None and in_thread and reply_to is not None:
            thread = f"thread-{reply_to}"
        elif thread is None and reply_to is not None and reply_to in self.messages:
            thread = self.messages[reply_to].thread
        shown = Shown(
            id=self._next(),
            chat=target.chat,
            thread=thread,
            sender=BOT,
            key=key,
            reply_to=reply_to,
            at_ms=now_ms,
            **more,
        )
        assert len(shown.text.encode()) <= self.capabilities.text_bytes
        self.messages[shown.id] = shown
        self._keys[key] = (shown.id, now_ms)
        return shown

    def _next(self) -> str:
        return f"m-{uuid4().hex[:12]}"

    async def serve(self, sink: InboundSink) -> None:
        """Deliver events to a process; one that it did not acknowledge comes again at the next one."""
        self._sink = sink
        try:
            sink.connection_changed("connected")
            while True:
                while self._incoming:
                    event = self._incoming[0]
                    await sink.receive(event)
                    self._incoming.popleft()
                self._arrived = anyio.Event()
                await self._arrived.wait()
        finally:
            self._sink = None

    def history(self, target: Target, since_ms: int) -> list[InboundMessage]:
        """Return the messages of people in a place."""
        return [
            message
            for message in self.inbound.values()
            if message.target == target and message.at_ms >= since_ms
        ]


class MemoryAnswer:
    """A running answer of the platform."""

    def __init__(self, platform: MemoryPlatform, shown: Shown) -> None:
        self._platform = platform
        self._shown = shown

    @property
    def sent(self) -> SentMessage:
        return SentMessage(message=self._shown.id, thread=self._shown.thread)

    @property
    def resume_token(self) -> str:
        return f"{self._shown.id}/{len(self._shown.texts)}"

    async def set_text(self, text: str) -> None:
        await self._platform.is_open.wait()

        def apply() -> None:
            assert self._shown.outcome is None, "written after its end"
            self._shown.text = text
            self._shown.texts.append(text)

        self._platform.call("set_text", self._shown.chat, apply)

    async def finish(self, text: str, outcome: Outcome) -> None:
        await anyio.lowlevel.checkpoint()

        def apply() -> None:
            self._shown.text, self._shown.outcome = text, outcome
            self._shown.texts.append(text)

        self._platform.call("finish", self._shown.chat, apply)


class MemoryChannel:
    """The adapter of one process."""

    name = "memory"

    def __init__(self, platform: MemoryPlatform, *, account: str = "app") -> None:
        self._platform = platform
        self._account = account

    @property
    def account(self) -> str:
        return self._account

    @property
    def capabilities(self) -> Capabilities:
        return self._platform.capabilities

    async def run(self, sink: InboundSink) -> None:
        await self._platform.serve(sink)

    async def fetch(self, attachment: ChatAttachment, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        content = self._platform.files.get(attachment.ref)
        if content is None or len(content) > limit_bytes:
            message = f"{attachment.name} cannot be read or is larger than {limit_bytes} bytes"
            raise DeliveryImpossible(message)
        for place in range(0, len(content), 1000):
            await asyncio.sleep(0)
            yield content[place : place + 1000]

    async def history(self, target: Target, *, since_ms: int) -> Sequence[InboundMessage]:
        await anyio.lowlevel.checkpoint()
        return self._platform.call(
            "history", target.chat, lambda: self._platform.history(target, since_ms)
        )

    async def find_sent(self, target: Target, *, key: str, since_ms: int) -> str | None:
        await anyio.lowlevel.checkpoint()

        def look() -> str | None:
            return next(
                (
                    shown.id
                    for shown in self._platform.messages.values()
                    if shown.key == key and shown.at_ms >= since_ms and shown.chat == target.chat
                ),
                None,
            )

        return self._platform.call("find_sent", target.chat, look)

    async def post(
        self,
        target: Target,
        text: str,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
    ) -> SentMessage:
        return await self._add("post", target, key, reply_to, in_thread=in_thread, text=text)

    async def post_file(
        self, target: Target, name: str, content: bytes, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        file = (name, content)
        return await self._add("post_file", target, key, reply_to, kind="file", file=file)

    async def open_answer(
        self,
        target: Target,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
        resume_token: str | None = None,
    ) -> MemoryAnswer:
        if resume_token is not None:
            await anyio.lowlevel.checkpoint()
            shown = self._platform.messages.get(resume_token.partition("/")[0])
            if shown is None:
                message = "no such answer"
                raise DeliveryImpossible(message)
            return MemoryAnswer(self._platform, shown)
        sent = await self._add(
            "open_answer", target, key, reply_to, in_thread=in_thread, kind="answer"
        )
        return MemoryAnswer(self._platform, self._platform.messages[sent.message])

    async def ask(
        self, target: Target, prompt: ApprovalPrompt, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        return await self._add("ask", target, key, reply_to, kind="approval", prompt=prompt)

    async def settle(
        self, target: Target, message: str, prompt: ApprovalPrompt, settlement: Settlement
    ) -> None:
        await anyio.lowlevel.checkpoint()

        def apply() -> None:
            self._platform.messages[message].settlement = settlement

        self._platform.call("settle", target.chat, apply)

    async def react(self, message: str, reaction: Reaction) -> None:
        await anyio.lowlevel.checkpoint()
        shown = self._platform.messages[message]
        self._platform.call("react", shown.chat, lambda: shown.reactions.append(reaction))

    async def _add(
        self,
        method: str,
        target: Target,
        key: str,
        reply_to: str | None,
        *,
        in_thread: bool = False,
        **more: Any,
    ) -> SentMessage:
        await anyio.lowlevel.checkpoint()
        shown = self._platform.call(
            method,
            target.chat,
            lambda: self._platform.add(target, key, in_thread=in_thread, reply_to=reply_to, **more),
        )
        return SentMessage(message=shown.id, thread=shown.thread)
