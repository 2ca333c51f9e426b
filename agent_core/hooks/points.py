"""The hook points of a run: messages, turns, requests, tool calls, prompts, and what hooks may answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Literal, TypeVar

from msgspec.structs import replace
from typing_extensions import override

from agent_core.events import InputSource
from agent_core.events.values import RunStatus, ToolStatus
from agent_core.hooks.kinds import Chain, Composition, FirstWins, GoOn, HookInput, Veto
from agent_core.kernel import ItemId, JsonObject, JsonValue, RunId, ToolCallId, TurnId
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    CustomMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)

OneMessage = TypeVar("OneMessage", bound=Message)


def copied(value: JsonValue) -> JsonValue:
    """Copy JSON, however deep."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return copied_object(value)
    return [copied(item) for item in value]


def copied_object(value: JsonObject) -> dict[str, JsonValue]:
    """Copy a JSON object, however deep."""
    return {key: item if isinstance(item, str) else copied(item) for key, item in value.items()}


def own_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Copy the arguments and details that messages hold; their words cannot be changed."""
    return tuple(map(own_message, messages))


def own_message(message: OneMessage) -> OneMessage:
    """Copy the arguments and details that a message holds."""
    match message:
        case AssistantMessage(content=content) if any(isinstance(one, ToolCall) for one in content):
            return _with_content(message, tuple(map(_own_part, content)))
        case ToolResultMessage() | CustomMessage() if message.details is not None:
            return replace(message, details=copied(message.details))
        case _:
            return message


def _own_part(part: AssistantContent) -> AssistantContent:
    if isinstance(part, ToolCall):
        return ToolCall(
            id=part.id,
            name=part.name,
            arguments=copied_object(part.arguments),
            arguments_error=part.arguments_error,
            signature=part.signature,
        )
    return part


def _with_content(
    message: AssistantMessage, content: tuple[AssistantContent, ...]
) -> AssistantMessage:
    # Written out: whole conversations come through here before each request, and `replace` takes four times as long.
    return AssistantMessage(
        content=content,
        api=message.api,
        provider=message.provider,
        model=message.model,
        stop_reason=message.stop_reason,
        usage=message.usage,
        error=message.error,
        raw_stop_reason=message.raw_stop_reason,
        response_id=message.response_id,
        at_ms=message.at_ms,
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
    message: UserMessage | CustomMessage | None = None
    """None: the model has not answered yet."""

    @override
    def isolate(self) -> "MessageBegun":
        """Return a message whose details are a copy."""
        message = self.message
        return self if message is None else replace(self, message=own_message(message))


class TextGrowth(Value, frozen=True, kw_only=True):
    """More text of an answer."""

    text: str


class ThinkingGrowth(Value, frozen=True, kw_only=True):
    """More text of the model's thinking."""

    text: str


class ToolCallGrowth(Value, frozen=True, kw_only=True):
    """Begin of a tool call in an answer, or more of its arguments."""

    index: int
    """Place of the call among those of the answer, from 0."""
    call: ToolCallId
    tool: str
    text: str
    """JSON of the arguments since the last growth of this call; empty at the beginning."""


AnswerGrowth = TextGrowth | ThinkingGrowth | ToolCallGrowth


class MessageGrown(HookInput[GoOn], frozen=True, kw_only=True):
    """The model has produced more of its answer. Sent at intervals, not per delta, and the run does not wait for the hooks."""

    run: RunId
    item: ItemId
    text: str
    """Text since the last such input, without thinking and tool calls; may be empty."""
    growth: tuple[AnswerGrowth, ...] = ()
    """All that came since the last such input, in order; neighbours of one kind are joined."""
    content: tuple[AssistantContent, ...] = ()
    """Text and thinking of the answer so far; tool calls are added when they are whole, in `MessageOver`."""


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
    arguments: JsonObject
    """Arguments that the call runs with."""
    text: str
    """Output since the last such input."""

    @override
    def isolate(self) -> "ToolPrinted":
        """Return a copy of the arguments."""
        return replace(self, arguments=copied_object(self.arguments))


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


