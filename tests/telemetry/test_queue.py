"""The queue never waits for a collector: what does not fit or is not taken is counted, and reported once."""

import logging
import threading
from collections.abc import Sequence

import pytest
from typing_extensions import override

from agent_core.telemetry.queue import BATCH, LIMIT, ExportFailed, TelemetryQueue
from agent_core.telemetry.values import Measurement, SpanRecord, new_trace


def span(number: int = 0) -> SpanRecord:
    return SpanRecord(
        name=f"s{number}", context=new_trace(), parent=None, start_ns=1, end_ns=2, attributes={}
    )


class Sink:
    """Takes spans, or fails, or waits until it is released."""

    def __init__(self, *, fails: str = "", is_held: bool = False) -> None:
        self.batches: list[Sequence[SpanRecord]] = []
        self.measured: list[Measurement] = []
        self.metrics_sent = 0
        self.is_closed = False
        self.fails = fails
        self.entered = threading.Event()
        self.released = threading.Event()
        if not is_held:
            self.released.set()

    def send_spans(self, spans: Sequence[SpanRecord]) -> None:
        self.entered.set()
        self.released.wait()
        if self.fails:
            raise ExportFailed(self.fails)
        self.batches.append(spans)

    def measure(self, measurement: Measurement) -> None:
        self.measured.append(measurement)

    def send_metrics(self) -> None:
        self.metrics_sent += 1

    def close(self) -> None:
        self.is_closed = True


def test_closing_sends_what_waits() -> None:
    sink = Sink()
    queue = TelemetryQueue(lambda: sink)
    for number in range(3):
        queue.put(span(number))
    queue.put(Measurement(metric="m", values=(1.0,)))
    queue.close()
    assert [one.name for batch in sink.batches for one in batch] == ["s0", "s1", "s2"]
    assert (len(sink.measured), sink.metrics_sent, sink.is_closed) == (1, 1, True)
    assert (queue.sent, queue.dropped, queue.waiting) == (3, 0, 0)


def test_a_queue_without_records_has_no_thread() -> None:
    queue = TelemetryQueue(Sink)
    queue.close()
    queue.put(span())
    assert queue.dropped == 1
    assert not any(one.name == "tiller-telemetry" for one in threading.enumerate())


def test_a_full_queue_drops_without_waiting_and_reports_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Sink(is_held=True)
    queue = TelemetryQueue(lambda: sink, delay_s=0)
    queue.put(span())
    sink.entered.wait()
    # Nothing is taken before the sink is released: one that waited would wait without end.
    for number in range(LIMIT + 500):
        queue.put(span(number))
    assert (queue.waiting, queue.dropped) == (LIMIT, 500)
    sink.released.set()
    queue.close()
    assert queue.sent == LIMIT + 1
    assert max(map(len, sink.batches)) <= BATCH
    assert [one.message for one in caplog.records] == [
        "telemetry is lost, which is reported only once: the queue is full"
    ]


def test_a_collector_that_fails_costs_what_it_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(fails="code: 500")
    queue = TelemetryQueue(lambda: sink, delay_s=0)
    for number in range(10):
        queue.put(span(number))
    queue.close()
    assert (queue.sent, queue.dropped) == (0, 10)
    assert [one.message for one in caplog.records] == [
        "telemetry is lost, which is reported only once: code: 500"
    ]


def test_a_collector_that_hangs_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(is_held=True)
    queue = TelemetryQueue(lambda: sink, delay_s=0)
    queue.put(span())
    sink.entered.wait()
    queue.put(span())
    queue.close(within_s=0.05)
    # It has returned, and the collector has not.
    assert not sink.released.is_set()
    assert sink.batches == []
    assert queue.dropped == 2
    assert "the collector does not answer" in caplog.text
    sink.released.set()


def test_an_exporter_that_cannot_be_made_costs_what_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def wrong() -> Sink:
        raise ValueError("unsupported compression 'zip'")

    queue = TelemetryQueue(wrong)
    queue.put(span())
    queue.put(span())
    queue.close()
    assert queue.dropped == 2
    assert "unsupported compression 'zip'" in caplog.text


def test_a_measurement_that_cannot_be_added_ends_nothing() -> None:
    class Picky(Sink):
        @override
        def measure(self, measurement: Measurement) -> None:
            raise KeyError(measurement.metric)

    sink = Picky()
    queue = TelemetryQueue(lambda: sink)
    queue.put(Measurement(metric="odd", values=(1.0,)))
    queue.put(span())
    queue.close()
    assert (queue.sent, queue.dropped) == (1, 1)


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def missing() -> Sink:
        raise ImportError("No module named 'opentelemetry'")

    queue = TelemetryQueue(missing)
    queue.put(span())
    queue.close()
    assert queue.dropped == 1
    assert "pip install 'tillerd[otel]'" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING
