"""The port of chat platforms: messages in, messages, running answers and approvals out.

An adapter speaks one platform's protocol and keeps nothing. Its caller stores received and outgoing messages, and orders,
limits and repeats them. Text is Markdown (CommonMark without HTML blocks).

    TillerError
    └── DeliveryError             a message was not confirmed by the platform
        ├── DeliveryDelayed       refused for now, nothing was applied; repeat with the same key
        ├── DeliveryUncertain     it may have been applied; repeat with the same key while the platform remembers keys
        └── DeliveryImpossible    repeating it does not help
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, Protocol

from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value

Outcome = Literal["completed", "aborted", "failed"]
Reaction = Literal["started", "completed", "aborted", "failed"]
ConnectionState = Literal["connecting", "connected", "degraded", "stopped"]


class DeliveryError(TillerError):
    """A message was not confirmed by the platform."""


class DeliveryDelayed(DeliveryError):
    """The platform refused a message for now and applied nothing.

    Attributes:
        retry_after_s: Time after which it may be repeated; None: not stated.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeliveryUncertain(DeliveryError):
    """A time-out or a fault of the platform, after which a message may have been applied."""


class DeliveryImpossible(DeliveryError):
    """The platform refuses a message for good: no such chat, no right, content that it does not accept."""


class Target(Value, frozen=True, kw_only=True):
    """Where a message goes: a chat, and in it a thread."""

    chat: str
    thread: str | None = None
    """Id of the thread or topic; None: the main flow of the chat."""


class Sender(Value, frozen=True, kw_only=True):
    """Author of a message or of a click."""

    id: str
    name: str = ""
    is_bot: bool = False


class ChatAttachment(Value, frozen=True, kw_only=True):
    """A file of a message, which `MessageReader.fetch` reads."""

    ref: str
    """Opaque reference of the adapter."""
    name: str
    mime: str | None = None
    size_bytes: int | None = None


class InboundMessage(Value, frozen=True, kw_only=True, tag="message"):
    """A message of a person or a bot."""

    key: str
    """Id for recognising repetitions, unique in the account: the platform's id of the message."""
    target: Target
    chat_kind: Literal["direct", "group"]
    sender: Sender
    text: str
    """Plain text or Markdown; mentions of the bot itself are removed, those of others are names."""
    mentioned: bool = False
    """Whether the bot is mentioned."""
    reply_to: str | None = None
    """Id of the message that it answers."""
    attachments: tuple[ChatAttachment, ...] = ()
    at_ms: int
    """Time of the platform, in milliseconds since 1970."""


class InboundClick(Value, frozen=True, kw_only=True, tag="click"):
    """A click on a button of an approval or a question."""

    key: str
    """Id for recognising repetitions."""
    target: Target
    message: str
    """Id of the message whose button it is."""
    sender: Sender
    request: str
    option: str
    digest: str
    """Digest of the text that was shown."""
    form: Mapping[str, str] = {}
    """Values of input fields and choices, by name."""
    at_ms: int


class InboundRecall(Value, frozen=True, kw_only=True, tag="recall"):
    """The withdrawal of a message by its author."""

    key: str
    target: Target
    message: str
    at_ms: int


Inbound = InboundMessage | InboundClick | InboundRecall


class ApprovalOption(Value, frozen=True, kw_only=True):
    """A button."""

    id: str
    label: str
    style: Literal["primary", "default", "danger"] = "default"


class ApprovalPrompt(Value, frozen=True, kw_only=True):
    """A permission request, a question or a plan as a message with buttons."""

    request: str
    title: str
    risk: Literal["low", "medium", "high"] = "medium"
    """Colour of the head."""
    body: str
    """The exact command, path or question as Markdown, already shortened and redacted."""
    detail: str = ""
    """Workspace and tool, in one line."""
    options: tuple[ApprovalOption, ...]
    digest: str
    """First 16 hexadecimal digits of the SHA-256 over the shown text; comes back with each click."""
    code: str
    """Code of 4 to 6 characters for answers by text: `/approve CODE OPTION`."""


class Settlement(Value, frozen=True, kw_only=True):
    """How an approval ended; the message is redrawn with it, without buttons."""

    label: str
    """Outcome in words of the user: "Allowed once", "Denied", "Expired: denied"."""
    by: str
    """Name of the person, or of the other front end; empty for `expired`."""
    at_ms: int
    allowed: bool


class ClickReply(Value, frozen=True, kw_only=True):
    """The answer to a click, due within the time of the platform (3 s)."""

    text: str
    kind: Literal["info", "success", "warning", "error"]
    prompt: ApprovalPrompt | None = None
    """The approval to redraw with `settlement`; None: the message stays as it is."""
    settlement: Settlement | None = None


