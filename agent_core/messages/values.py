"""Messages and their content, as frozen values."""

from typing import Literal

import msgspec

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.kernel.values import Value

StopReason = Literal["stop", "length", "tool_use", "error", "aborted"]
"""Why an answer ended. `length`: cut off by the output limit, its tool calls are never executed."""

Unfinished = Literal["skipped", "blocked", "cancelled"]
"""Why a tool call was not done: words of the user came first, it was not allowed, or it was stopped."""


class Text(Value, frozen=True, kw_only=True):
    """Words."""

    text: str
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""


class Image(Value, frozen=True, kw_only=True):
    """A picture."""

    mime: str
    data: str
    """Base64."""


class Thinking(Value, frozen=True, kw_only=True):
    """Reasoning text of a model."""

    text: str
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""
    redacted: bool = False
    """The provider hid the text; the signature stands for it."""


class ToolCall(Value, frozen=True, kw_only=True):
    """A model asks for a tool."""

    id: ToolCallId
    name: str
    arguments: JsonObject
    arguments_error: str | None = None
    """Set when the model wrote no JSON object: the error, with the raw text; `arguments` is then empty."""
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""


class Cost(Value, frozen=True, kw_only=True):
    """Money for one answer, in US dollars, by kind of token."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    @property
    def total(self) -> float:
        """All kinds together."""
        return self.input + self.output + self.cache_read + self.cache_write


class Usage(Value, frozen=True, kw_only=True):
    """Tokens of one answer, or of many added up.

    `input` excludes what was read from or written to the provider's cache; `output` includes `reasoning`.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: Cost | None = None
    """None: the price is unknown, which is not the same as free."""

    @property
    def total(self) -> int:
        """All tokens that the provider counted; the size of the context after the answer."""
        return self.input + self.output + self.cache_read + self.cache_write

    def plus(self, other: "Usage") -> "Usage":
        """Add up; the cost is unknown when a part that used tokens has no price."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cost=_add_cost(self, other),
        )


def _add_cost(one: Usage, two: Usage) -> Cost | None:
    if one.total == 0 and one.cost is None:
        return two.cost
    if two.total == 0 and two.cost is None:
        return one.cost
    if one.cost is None or two.cost is None:
        return None
    return Cost(
        input=one.cost.input + two.cost.input,
        output=one.cost.output + two.cost.output,
        cache_read=one.cost.cache_read + two.cost.cache_read,
        cache_write=one.cost.cache_write + two.cost.cache_write,
    )


UserContent = Text | Image
AssistantContent = Text | Thinking | ToolCall


class UserMessage(Value, frozen=True, kw_only=True):
    """The user's words."""

    content: tuple[UserContent, ...]
    at_ms: int


class AssistantMessage(Value, frozen=True, kw_only=True):
    """One answer of a model."""

    content: tuple[AssistantContent, ...]
    api: str
    provider: str
    model: str
    """Without the provider: `provider/model` is the full name."""
    stop_reason: StopReason
    usage: Usage = msgspec.field(default_factory=Usage)
    error: str | None = None
    """One sentence, with `error` and sometimes `aborted`."""
    raw_stop_reason: str | None = None
    response_id: str | None = None
    at_ms: int

    @property
    def text(self) -> str:
        """Its words, without thoughts and tool calls."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Its tool calls in source order."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))


class ToolResultMessage(Value, frozen=True, kw_only=True):
    """Result of a tool call, with `content` for the model and `details` for the front end."""

    call_id: ToolCallId
    tool_name: str
    content: tuple[UserContent, ...]
    details: JsonValue = None
    is_error: bool = False
    duration_ms: int | None = None
    """None: the tool did not run."""
    unfinished: Unfinished | None = None
    """None: the call was done, well or with an error."""
    at_ms: int


class CustomMessage(Value, frozen=True, kw_only=True):
    """Words that an extension or hook adds; the model reads them as the user's."""

    custom_type: str
    content: tuple[UserContent, ...]
    display: bool = True
    details: JsonValue = None
    at_ms: int


class BashMessage(Value, frozen=True, kw_only=True):
    """A command that the user ran; the model reads it unless it is excluded."""

    command: str
    output: str
    exit_code: int | None
    cancelled: bool = False
    truncated: bool = False
    full_output: str | None = None
    exclude_from_context: bool = False
    at_ms: int


class BranchSummaryMessage(Value, frozen=True, kw_only=True):
    """Summary of a branch that was left."""

    summary: str
    from_id: str
    at_ms: int


class CompactionSummaryMessage(Value, frozen=True, kw_only=True):
    """Summary of the conversation before the part that is kept."""

    summary: str
    tokens_before: int
    at_ms: int


Message = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | CustomMessage
    | BashMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
)


def text_of(content: tuple[UserContent | AssistantContent, ...]) -> str:
    """Join the words of some content."""
    return "".join(part.text for part in content if isinstance(part, Text))
