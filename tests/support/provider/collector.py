"""An OTLP receiver on loopback: decodes what it is sent, answers as a test says, and is slow or silent on request."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint
from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span as it came."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    is_error: bool
    why: str


@dataclass(kw_only=True)
class Received:
    """What came so far."""

    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, list[HistogramDataPoint]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    resources: list[Mapping[str, Any]] = field(default_factory=list)
    requests: list[Mapping[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


class Collector:
    """A receiver; a context manager that ends it.

    Args:
        status: The status of every answer.
        hangs: Read requests and answer none until the end.
    """

    def __init__(self, *, status: int = 200, hangs: bool = False) -> None:
        self.got = Received()
        self.status = status
        self._over = threading.Event()
        if not hangs:
            self._over.set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector._take(self.path, dict(self.headers.items()), body)
                collector._over.wait()
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            @override
            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, without the path of a signal."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> Sequence[Span]:
        """All spans so far, by their start."""
        return sorted(self.got.spans, key=lambda span: (span.start_ns, -span.end_ns))

    def named(self, name: str) -> Span:
        """Return the only span of a name."""
        (span,) = [one for one in self.got.spans if one.name == name]
        return span

    def _take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.got.requests.append(headers)
        self.got.bodies.append(body)
        if path == "/v1/traces":
            self._take_spans(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self._take_metrics(ExportMetricsServiceRequest.FromString(body))
        else:
            raise ValueError(path)

    def _take_spans(self, request: ExportTraceServiceRequest) -> None:
        for resource in request.resource_spans:
            self.got.resources.append(_attributes(resource.resource.attributes))
            self.got.spans.extend(
                Span(
                    name=span.name,
                    kind=span.kind,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    start_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    attributes=_attributes(span.attributes),
                    is_error=span.status.code == span.status.STATUS_CODE_ERROR,
                    why=span.status.message,
                )
                for scope in resource.scope_spans
                for span in scope.spans
            )

    def _take_metrics(self, request: ExportMetricsServiceRequest) -> None:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    # They are cumulative: the newest request has everything.
                    self.got.metrics[metric.name] = [*metric.histogram.data_points]
                    self.got.units[metric.name] = metric.unit


def attributes_of(point: HistogramDataPoint) -> Mapping[str, Any]:
    """Return the attributes of a point of a metric."""
    return _attributes(point.attributes)


def _attributes(pairs: Sequence[KeyValue]) -> Mapping[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)
