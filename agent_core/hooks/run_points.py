"""Hook inputs of a run: its messages, turns, tool calls and prompts."""

from typing import Literal

from msgspec.structs import replace
from typing_extensions import override

from agent_core.events.values import RunStatus, ToolStatus
from agent_core.hooks.copies import copied, copied_object, own_message, own_messages
from agent_core.hooks.kinds import Chain, GoOn, HookInput
from agent_core.kernel import ItemId, JsonObject, JsonValue, RunId, ToolCallId, TurnId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
)


class RunBegun(HookInput[GoOn], frozen=True, kw_only=True):
    """A run's words are in the conversation and its first request is next."""

    run: RunId


class RunOver(HookInput[GoOn], frozen=True, kw_only=True):
    """The turns of a run have come to their end; a retry or a compaction may still follow."""

    run: RunId
    messages: tuple[Message, ...]
    """The model's context at that moment."""
    duration_ms: int
    """Since the run began, permissions and retries included."""
    turns: int
    """Answers of the model so far, those that failed included."""
    tool_calls: int
    """Calls that have a result."""

    @override
    def isolate(self) -> "RunOver":
        """Return messages whose arguments and details are copies."""
        return replace(self, messages=own_messages(self.messages))


class RunSettled(HookInput[GoOn], frozen=True, kw_only=True):
    """Nothing of a run goes on any more."""

    run: RunId
    status: RunStatus
    duration_ms: int
    turns: int
    tool_calls: int


class TurnBegun(HookInput[GoOn], frozen=True, kw_only=True):
    """One answer of the model with its tool calls begins."""

    run: RunId
    turn: TurnId
    index: int
    at_ms: int


class TurnOver(HookInput[GoOn], frozen=True, kw_only=True):
    """The answer and the results of its tools are in the transcript."""

    run: RunId
    turn: TurnId
    index: int
    message: AssistantMessage
    results: tuple[ToolResultMessage, ...]
    duration_ms: int

    @override
    def isolate(self) -> "TurnOver":
        """Return messages whose arguments and details are copies."""
        return replace(
            self,
            message=own_message(self.message),
            results=tuple(map(own_message, self.results)),
        )


class MessageBegun(HookInput[GoOn], frozen=True, kw_only=True):
    """Start of a message of the user, the model or a program."""

    run: RunId
    item: ItemId
    role: Literal["user", "assistant", "custom"]


class MessageGrown(HookInput[GoOn], frozen=True, kw_only=True):
    """The model has produced more text. Sent at intervals, not per delta, and the run does not wait for the hooks."""

    run: RunId
    item: ItemId
    text: str
    """Text since the last such input."""


class MessageOver(HookInput["MessageOutcome"], frozen=True, kw_only=True):
    """A message is whole, and is not kept yet."""

    run: RunId
    item: ItemId
    message: Message

    @override
    def isolate(self) -> "MessageOver":
        """Return a message whose arguments and details are copies."""
        return replace(self, message=own_message(self.message))


class AnswerReplaced(Chain[MessageOver], frozen=True, kw_only=True):
    """Keep an answer of the model with other words; its thoughts and tool calls stay. Later hooks see it."""

    text: str

    @override
    def applied(self, value: MessageOver) -> MessageOver:
        """Return what later hooks see."""
        message = value.message
        if not isinstance(message, AssistantMessage):
            return value
        return replace(value, message=replace(message, content=self.content_of(message)))

    def content_of(self, message: AssistantMessage) -> tuple[AssistantContent, ...]:
        """Return the content of an answer with these words, where its first words stood."""
        text_parts: tuple[AssistantContent, ...] = (Text(text=self.text),) if self.text else ()
        at = next((n for n, part in enumerate(message.content) if isinstance(part, Text)), None)
        if at is None:
            at = next(
                (n for n, part in enumerate(message.content) if isinstance(part, ToolCall)),
                len(message.content),
            )
        rest = tuple(part for part in message.content[at:] if not isinstance(part, Text))
        return (*message.content[:at], *text_parts, *rest)


MessageOutcome = GoOn | AnswerReplaced


class ToolBegun(HookInput[GoOn], frozen=True, kw_only=True):
    """A tool call passed every check and runs next."""

    call: ToolCallId
    tool: str
    arguments: JsonObject

    @override
    def isolate(self) -> "ToolBegun":
        """Return a copy of the arguments."""
        return replace(self, arguments=copied_object(self.arguments))


class ToolPrinted(HookInput[GoOn], frozen=True, kw_only=True):
    """A running tool has more output. Sent at intervals, and the run does not wait for the hooks."""

    call: ToolCallId
    tool: str
    text: str
    """Output since the last such input."""


class ToolOver(HookInput[GoOn], frozen=True, kw_only=True):
    """A tool call has its one result, also when it was blocked or skipped."""

    call: ToolCallId
    tool: str
    status: ToolStatus
    content: tuple[UserContent, ...]
    details: JsonValue
    is_error: bool

    @override
    def isolate(self) -> "ToolOver":
        """Return a copy of the details."""
        return replace(self, details=copied(self.details))


class PromptShown(HookInput[GoOn], frozen=True, kw_only=True):
    """A person is asked something."""

    kind: str
    """`permission`, `select`, `confirm`, `input` …"""
    title: str


class PromptClosed(HookInput[GoOn], frozen=True, kw_only=True):
    """A question was answered or withdrawn."""

    kind: str
    title: str