class Capabilities(Value, frozen=True, kw_only=True):
    """Limits of a platform."""

    text_bytes: int
    """Longest message, in bytes of UTF-8; longer texts are split or sent as a file."""
    upload_bytes: int
    key_window_s: float
    """How long the platform recognises a repeated key; 0: never."""
    chat_rate: float
    """Calls per second for each chat."""
    app_rate: float
    """Calls per second in all."""
    stream_interval_s: float
    """Least time between two updates of a running answer."""
    has_threads: bool
    history: bool
    """Whether messages of the past can be read."""
    command_mark: str = "/"
    """First character of commands as people type them; the adapter passes them on with `/`."""


class SentMessage(Value, frozen=True, kw_only=True):
    """A message that the platform confirmed."""

    message: str
    thread: str | None = None
    """Thread in which it stands, also one that it opened."""


class InboundSink(Protocol):
    """Receiver of everything that comes from a platform."""

    async def receive(self, event: InboundMessage | InboundRecall) -> None:
        """Store an event durably; the adapter acknowledges it after that. Repeated keys are ignored."""
        ...

    async def click(self, event: InboundClick) -> ClickReply:
        """Decide a click. Returns within 2.5 s, also when the daemon cannot be used."""
        ...

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        """Record the state of the connection; after `connected` the caller reads the history of its chats."""
        ...


class MessageReader(Protocol):
    """The receiving side of an adapter."""

    async def run(self, sink: InboundSink) -> None:
        """Keep the connection and pass on what comes, until it is cancelled. Never returns because of a refusal."""
        ...

    def fetch(self, attachment: ChatAttachment, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Read a file of a message.

        Raises:
            DeliveryError: It cannot be read, or has more bytes than the limit.
        """
        ...

    async def history(self, target: Target, *, since_ms: int) -> Sequence[InboundMessage]:
        """Return the messages of a chat or thread since a time, oldest first, own messages left out.

        Raises:
            DeliveryError: It cannot be read.
        """
        ...

    async def find_sent(self, target: Target, *, key: str, since_ms: int) -> str | None:
        """Return the id of an own message that was sent with a key; None when the history has none.

        Raises:
            DeliveryError: The history cannot be read.
        """
        ...


class RunningAnswer(Protocol):
    """An answer that is shown while it grows. One writer at a time; its texts have at most `Capabilities.text_bytes`."""

    @property
    def sent(self) -> SentMessage:
        """Its message."""
        ...

    @property
    def resume_token(self) -> str:
        """Text from which `open_answer` of another process goes on; may change with every call."""
        ...

    async def set_text(self, text: str) -> None:
        """Show the whole text so far.

        Raises:
            DeliveryError: It was not shown; the next text replaces it anyway.
        """
        ...

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the whole final text and end the answer; falls back to plain messages where the platform refuses.

        Raises:
            DeliveryError: The text is not shown in full.
        """
        ...


class MessageSender(Protocol):
    """The sending side of an adapter. Each call with a key is applied at most once while the platform remembers keys.

    Every method raises a DeliveryError when the platform did not confirm it.
    """

    async def post(
        self,
        target: Target,
        text: str,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
    ) -> SentMessage:
        """Send a message.

        Args:
            target: Where it goes.
            text: Markdown.
            key: Key for recognising repetitions, at most 50 characters.
            reply_to: Message that it answers.
            in_thread: Whether the answer opens a thread where there is none.
        """
        ...

    async def post_file(
        self, target: Target, name: str, content: bytes, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        """Send a file."""
        ...

    async def open_answer(
        self,
        target: Target,
        *,
        key: str,
        reply_to: str | None = None,
        in_thread: bool = False,
        resume_token: str | None = None,
    ) -> RunningAnswer:
        """Open an answer that grows, or go on with one that another process had opened."""
        ...

    async def ask(
        self, target: Target, prompt: ApprovalPrompt, *, key: str, reply_to: str | None = None
    ) -> SentMessage:
        """Send an approval with its buttons."""
        ...

    async def settle(
        self, target: Target, message: str, prompt: ApprovalPrompt, settlement: Settlement
    ) -> None:
        """Redraw an approval as answered."""
        ...

    async def react(self, message: str, reaction: Reaction) -> None:
        """Set the reaction of the bot to a message; a former one of ours is removed."""
        ...


class MessagingChannel(MessageReader, MessageSender, Protocol):
    """A chat platform, for one account."""

    @property
    def name(self) -> str:
        """Name of the platform, in lower case: `lark`, `slack`."""
        ...

    @property
    def account(self) -> str:
        """Id of the app or bot."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Limits of the platform."""
        ...
