"""The points where code can look in and change what happens: one input class and one closed outcome each."""

from dataclasses import dataclass

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.messages import CustomMessage, Message, UserContent


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """Nothing to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTyped:
    """Words of the user have arrived and nothing has been done with them."""

    content: tuple[UserContent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReplaced:
    """Go on with other words; later hooks see these."""

    content: tuple[UserContent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputHandled:
    """The words are dealt with: no run starts, later hooks are not asked."""


InputOutcome = GoOn | InputReplaced | InputHandled


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPreparing:
    """A run is about to start."""

    content: tuple[UserContent, ...]
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPrepared:
    """Start with another system prompt (None: the same) and with messages added before the first request."""

    system: str | None = None
    messages: tuple[CustomMessage, ...] = ()


RunOutcome = GoOn | RunPrepared


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuilt:
    """The messages of the next request; the transcript stays as it is."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReplaced:
    """Send other messages; later hooks see these."""

    messages: tuple[Message, ...]


ContextOutcome = GoOn | ContextReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A tool call with checked arguments is about to run."""

    call: ToolCallId
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBlocked:
    """The call must not run; the reason goes to the model, later hooks are not asked."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsReplaced:
    """Run with other arguments; they are checked again, later hooks see these."""

    arguments: JsonObject


ToolCallOutcome = GoOn | ToolBlocked | ArgumentsReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturned:
    """A tool call has a result that nobody has seen yet."""

    call: ToolCallId
    tool: str
    arguments: JsonObject
    content: tuple[UserContent, ...]
    details: JsonValue
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultReplaced:
    """Change parts of the result; None leaves a part as it is. Later hooks see the changed result."""

    content: tuple[UserContent, ...] | None = None
    details: JsonValue = None
    is_error: bool | None = None


ToolResultOutcome = GoOn | ResultReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacting:
    """The older part of the conversation is about to be summarised."""

    reason: str
    messages: tuple[Message, ...]
    """What would be summarised."""
    previous_summary: str | None
    instructions: str | None
    tokens_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCancelled:
    """Do not compact; later hooks are not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryGiven:
    """Use this summary instead of asking a model; later hooks are not asked."""

    summary: str
    details: JsonValue = None


CompactionOutcome = GoOn | CompactionCancelled | SummaryGiven