class InputTyped(HookInput["InputOutcome"], frozen=True, kw_only=True):
    """Words of the user have arrived and nothing has been done with them."""

    content: tuple[UserContent, ...]
    source: InputSource = "person"


class InputReplaced(Chain[InputTyped], frozen=True, kw_only=True):
    """Go on with other words; later hooks see these."""

    content: tuple[UserContent, ...]

    @override
    def applied(self, value: InputTyped) -> InputTyped:
        return replace(value, content=self.content)


class InputHandled(Veto, frozen=True, kw_only=True):
    """The words are dealt with: no run starts, later hooks are not asked."""


InputOutcome = GoOn | InputReplaced | InputHandled


class RunPreparing(HookInput["RunOutcome"], frozen=True, kw_only=True):
    """A run is about to start."""

    content: tuple[UserContent, ...]
    system: str


class RunPrepared(Chain[RunPreparing], frozen=True, kw_only=True):
    """Start with another system prompt (None: the same) and with messages added before the first request."""

    composition: ClassVar[tuple[Composition, ...]] = ("chain", "collect")
    collected: ClassVar[tuple[str, ...]] = ("messages",)

    system: str | None = None
    messages: tuple[CustomMessage, ...] = ()

    @override
    def applied(self, value: RunPreparing) -> RunPreparing:
        return value if self.system is None else replace(value, system=self.system)


RunOutcome = GoOn | RunPrepared


class ContextBuilt(HookInput["ContextOutcome"], frozen=True, kw_only=True):
    """The messages of the next request; the transcript stays as it is."""

    messages: tuple[Message, ...]

    @override
    def isolate(self) -> "ContextBuilt":
        """Return messages whose arguments are copies."""
        return ContextBuilt(messages=own_messages(self.messages))


class ContextReplaced(Chain[ContextBuilt], frozen=True, kw_only=True):
    """Send other messages; later hooks see these."""

    messages: tuple[Message, ...]

    @override
    def applied(self, value: ContextBuilt) -> ContextBuilt:
        return replace(value, messages=self.messages)


ContextOutcome = GoOn | ContextReplaced


class RequestBuilt(HookInput["RequestOutcome"], frozen=True, kw_only=True):
    """The next request as it is about to go out, after all that `ContextBuilt` changed."""

    system: str
    messages: tuple[Message, ...]

    @override
    def isolate(self) -> "RequestBuilt":
        """Return messages whose arguments are copies."""
        return RequestBuilt(system=self.system, messages=own_messages(self.messages))


class RequestReplaced(Chain[RequestBuilt], frozen=True, kw_only=True):
    """Send another system prompt or other messages; None leaves a part as it is."""

    system: str | None = None
    messages: tuple[Message, ...] | None = None

    @override
    def applied(self, value: RequestBuilt) -> RequestBuilt:
        return RequestBuilt(
            system=value.system if self.system is None else self.system,
            messages=value.messages if self.messages is None else self.messages,
        )


RequestOutcome = GoOn | RequestReplaced


class ToolCalled(HookInput["ToolCallOutcome"], frozen=True, kw_only=True):
    """A tool call with checked arguments is about to run."""

    call: ToolCallId
    tool: str
    arguments: JsonObject

    @override
    def copy_for_hook(self) -> "ToolCalled":
        """Return a copy of the arguments, so that a later check does not see changes that one hook made in place."""
        return ToolCalled(call=self.call, tool=self.tool, arguments=copied_object(self.arguments))

    @override
    def refusal(self, owner: str) -> "ToolBlocked":
        return ToolBlocked(
            reason=f"{self.tool} was not run: the check {owner!r} failed, and a check that fails means no."
        )


class ToolBlocked(Veto, frozen=True, kw_only=True):
    """The call must not run; the reason goes to the model, later hooks are not asked."""

    reason: str


class ArgumentsReplaced(Chain[ToolCalled], frozen=True, kw_only=True):
    """Run with other arguments; they are checked again, later hooks see these."""

    arguments: JsonObject

    @override
    def applied(self, value: ToolCalled) -> ToolCalled:
        return replace(value, arguments=self.arguments)


