"""Messages, their parts and their use of tokens."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import Annotated, Final, Literal

import msgspec

from agent_core.kernel import ToolCallId
from agent_core.kernel.values import Value
from agent_core.messages.stored_value import JsonObject, JsonValue, StoredValue, always

Count = Annotated[int, msgspec.Meta(ge=0)]

StopReason = Literal["stop", "length", "tool_use", "error", "aborted"]
"""Why an answer ended. `length`: cut off by the output limit, its tool calls are never executed."""

Unfinished = Literal["skipped", "blocked", "cancelled"]
"""Why a tool call was not done: words of the user came first, it was not allowed, or it was stopped."""


TEXT_TYPE: Final = "text/plain"
PDF_TYPE: Final = "application/pdf"
TEXT_BYTES: Final = 3
"""Of a text, for one token."""
PDF_BYTES: Final = 60
"""Of a PDF, for one token: pages of text have fewer, scanned pages more."""
PAGE_TOKENS: Final = 3000
"""Of a page of a PDF."""


class _Block(StoredValue, frozen=True, kw_only=True, tag_field="type"):
    """A piece of content."""


class Text(_Block, frozen=True, kw_only=True, tag="text", rename={"signature": "textSignature"}):
    """Words."""

    text: str
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""


class Image(_Block, frozen=True, kw_only=True, tag="image", rename={"mime": "mimeType"}):
    """A picture: with its bytes, or stored as an attachment."""

    data: str = always(default="")
    """Base64; empty: see `blob`."""
    mime: str
    blob: str | None = None
    """SHA-256 of the bytes, in hexadecimal digits, under which they are stored; None: they are in `data`."""
    size: int | None = None
    """Of a stored picture, in bytes."""


class File(_Block, frozen=True, kw_only=True, tag="file", rename={"mime": "mimeType"}):
    """A file of text or a PDF: with its bytes, or stored as an attachment."""

    data: str = always(default="")
    """Base64; empty: see `blob`."""
    mime: str
    blob: str | None = None
    """SHA-256 of the bytes, in hexadecimal digits, under which they are stored; None: they are in `data`."""
    size: int | None = None
    """Of a stored file, in bytes."""
    name: str = "file"
    """Name without a folder, for people and models."""

    @property
    def is_text(self) -> bool:
        """Whether models are sent its text."""
        return self.mime == TEXT_TYPE

    @property
    def byte_size(self) -> int:
        """Its size, rather too large than too small."""
        return len(self.data) // 4 * 3 if self.size is None else self.size

    @property
    def tokens(self) -> int:
        """An estimate of its tokens. A page of a PDF counts as text and as an image."""
        if self.is_text:
            return self.byte_size // TEXT_BYTES + 1
        return max(PAGE_TOKENS, self.byte_size // PDF_BYTES)


class Thinking(
    _Block,
    frozen=True,
    kw_only=True,
    tag="thinking",
    rename={"text": "thinking", "signature": "thinkingSignature"},
):
    """Reasoning text of a model."""

    text: str
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""
    redacted: bool = False
    """The provider hid the text; the signature stands for it."""


class ToolCall(
    _Block,
    frozen=True,
    kw_only=True,
    tag="toolCall",
    rename={"arguments_error": "argumentsError", "signature": "thoughtSignature"},
):
    """A model asks for a tool."""

    id: ToolCallId
    name: str
    arguments: JsonObject
    arguments_error: str | None = None
    """Set when the model wrote no JSON object: the error, with the raw text; `arguments` is then empty."""
    signature: str | None = None
    """Opaque; goes back only to the model that made it."""


_CACHE_NAMES: Mapping[str, str] = {"cache_read": "cacheRead", "cache_write": "cacheWrite"}


class Cost(Value, frozen=True, kw_only=True, rename=_CACHE_NAMES):
    """Money for one answer, in US dollars, by kind of token."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    @property
    def total(self) -> float:
        """All kinds together."""
        return self.input + self.output + self.cache_read + self.cache_write


class Usage(Value, frozen=True, kw_only=True, rename=_CACHE_NAMES):
    """Tokens of one answer, or of many added up.

    `input` excludes what was read from or written to the provider's cache; `output` includes `reasoning`.
    """

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
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


UserContent = Text | Image | File
AssistantContent = Text | Thinking | ToolCall


