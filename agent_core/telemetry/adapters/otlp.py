"""Sends spans and metrics with the libraries of OpenTelemetry, which are loaded in the thread that sends: they are large.

Nothing is installed globally: a program that uses this library has a provider of its own. Spans are made of records, not
by a tracer, because their ids are needed before the libraries are loaded, and nothing of them runs on the event loop.
"""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.telemetry.names import HISTOGRAMS
from agent_core.telemetry.queue import Exporter, ExportFailed
from agent_core.telemetry.values import Attributes, Measurement, SpanRecord, TraceContext

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.metrics import Histogram
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

SCOPE: Final = "tiller"
CHATTY: Final = ("opentelemetry.", "urllib3.")
"""Loggers that report each failure; ours is reported once."""


def open_exporter(endpoint: str | None, *, version: str, redactor: TextRedactor) -> Exporter:
    """Load the libraries and create an exporter. Blocking.

    Args:
        endpoint: Address of the collector, without the path of a signal; None: as the variables OTEL_EXPORTER_OTLP_* say.
        version: Version of Tiller.
        redactor: Removes secrets from attributes.

    Raises:
        ImportError: The libraries are not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - in this thread
        OTLPMetricExporter,
    )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - as above
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - as above

    base = None if endpoint is None else endpoint.rstrip("/")
    return OtlpExporter(
        OTLPSpanExporter(endpoint=None if base is None else f"{base}/v1/traces"),
        OTLPMetricExporter(endpoint=None if base is None else f"{base}/v1/metrics"),
        where=base or "the collector that the variables OTEL_EXPORTER_OTLP_* name",
        resource=Resource.create({"service.name": SCOPE, "service.version": version}),
        version=version,
        redactor=redactor,
    )


class OtlpExporter:
    """Adapter from records to the exporters of the library. Used by one thread."""

    def __init__(
        self,
        spans: "OTLPSpanExporter",
        metrics: "OTLPMetricExporter",
        *,
        where: str,
        resource: "Resource",
        version: str,
        redactor: TextRedactor,
    ) -> None:
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - in this thread
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415 - as above
        from opentelemetry.sdk.util.instrumentation import (  # noqa: PLC0415 - as above
            InstrumentationScope,
        )

        self._spans = spans
        self._metrics = metrics
        self._where = where
        self._resource = resource
        self._scope = InstrumentationScope(SCOPE, version)
        self._redactor = redactor
        self._reader = InMemoryMetricReader()
        provider = MeterProvider([self._reader], resource=resource, shutdown_on_exit=False)
        self._provider = provider
        meter = provider.get_meter(SCOPE, version)
        self._histograms: dict[str, Histogram] = {
            name: meter.create_histogram(
                name, unit=unit, explicit_bucket_boundaries_advisory=boundaries
            )
            for name, (unit, boundaries) in HISTOGRAMS.items()
        }
        self._mute = _MutedThread(threading.get_ident())
        self._mute.install()

    def send_spans(self, spans: Sequence[SpanRecord]) -> None:
        """Send spans."""
        from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - loaded by now

        result = self._spans.export([self._span(one) for one in spans])
        if result is not SpanExportResult.SUCCESS:
            raise self._failure()

    def measure(self, measurement: Measurement) -> None:
        """Add values to a metric."""
        histogram = self._histograms[measurement.metric]
        attributes = self._clean(measurement.attributes)
        for value in measurement.values:
            histogram.record(value, attributes=attributes)

    def send_metrics(self) -> None:
        """Send all metrics."""
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415 - loaded by now

        data = self._reader.get_metrics_data()
        if data is None:
            return
        result = self._metrics.export(data)  # pyright: ignore[reportUnknownMemberType] - its keywords have no types
        if result is not MetricExportResult.SUCCESS:
            raise self._failure()

    def _failure(self) -> ExportFailed:
        return ExportFailed(f"{self._where}: {self._mute.last}")

    def close(self) -> None:
        """Close connections."""
        self._provider.shutdown()
        self._spans.shutdown()
        self._metrics.shutdown()  # pyright: ignore[reportUnknownMemberType] - as above
        self._mute.remove()

    def _span(self, record: SpanRecord) -> "ReadableSpan":
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - loaded by now
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - loaded by now

        content: Attributes = {} if record.content is None else record.content()
        status = Status()
        if record.error is not None:
            status = Status(StatusCode.ERROR, self._redactor.text(record.error) or None)
        return ReadableSpan(
            name=self._redactor.text(record.name),
            context=_context(record.context, is_remote=False),
            # What is above may be in another process; nobody reads the difference.
            parent=None if record.parent is None else _context(record.parent, is_remote=False),
            resource=self._resource,
            attributes={**self._clean(record.attributes), **content},
            kind=SpanKind.CLIENT if record.kind == "client" else SpanKind.INTERNAL,
            status=status,
            start_time=record.start_ns,
            end_time=record.end_ns,
            instrumentation_scope=self._scope,
        )

    def _clean(self, attributes: Attributes) -> Attributes:
        return {
            name: self._redactor.text(value) if isinstance(value, str) else value
            for name, value in attributes.items()
        }


def _context(context: TraceContext, *, is_remote: bool) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415 - loaded by now

    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(
        trace_id=context.trace_id,
        span_id=context.span_id,
        is_remote=is_remote,
        trace_flags=flags,
    )


class _MutedThread(logging.Filter):
    """Withholds what the libraries log in one thread, and keeps the last of it. Other threads log as before."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self.last = "the collector did not take it"
        self._thread = thread

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.last = record.getMessage()
        return False

    def install(self) -> None:
        """Add the filter to all loggers of the libraries: a logger does not ask those above it."""
        for logger in self._loggers():
            logger.addFilter(self)

    def remove(self) -> None:
        """Remove it."""
        for logger in self._loggers():
            logger.removeFilter(self)

    def _loggers(self) -> Sequence[logging.Logger]:
        names = tuple(logging.root.manager.loggerDict)
        return [logging.getLogger(name) for name in names if name.startswith(CHATTY)]
