"""Builds the message of an answer from a provider's stream, with its tokens and their price."""

from decimal import Decimal
from secrets import token_hex

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue, ToolCallId, json
from agent_core.kernel.errors import ProviderError
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    Cost,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from agent_core.providers.model import (
    ModelInfo,
    Prices,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)

MOST_TOKENS = 10**12
MOST_DOLLARS = 1e6
"""More than these one answer never had: a figure above is nonsense, and sums of it would not stay finite."""
TICKS_PER_DOLLAR = 10**10
"""The unit in which xAI bills."""


def count(value: JsonValue) -> int:
    """Read a count; a value that is not a number or is not plausible counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    # Infinity and what is no number fall out here as well.
    return int(value) if 0 < value <= MOST_TOKENS else 0


def billed(usage: JsonObject) -> float | None:
    """Read what was billed for an answer, in US dollars; None when the provider does not tell.

    Gateways bill a key of the user's own too, apart from what the maker of the model bills it.
    """
    ticks = _number_in(usage.get("cost_in_usd_ticks"))
    if ticks:
        return ticks / TICKS_PER_DOLLAR
    cost = usage.get("cost")
    if json.is_object(cost):
        cost = cost.get("total_cost")
    dollars = _dollars(cost)
    upstream = _dollars(json.as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    if dollars is None or upstream is None or usage.get("is_byok") is not True:
        return dollars
    return dollars + upstream


def _dollars(value: JsonValue) -> float | None:
    amount = _number_in(value)
    return amount if amount is not None and amount <= MOST_DOLLARS else None


def _number_in(value: JsonValue) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer may be longer than any float.
    return float(value) if 0 <= value <= MOST_DOLLARS * TICKS_PER_DOLLAR else None


PER_MILLION = Decimal(1_000_000)
LONG_WRITE = 2
"""Writing to a cache that is kept for an hour costs twice the plain input, wherever a price for it is known."""


def priced(
    usage: Usage, prices: Prices | None, *, long_writes: int = 0, billed: float | None = None
) -> Usage:
    """Return the usage with its cost; unknown prices leave it unknown.

    Args:
        usage: Tokens that the provider counted.
        prices: List prices of the model; None: unknown.
        long_writes: Tokens written to the cache for an hour, if the provider reports them.
        billed: Amount that the provider reports as billed, in US dollars. It is then the cost, divided among the
            kinds of token in proportion to the list prices; without list prices all of it is under `output`.
    """
    listed = None if prices is None else _listed(usage, prices, long_writes)
    if billed is not None:
        return replace(usage, cost=_shared(Decimal(str(billed)), listed))
    if listed is None:
        return usage
    fresh, output, read, written = (float(part) for part in listed)
    return replace(
        usage, cost=Cost(input=fresh, output=output, cache_read=read, cache_write=written)
    )


def _listed(
    usage: Usage, prices: Prices, long_writes: int
) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    prices = _in_force(usage, prices)
    long_writes = min(max(long_writes, 0), usage.cache_write)
    short = _amount(usage.cache_write - long_writes, prices.cache_write)
    return (
        _amount(usage.input, prices.input),
        _amount(usage.output, prices.output),
        _amount(usage.cache_read, prices.cache_read),
        short + _amount(long_writes, prices.input) * LONG_WRITE,
    )


def _in_force(usage: Usage, prices: Prices) -> Prices:
    size = usage.input + usage.cache_read + usage.cache_write
    above = [tier for tier in prices.tiers if size > tier.input_above]
    return max(above, key=lambda tier: tier.input_above).prices if above else prices


def _amount(tokens: int, rate: float) -> Decimal:
    # Through the text of the number: a rate of 0.1 is meant, not the nearest binary fraction.
    return tokens * Decimal(str(rate)) / PER_MILLION


def _shared(billed: Decimal, listed: tuple[Decimal, Decimal, Decimal, Decimal] | None) -> Cost:
    whole = sum(listed) if listed else Decimal(0)
    if not listed or not whole:
        return Cost(output=float(billed))
    fresh, _, read, written = (float(part / whole * billed) for part in listed)
    # The sum of the kinds is the bill: what rounding left over goes with the answer.
    output = float(billed) - fresh - read - written
    return Cost(input=fresh, output=max(output, 0.0), cache_read=read, cache_write=written)


RAW_SHOWN = 4_000
"""Characters of malformed arguments that the model is shown again."""


class OpenText(Struct):
    """Words that may still grow."""

    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str | None = None


class OpenThinking(Struct):
    """A thought that may still grow."""

    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str | None = None
    redacted: bool = False


class OpenCall(Struct):
    """A tool call that may still grow."""

    index: int
    id: str = ""
    name: str = ""
    pieces: list[str] = msgspec.field(default_factory=list[str])
    signature: str | None = None
    announced: bool = False


OpenBlock = OpenText | OpenThinking | OpenCall


class MessageBuilder:
    """Collects blocks in source order and merges what was said between two calls of `take`."""

    def __init__(self, model: ModelInfo) -> None:
        self._model = model
        self._blocks: list[OpenBlock] = []
        self._calls = 0
        self._parts: list[StreamEvent] = []
        self._growing: OpenBlock | None = None
        self._grown: list[str] = []

    @property
    def last(self) -> OpenBlock | None:
        """The block that was opened last."""
        return self._blocks[-1] if self._blocks else None

    @property
    def has_calls(self) -> bool:
        """Return whether a tool was asked for."""
        return self._calls > 0

    @property
    def is_empty(self) -> bool:
        """Return whether nothing at all has come."""
        return not any(
            isinstance(block, OpenCall) or block.pieces or block.signature for block in self._blocks
        )

    def open_text(self) -> OpenText:
        """Begin words."""
        block = OpenText()
        self._blocks.append(block)
        return block

    def open_thinking(self) -> OpenThinking:
        """Begin a thought."""
        block = OpenThinking()
        self._blocks.append(block)
        return block

    def open_call(self, *, id: str = "", name: str = "") -> OpenCall:  # noqa: A002 - the word of the trade
        """Begin a tool call; it is announced as soon as its name is known."""
        block = OpenCall(index=self._calls, id=id)
        self._calls += 1
        self._blocks.append(block)
        self.name_call(block, name)
        return block

    def name_call(self, call: OpenCall, name: str) -> None:
        """Learn the name of a call, once; arguments that came before it follow now."""
        if call.announced or not name:
            return
        call.name = name
        call.announced = True
        self._end_run()
        self._parts.append(ToolCallStart(index=call.index, name=name, id=call.id))
        if call.pieces:
            self._parts.append(ToolCallDelta(index=call.index, text="".join(call.pieces)))

    def grow(self, block: OpenBlock, piece: str) -> None:
        """Append to a block."""
        if not piece:
            return
        block.pieces.append(piece)
        if isinstance(block, OpenCall) and not block.announced:
            return
        if block is not self._growing:
            self._end_run()
            self._growing = block
        self._grown.append(piece)

    def take(self) -> list[StreamEvent]:
        """Return what came since the last time, adjacent deltas of one block as one part."""
        self._end_run()
        parts, self._parts = self._parts, []
        return parts

    def finish(
        self,
        *,
        stop_reason: StopReason,
        raw_stop_reason: str | None,
        usage: Usage,
        response_id: str | None,
        at_ms: int,
    ) -> StreamFinished:
        """Return the whole answer; the usage has its cost.

        Raises:
            ProviderError: A tool call came without a name.
        """
        model = self._model
        message = AssistantMessage(
            content=self._content(),
            api=model.api,
            provider=model.provider,
            model=model.id,
            stop_reason=stop_reason,
            usage=usage,
            raw_stop_reason=raw_stop_reason,
            response_id=response_id,
            at_ms=at_ms,
        )
        return StreamFinished(message=message)

    def _end_run(self) -> None:
        block = self._growing
        if block is None:
            return
        text = "".join(self._grown)
        self._growing = None
        self._grown = []
        match block:
            case OpenText():
                self._parts.append(TextDelta(text=text))
            case OpenThinking():
                self._parts.append(ThinkingDelta(text=text))
            case OpenCall(index=index):
                self._parts.append(ToolCallDelta(index=index, text=text))

    def _content(self) -> tuple[AssistantContent, ...]:
        taken: set[str] = set()
        content: list[AssistantContent] = []
        for block in self._blocks:
            text = "".join(block.pieces)
            match block:
                case OpenText(signature=signature):
                    if text or signature:
                        content.append(Text(text=text, signature=signature))
                case OpenThinking(signature=signature, redacted=redacted):
                    if text or signature:
                        content.append(Thinking(text=text, signature=signature, redacted=redacted))
                case OpenCall():
                    content.append(self._call(block, text, taken))
        return tuple(content)

    def _call(self, block: OpenCall, text: str, taken: set[str]) -> ToolCall:
        if not block.name:
            message = f"{self._model.ref} asked for a tool without naming it; try again"
            raise ProviderError(message, reason="protocol", provider=self._model.provider)
        chosen = block.id
        while not chosen or chosen in taken:
            chosen = f"call_{token_hex(12)}"
        taken.add(chosen)
        arguments, error = read_arguments(text)
        return ToolCall(
            id=ToolCallId(chosen),
            name=block.name,
            arguments=arguments,
            arguments_error=error,
            signature=block.signature,
        )


def read_arguments(text: str) -> tuple[JsonObject, str | None]:
    """Read the arguments of a whole tool call: the object, or an empty one and what was wrong.

    No text and `null` mean no arguments. A text that breaks off is never read as what it began to be, and half of a
    character never as another one: the name of a file would be another name.
    """
    if not text.strip():
        return {}, None
    try:
        value = json.decode_exact(text)
    except json.LoneSurrogate as error:
        return {}, f"{error}: {_shown(text)}"
    except (ValueError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON ({error}): {_shown(text)}"
    if value is None:
        return {}, None
    if not json.is_object(value):
        return {}, f"the arguments must be a JSON object: {_shown(text)}"
    return value, None


def without_replaced(answer: StreamFinished) -> StreamFinished:
    """Return an answer whose events held halves of characters, with the calls refused in which one was replaced."""
    content = tuple(
        replace(part, arguments={}, arguments_error=str(json.LoneSurrogate()))
        if isinstance(part, ToolCall) and "\ufffd" in json.encode(part.arguments).decode()
        else part
        for part in answer.message.content
    )
    return replace(answer, message=replace(answer.message, content=content))


def is_whole_object(text: str) -> bool:
    """Return whether a text is a whole JSON object."""
    try:
        return json.is_object(json.decode(text))
    except (ValueError, RecursionError):
        return False


def _shown(text: str) -> str:
    text = text.encode(errors="backslashreplace").decode()
    if len(text) <= RAW_SHOWN:
        return text
    return f"{text[:RAW_SHOWN]}… ({len(text)} characters in all)"