class _StoredMessage(
    StoredValue,
    frozen=True,
    kw_only=True,
    tag_field="role",
    rename={
        "at_ms": "timestamp",
        "stop_reason": "stopReason",
        "error": "errorMessage",
        "raw_stop_reason": "rawStopReason",
        "response_id": "responseId",
        "call_id": "toolCallId",
        "tool_name": "toolName",
        "is_error": "isError",
        "duration_ms": "durationMs",
        "custom_type": "customType",
        "exit_code": "exitCode",
        "full_output": "fullOutputPath",
        "exclude_from_context": "excludeFromContext",
    },
):
    """A message that session files hold."""


class UserMessage(_StoredMessage, frozen=True, kw_only=True, tag="user"):
    """The user's words."""

    content: tuple[UserContent, ...]
    at_ms: int


class AssistantMessage(_StoredMessage, frozen=True, kw_only=True, tag="assistant"):
    """One answer of a model."""

    content: tuple[AssistantContent, ...]
    api: str
    provider: str
    model: str
    """Without the provider: `provider/model` is the full name."""
    usage: Usage = msgspec.field(default_factory=Usage)
    stop_reason: StopReason
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


class ToolResultMessage(_StoredMessage, frozen=True, kw_only=True, tag="toolResult"):
    """Result of a tool call, with `content` for the model and `details` for the front end."""

    content: tuple[UserContent, ...]
    call_id: ToolCallId
    tool_name: str
    is_error: bool = always(default=False)
    details: JsonValue = None
    duration_ms: Count | None = None
    """None: the tool did not run."""
    unfinished: Unfinished | None = None
    """None: the call was done, well or with an error."""
    at_ms: int


class CustomMessage(_StoredMessage, frozen=True, kw_only=True, tag="custom"):
    """Words that an extension or hook adds; the model reads them as the user's."""

    content: tuple[UserContent, ...]
    custom_type: str
    display: bool = always(default=True)
    details: JsonValue = None
    at_ms: int


class BashMessage(_StoredMessage, frozen=True, kw_only=True, tag="bashExecution"):
    """A command that the user ran; the model reads it unless it is excluded."""

    command: str
    output: str
    cancelled: bool = always(default=False)
    truncated: bool = always(default=False)
    exit_code: int | None = None
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


class PartialAnswer:
    """The words and thoughts that have come so far.

    Tool calls are left out on purpose: a call that was not finished is never executed, and one without
    a result would make the next request invalid.
    """

    def __init__(self) -> None:
        self._kinds: list[type[Text | Thinking]] = []
        self._pieces: list[list[str]] = []

    def text(self, piece: str) -> None:
        """Append words."""
        self._append(Text, piece)

    def thinking(self, piece: str) -> None:
        """Append a thought."""
        self._append(Thinking, piece)

    def content(self) -> tuple[AssistantContent, ...]:
        """Return the content so far; parts of only white space are dropped."""
        whole = (
            (kind, "".join(part)) for kind, part in zip(self._kinds, self._pieces, strict=True)
        )
        return tuple(kind(text=text) for kind, text in whole if text.strip())

    def _append(self, kind: type[Text] | type[Thinking], piece: str) -> None:
        if not self._kinds or self._kinds[-1] is not kind:
            self._kinds.append(kind)
            self._pieces.append([])
        self._pieces[-1].append(piece)


_NOTHING = Usage()


def total_usage(parts: Iterable[Usage]) -> Usage:
    """Return what `Usage.plus` makes of all parts, one after the other: whole sessions are added up at their opening."""
    used = [one for one in parts if one != _NOTHING]
    costs = [one.cost for one in used if one.cost is not None]
    if any(one.cost is None and one.total for one in used):
        return reduce(Usage.plus, used, _NOTHING)
    return Usage(
        input=sum(one.input for one in used),
        output=sum(one.output for one in used),
        cache_read=sum(one.cache_read for one in used),
        cache_write=sum(one.cache_write for one in used),
        reasoning=sum(one.reasoning for one in used),
        cost=_total_cost(costs) if costs else None,
    )


def _total_cost(costs: list[Cost]) -> Cost:
    # `sum` of later Python versions rounds in another way than adding one by one.
    return Cost(
        input=reduce(add, [one.input for one in costs]),
        output=reduce(add, [one.output for one in costs]),
        cache_read=reduce(add, [one.cache_read for one in costs]),
        cache_write=reduce(add, [one.cache_write for one in costs]),
    )
