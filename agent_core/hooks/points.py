"""The points where hooks change what a run says and does: words, requests, tool calls, the user's own commands."""

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from msgspec.structs import replace
from typing_extensions import override

from agent_core.events import InputSource
from agent_core.hooks.copies import copied, copied_object, own_messages
from agent_core.hooks.kinds import Chain, Composition, FirstWins, GoOn, HookInput, Veto
from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.messages import CustomMessage, Message, UserContent


class InputTyped(HookInput["InputOutcome"], frozen=True, kw_only=True):
    """Words of the user have arrived and nothing has been done with them."""

    content: tuple[UserContent, ...]
    source: InputSource = "person"


class InputReplaced(Chain[InputTyped], frozen=True, kw_only=True):
    """Go on with other words; later hooks see these."""

    content: tuple[UserContent, ...]

    @override
    def applied(self, value: InputTyped) -> InputTyped:
        """Return what later hooks see."""
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
        """Return what later hooks see."""
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
        """Return what later hooks see."""
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
        """Return what later hooks see."""
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
        """Return the no that a failed check means."""
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
        """Return what later hooks see."""
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
        """Return what later hooks see."""
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
        """Return the no that a failed check means."""
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
        """Return what later hooks see."""
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
        """Return what later hooks see."""
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
