"""Values of telemetry: trace contexts, ended spans and measurements."""

import os
import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from agent_core.kernel.values import Value

AttributeValue = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, AttributeValue]
SpanKind = Literal["internal", "client"]

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
SAMPLED: Final = 1


class TraceContext(Value, frozen=True, kw_only=True):
    """The place of a span in a trace, as W3C Trace Context has it."""

    trace_id: int
    span_id: int
    is_sampled: bool = True
    """Whether spans of the trace are sent; a caller may decide that they are not."""

    @property
    def traceparent(self) -> str:
        """The header."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.is_sampled):02x}"

    def child(self) -> "TraceContext":
        """Return the context of a new span below this one."""
        return TraceContext(
            trace_id=self.trace_id, span_id=_random_id(8), is_sampled=self.is_sampled
        )


def new_trace() -> TraceContext:
    """Return the context of the first span of a new trace."""
    return TraceContext(trace_id=_random_id(16), span_id=_random_id(8))


def parse_traceparent(text: str) -> TraceContext | None:
    """Return the context that a caller passes on; None if the text is no valid `traceparent` (W3C Trace Context, 3.2)."""
    found = _TRACEPARENT.fullmatch(text.strip())
    if found is None or found["version"] == "ff":
        return None
    if found["more"] and found["version"] == "00":
        return None
    trace, span = int(found["trace"], 16), int(found["span"], 16)
    if not trace or not span:
        return None
    is_sampled = bool(int(found["flags"], 16) & SAMPLED)
    return TraceContext(trace_id=trace, span_id=span, is_sampled=is_sampled)


def _random_id(size: int) -> int:
    # Zero is no valid id.
    return int.from_bytes(os.urandom(size)) or 1


class SpanRecord(Value, frozen=True, kw_only=True):
    """A span that has ended."""

    name: str
    kind: SpanKind = "internal"
    context: TraceContext
    parent: TraceContext | None
    start_ns: int
    end_ns: int
    attributes: Attributes
    error: str | None = None
    """The reason of a failure in one sentence, perhaps empty; None: it did not fail."""
    content: Callable[[], Attributes] | None = None
    """Makes the attributes with contents of messages; called in the thread that sends. None: they are not wanted."""


class Measurement(Value, frozen=True, kw_only=True):
    """Values of one metric with the same attributes."""

    metric: str
    values: tuple[float, ...]
    attributes: Attributes = msgspec.field(default_factory=dict[str, AttributeValue])
