"""The points where hooks change what a run says and does: words, requests, tool calls, the user's own commands."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from typing_extensions import override

from agent_core.events import InputSource
from agent_core.hooks.copies import copied, copied_object, own_messages
from agent_core.hooks.kinds import Chains, Composition, Decides, GoOn, Input, Stops
from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.kernel.records import dataclass
from agent_core.messages import CustomMessage, Message, UserContent


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTyped(Input["InputOutcome"]):
    """Words of the user have arrived and nothing has been done with them."""

    content: tuple[UserContent, ...]
    source: InputSource = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReplaced(Chains[InputTyped]):
    """Go on with other words; later hooks see these."""

    content: tuple[UserContent, ...]

    @override
    def applied(self, value: InputTyped) -> InputTyped:
        """Give what later hooks see."""
        return replace(value, content=self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputHandled(Stops):
    """The words are dealt with: no run starts, later hooks are not asked."""


InputOutcome = GoOn | InputReplaced | InputHandled


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPreparing(Input["RunOutcome"]):
    """A run is about to start."""

    content: tuple[UserContent, ...]
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPrepared(Chains[RunPreparing]):
    """Start with another system prompt (None: the same) and with messages added before the first request."""

    composition: ClassVar[tuple[Composition, ...]] = ("chain", "collect")
    collected: ClassVar[tuple[str, ...]] = ("messages",)

    system: str | None = None
    messages: tuple[CustomMessage, ...] = ()

    @override
    def applied(self, value: RunPreparing) -> RunPreparing:
        """Give what later hooks see."""
        return value if self.system is None else replace(value, system=self.system)


RunOutcome = GoOn | RunPrepared


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuilt(Input["ContextOutcome"]):
    """The messages of the next request; the transcript stays as it is."""

    messages: tuple[Message, ...]

    @override
    def own(self) -> "ContextBuilt":
        """Give messages whose arguments are copies."""
        return ContextBuilt(messages=own_messages(self.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReplaced(Chains[ContextBuilt]):
    """Send other messages; later hooks see these."""

    messages: tuple[Message, ...]

    @override
    def applied(self, value: ContextBuilt) -> ContextBuilt:
        """Give what later hooks see."""
        return replace(value, messages=self.messages)


ContextOutcome = GoOn | ContextReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBuilt(Input["RequestOutcome"]):
    """The next request as it is about to go out, after all that `ContextBuilt` changed."""

    system: str
    messages: tuple[Message, ...]

    @override
    def own(self) -> "RequestBuilt":
        """Give messages whose arguments are copies."""
        return RequestBuilt(system=self.system, messages=own_messages(self.messages))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReplaced(Chains[RequestBuilt]):
    """Send another system prompt or other messages; None leaves a part as it is."""

    system: str | None = None
    messages: tuple[Message, ...] | None = None

    @override
    def applied(self, value: RequestBuilt) -> RequestBuilt:
        """Give what later hooks see."""
        return RequestBuilt(
            system=value.system if self.system is None else self.system,
            messages=value.messages if self.messages is None else self.messages,
        )


RequestOutcome = GoOn | RequestReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Input["ToolCallOutcome"]):
    """A tool call with checked arguments is about to run."""

    call: ToolCallId
    tool: str
    arguments: JsonObject

    @override
    def fresh(self) -> "ToolCalled":
        """Give a copy of the arguments: what one hook does to them, a later check must not take for the truth."""
        return ToolCalled(call=self.call, tool=self.tool, arguments=copied_object(self.arguments))

    @override
    def refusal(self, owner: str) -> "ToolBlocked":
        """Give the no that a failed check means."""
        return ToolBlocked(
            reason=f"{self.tool} was not run: the check {owner!r} failed, and a check that fails means no."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBlocked(Stops):
    """The call must not run; the reason goes to the model, later hooks are not asked."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsReplaced(Chains[ToolCalled]):
    """Run with other arguments; they are checked again, later hooks see these."""

    arguments: JsonObject

    @override
    def applied(self, value: ToolCalled) -> ToolCalled:
        """Give what later hooks see."""
        return replace(value, arguments=self.arguments)


ToolCallOutcome = GoOn | ToolBlocked | ArgumentsReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned(Input["ToolResultOutcome"]):
    """A tool call has a result that nobody has seen yet."""

    call: ToolCallId
    tool: str
    arguments: JsonObject
    content: tuple[UserContent, ...]
    details: JsonValue
    is_error: bool

    @override
    def fresh(self) -> "ToolReturned":
        """Give copies of the arguments and the details."""
        return ToolReturned(
            call=self.call,
            tool=self.tool,
            arguments=copied_object(self.arguments),
            content=self.content,
            details=copied(self.details),
            is_error=self.is_error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReplaced(Chains[ToolReturned]):
    """Change parts of the result; None leaves a part as it is. Later hooks see the changed result."""

    content: tuple[UserContent, ...] | None = None
    details: JsonValue = None
    is_error: bool | None = None

    @override
    def applied(self, value: ToolReturned) -> ToolReturned:
        """Give what later hooks see."""
        return replace(
            value,
            content=value.content if self.content is None else self.content,
            details=value.details if self.details is None else self.details,
            is_error=value.is_error if self.is_error is None else self.is_error,
        )


ToolResultOutcome = GoOn | ResultReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTyped(Input["CommandOutcome"]):
    """The user's own command is about to run."""

    command: str
    exclude_from_context: bool
    cwd: str

    @override
    def refusal(self, owner: str) -> "CommandBlocked":
        """Give the no that a failed check means."""
        return CommandBlocked(
            reason=f"the command was not run: the check {owner!r} failed, and a check that fails means no."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBlocked(Stops):
    """The command must not run; the user is told the reason."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDone(Decides):
    """The command is not run here: this is what became of it."""

    output: str
    exit_code: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCarried(Decides):
    """The command is run by a function, on another machine for one; it may show output while it goes on."""

    run: Callable[[str, Callable[[str], None]], Awaitable[CommandDone]]
    """Given the command, and what shows output."""


CommandOutcome = GoOn | CommandBlocked | CommandDone | CommandCarried


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadBuilt(Input["PayloadOutcome"]):
    """The body of a request in the provider's own form."""

    provider: str
    url: str
    payload: JsonObject

    @override
    def own(self) -> "PayloadBuilt":
        """Give a copy of the body."""
        return replace(self, payload=copied_object(self.payload))


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadReplaced(Chains[PayloadBuilt]):
    """Send another body; later hooks see it."""

    payload: JsonObject

    @override
    def applied(self, value: PayloadBuilt) -> PayloadBuilt:
        """Give what later hooks see."""
        return replace(value, payload=self.payload)


PayloadOutcome = GoOn | PayloadReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadersBuilt(Input["HeadersOutcome"]):
    """The headers of a request, without those that hold keys."""

    provider: str
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadersChanged(Chains[HeadersBuilt]):
    """Set headers, or leave some out (None)."""

    collected: ClassVar[tuple[str, ...]] = ("headers",)

    headers: Mapping[str, str | None]

    @override
    def applied(self, value: HeadersBuilt) -> HeadersBuilt:
        """Give what later hooks see."""
        merged = {**value.headers, **self.headers}
        return replace(
            value, headers={name: text for name, text in merged.items() if text is not None}
        )


HeadersOutcome = GoOn | HeadersChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseArrived(Input[GoOn]):
    """A provider has begun to answer."""

    provider: str
    status: int
    headers: Mapping[str, str]
