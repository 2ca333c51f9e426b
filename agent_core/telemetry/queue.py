"""The bounded queue between what happens and the thread that sends it: putting never waits, and what does not fit is counted."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final, Protocol

from agent_core.telemetry.values import Measurement, SpanRecord

LIMIT: Final = 2048
"""Records that may wait; later ones are dropped."""
BATCH: Final = 512
"""Spans of one request."""
DELAY_S: Final = 5.0
"""How long a record waits for others."""
METRICS_S: Final = 60.0
"""How often metrics are sent, and at the end."""
CLOSE_S: Final = 2.0
"""How long closing waits for the answer to one request; the time since it was sent counts."""
LOAD_S: Final = 10.0
"""How long closing waits at most: for the libraries, which only compute, and for all requests."""
LOOK_AGAIN_S: Final = 0.02

Record = SpanRecord | Measurement

log = logging.getLogger(__name__)


class ExportFailed(Exception):
    """The collector did not take what it was sent; the text tells why."""


class Exporter(Protocol):
    """Sends records. Used by one thread only; its methods may block."""

    def send_spans(self, spans: Sequence[SpanRecord]) -> None:
        """Send spans.

        Raises:
            ExportFailed: The collector did not take them.
        """
        ...

    def measure(self, measurement: Measurement) -> None:
        """Add values to a metric."""
        ...

    def send_metrics(self) -> None:
        """Send all metrics.

        Raises:
            ExportFailed: The collector did not take them.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class TelemetryQueue:
    """Passes records to an exporter in a thread of its own, which begins with the first record."""

    def __init__(self, open_exporter: Callable[[], Exporter], *, delay_s: float = DELAY_S) -> None:
        """Create an empty queue.

        Args:
            open_exporter: Creates the exporter, in the thread; raises `ImportError` if a library is missing.
            delay_s: How long a record waits for others.
        """
        self._open_exporter = open_exporter
        self._delay_s = delay_s
        self._records: SimpleQueue[Record | None] = SimpleQueue()
        self._hurry = threading.Event()
        """Set when a batch is full or the queue is being closed."""
        self._thread: threading.Thread | None = None
        self._closing = False
        self._request_s: float | None = None
        """When the present request to the collector began; None: there is none."""
        self.sent = 0
        """Spans that the collector took."""
        self._refused = 0
        """Records that did not fit; written by those who put."""
        self._lost = 0
        """Records that were not taken; written by the thread."""
        self._sending = 0
        self._is_reported = False

    @property
    def waiting(self) -> int:
        """Number of records that wait."""
        return self._records.qsize()

    @property
    def dropped(self) -> int:
        """Number of records that did not fit, or that the collector did not take."""
        return self._refused + self._lost

    def put(self, record: Record) -> None:
        """Add a record. Never waits; a record that does not fit is dropped and counted."""
        waiting = self._records.qsize()
        if self._closing or waiting >= LIMIT:
            self._refused += 1
            self._report("it is closed" if self._closing else "the queue is full")
            return
        self._records.put(record)
        if waiting + 1 >= BATCH:
            self._hurry.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tiller-telemetry", daemon=True)
            self._thread.start()

    def close(self, within_s: float = CLOSE_S) -> None:
        """Send what is left, and end the thread; a request that is not answered in time is given up. Blocking."""
        if self._thread is None or self._closing:
            self._closing = True
            return
        self._closing = True
        self._records.put(None)
        self._hurry.set()
        last_s = monotonic() + LOAD_S
        while self._thread.is_alive():
            self._thread.join(LOOK_AGAIN_S)
            began_s = self._request_s
            until_s = last_s if began_s is None else min(last_s, began_s + within_s)
            if monotonic() >= until_s:
                break
        if self._thread.is_alive():
            # Its end is not waited for, so the thread counts nothing any more that is read.
            self._refused += max(0, self._records.qsize() - 1) + self._sending
            self._report("the collector does not answer")

    def _report(self, why: str) -> None:
        if not self._is_reported:
            self._is_reported = True
            log.warning("telemetry is lost, which is reported only once: %s", why)

    # ------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        try:
            exporter = self._open_exporter()
        except ImportError as error:
            self._discard(f"{error}; install it with pip install 'tillerd[otel]'")
            return
        except Exception as error:  # noqa: BLE001 - a variable of the environment may be wrong
            self._discard(repr(error))
            return
        try:
            self._send_until_closed(exporter)
        finally:
            exporter.close()

    def _discard(self, why: str) -> None:
        """Drop what comes, without end: nothing can be sent."""
        while self._records.get() is not None:
            self._lost += 1
            self._report(why)

    def _send_until_closed(self, exporter: Exporter) -> None:
        is_over, metrics_due_s = False, monotonic() + METRICS_S
        has_metrics = False
        while not is_over:
            try:
                first = self._records.get(
                    timeout=max(0.0, metrics_due_s - monotonic()) if has_metrics else None
                )
            except Empty:
                batch: list[SpanRecord] = []
            else:
                _ = first is not None and self._hurry.wait(self._delay_s)
                self._hurry.clear()
                batch, measured, is_over = self._take(first, exporter)
                has_metrics = has_metrics or measured
            for start in range(0, len(batch), BATCH):
                spans = batch[start : start + BATCH]
                if self._send(partial(exporter.send_spans, spans), count=len(spans)):
                    self.sent += len(spans)
            if has_metrics and (is_over or monotonic() >= metrics_due_s):
                _ = self._send(exporter.send_metrics, count=0)
                has_metrics, metrics_due_s = False, monotonic() + METRICS_S

    def _take(
        self, first: Record | None, exporter: Exporter
    ) -> tuple[list[SpanRecord], bool, bool]:
        """Return the spans that wait, whether there were measurements, and whether the queue is closed."""
        spans: list[SpanRecord] = []
        has_measured, record = False, first
        while record is not None:
            if isinstance(record, SpanRecord):
                spans.append(record)
            else:
                has_measured |= self._send(partial(exporter.measure, record), count=1)
            if len(spans) >= LIMIT:
                break
            try:
                record = self._records.get_nowait()
            except Empty:
                break
        return spans, has_measured, record is None

    def _send(self, send: Callable[[], None], *, count: int) -> bool:
        self._sending, self._request_s = count, monotonic()
        try:
            send()
        except Exception as error:  # noqa: BLE001 - a record that cannot be sent must not end the thread
            self._lost += count
            self._report(str(error) if isinstance(error, ExportFailed) else repr(error))
            return False
        finally:
            self._sending, self._request_s = 0, None
        return True