ToolCallOutcome = GoOn | ToolBlocked | ArgumentsReplaced


class ToolReturned(HookInput["ToolResultOutcome"], frozen=True, kw_only=True):
    """A tool call has a result that nobody has seen yet."""

    call: ToolCallId
    tool: str
    arguments: JsonObject
    content: tuple[UserContent, ...]
    details: JsonValue
    is_error: bool

    @override
    def copy_for_hook(self) -> "ToolReturned":
        """Return copies of the arguments and the details."""
        return ToolReturned(
            call=self.call,
            tool=self.tool,
            arguments=copied_object(self.arguments),
            content=self.content,
            details=copied(self.details),
            is_error=self.is_error,
        )


class ResultReplaced(Chain[ToolReturned], frozen=True, kw_only=True):
    """Change parts of the result; None leaves a part as it is. Later hooks see the changed result."""

    content: tuple[UserContent, ...] | None = None
    details: JsonValue = None
    is_error: bool | None = None

    @override
    def applied(self, value: ToolReturned) -> ToolReturned:
        return replace(
            value,
            content=value.content if self.content is None else self.content,
            details=value.details if self.details is None else self.details,
            is_error=value.is_error if self.is_error is None else self.is_error,
        )


ToolResultOutcome = GoOn | ResultReplaced


class CommandTyped(HookInput["CommandOutcome"], frozen=True, kw_only=True):
    """The user's own command is about to run."""

    command: str
    exclude_from_context: bool
    cwd: str

    @override
    def refusal(self, owner: str) -> "CommandBlocked":
        return CommandBlocked(
            reason=f"the command was not run: the check {owner!r} failed, and a check that fails means no."
        )


class CommandBlocked(Veto, frozen=True, kw_only=True):
    """The command must not run; the user is told the reason."""

    reason: str


class CommandDone(FirstWins, frozen=True, kw_only=True):
    """The command is not run here: this is what became of it."""

    output: str
    exit_code: int | None = 0


class CommandCarried(FirstWins, frozen=True, kw_only=True):
    """The command is run by a function, on another machine for one; it may show output while it goes on."""

    run: Callable[[str, Callable[[str], None]], Awaitable[CommandDone]]
    """Given the command, and what shows output."""


CommandOutcome = GoOn | CommandBlocked | CommandDone | CommandCarried


class PayloadBuilt(HookInput["PayloadOutcome"], frozen=True, kw_only=True):
    """The body of a request in the provider's own form."""

    provider: str
    url: str
    payload: JsonObject

    @override
    def isolate(self) -> "PayloadBuilt":
        """Return a copy of the body."""
        return replace(self, payload=copied_object(self.payload))


class PayloadReplaced(Chain[PayloadBuilt], frozen=True, kw_only=True):
    """Send another body; later hooks see it."""

    payload: JsonObject

    @override
    def applied(self, value: PayloadBuilt) -> PayloadBuilt:
        return replace(value, payload=self.payload)


PayloadOutcome = GoOn | PayloadReplaced


class HeadersBuilt(HookInput["HeadersOutcome"], frozen=True, kw_only=True):
    """The headers of a request, without those that hold keys."""

    provider: str
    url: str
    headers: Mapping[str, str]


class HeadersChanged(Chain[HeadersBuilt], frozen=True, kw_only=True):
    """Set headers, or leave some out (None)."""

    collected: ClassVar[tuple[str, ...]] = ("headers",)

    headers: Mapping[str, str | None]

    @override
    def applied(self, value: HeadersBuilt) -> HeadersBuilt:
        merged = {**value.headers, **self.headers}
        return replace(
            value, headers={name: text for name, text in merged.items() if text is not None}
        )


HeadersOutcome = GoOn | HeadersChanged


class ResponseArrived(HookInput[GoOn], frozen=True, kw_only=True):
    """A provider has begun to answer."""

    provider: str
    status: int
    headers: Mapping[str, str]
