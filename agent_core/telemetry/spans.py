"""Spans that have not ended, and what makes records of them when they end."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from agent_core.kernel import Clock
from agent_core.telemetry import names
from agent_core.telemetry.queue import Record
from agent_core.telemetry.values import (
    Attributes,
    AttributeValue,
    Measurement,
    SpanKind,
    SpanRecord,
    TraceContext,
    new_trace,
)


class OpenSpan(Struct, kw_only=True):
    """A span that has not ended."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None
    start_ns: int
    begun_s: float
    attributes: dict[str, AttributeValue]


class TelemetryPort(Protocol):
    """Receiver of records; must not wait."""

    def put(self, record: Record, /) -> None:
        """Accept a record."""
        ...


class SpanTimer(Struct, kw_only=True):
    """Times for spans: wall time once, monotonic time after that, so that children lie inside their parents."""

    clock: Clock
    zero_ns: int = 0
    zero_s: float = 0.0

    def reset(self) -> None:
        """Read the wall time again: it may have been corrected."""
        self.zero_ns, self.zero_s = self.clock.now_ms() * 1_000_000, self.clock.monotonic_s()

    def at_ns(self, monotonic_s: float) -> int:
        """Return Unix nanoseconds."""
        return self.zero_ns + round((monotonic_s - self.zero_s) * 1e9)


class SpanRecorder(Struct, kw_only=True):
    """Begins spans, and passes them on when they end."""

    port: TelemetryPort
    clock: Clock
    timer: SpanTimer

    def begin(
        self,
        name: str,
        attributes: Attributes,
        *,
        parent: TraceContext | None,
        kind: SpanKind = "internal",
    ) -> OpenSpan:
        """Return a span that begins now; without a parent it begins a trace."""
        if not self.timer.zero_ns:
            self.timer.reset()
        now_s = self.clock.monotonic_s()
        return OpenSpan(
            name=name,
            kind=kind,
            context=new_trace() if parent is None else parent.child(),
            parent=parent,
            start_ns=self.timer.at_ns(now_s),
            begun_s=now_s,
            attributes=dict(attributes),
        )

    def end(
        self,
        span: OpenSpan,
        *,
        error: str = "",
        error_type: str | None = None,
        duration_s: float | None = None,
        content: Callable[[], Attributes] | None = None,
    ) -> float:
        """Hand on a span that ends now, or ended after `duration_s` seconds; return how long it took."""
        took_s = self.clock.monotonic_s() - span.begun_s
        if duration_s is not None:
            took_s = min(took_s, duration_s)
        if error_type is not None:
            span.attributes[names.ERROR_TYPE] = error_type
        if span.context.is_sampled:
            record = SpanRecord(
                name=span.name,
                kind=span.kind,
                context=span.context,
                parent=span.parent,
                start_ns=span.start_ns,
                end_ns=span.start_ns + round(took_s * 1e9),
                attributes=span.attributes,
                error=None if error_type is None else error,
                content=content,
            )
            self.port.put(record)
        return took_s

    def measure(
        self,
        metric: str,
        *values: float,
        attributes: Attributes,
        error_type: str | None = None,
    ) -> None:
        """Pass on values of a metric."""
        failure: Attributes = {} if error_type is None else {names.ERROR_TYPE: error_type}
        self.port.put(
            Measurement(metric=metric, values=values, attributes={**attributes, **failure})
        )
