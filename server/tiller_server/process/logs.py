"""Logs of a process: without secrets, and with its last words when it crashes."""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from typing_extensions import override

_log = logging.getLogger(__name__)


def log_crashes() -> None:
    """Log uncaught exceptions of the program and its threads: on standard error they would reveal secrets."""
    sys.excepthook = _log_crash
    threading.excepthook = _log_thread_crash
    sys.unraisablehook = _log_unraisable


def _log_crash(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    _log.critical("ended by an error nobody expected", exc_info=(kind, error, trace))


def _log_thread_crash(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_value is not None:
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)


def _log_unraisable(crash: "sys.UnraisableHookArgs") -> None:
    if crash.exc_value is not None:
        _log_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)


class LogRedactor(Protocol):
    """Remover of secrets from texts; never raises. The redactor itself is too expensive to import with this module."""

    def text(self, text: str, /) -> str:
        """Return a text without secrets."""
        ...


class RedactedLog(logging.Formatter):
    """Writes records as another formatter does, tracebacks included, without secrets and with nothing hidden."""

    def __init__(self, inner: logging.Formatter, redactor: LogRedactor) -> None:
        super().__init__()
        self.inner = inner
        self._redactor = redactor

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return a line in every case: a record that cannot be formatted would go to standard error in full."""
        try:
            line = self.inner.format(record)
        except Exception:  # noqa: BLE001 - a wrong log call must not stop what it tells of
            line = f"(a log line that cannot be put together, of {record.name})"
        from agent_core.kernel.ids import marked_run  # noqa: PLC0415 - loaded with the first record, as below
        from agent_core.kernel.text import readable  # noqa: PLC0415 - as above

        if (marked := marked_run()) is not None:
            run, trace = marked
            first, end, rest = line.partition("\n")
            line = f"{first} [run {run}{f' trace {trace}' if trace else ''}]{end}{rest}"

        # Tracebacks hold what others wrote, which may be orders to the terminal that shows the log.
        return readable(self._redactor.text(line))


class EarlyLog(logging.Formatter):
    """Redacts the secrets of the environment until the agent, which knows of more secrets, is loaded.

    The redactor is loaded with the first record: most starts have none, and an editor waits for its answer.
    """

    def __init__(
        self, inner: logging.Formatter, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        super().__init__()
        self.inner = inner
        self._environment = environment
        self._redacted: RedactedLog | None = None

    @override
    def format(self, record: logging.LogRecord) -> str:
        """Return a line in every case: a record that cannot be searched for secrets is withheld."""
        try:
            if self._redacted is None:
                self._redacted = RedactedLog(self.inner, self._loaded())
            return self._redacted.format(record)
        except Exception:  # noqa: BLE001 - logging would write the record as it is to standard error
            return f"(a log line that cannot be looked through for secrets, of {record.name})"

    def _loaded(self) -> LogRedactor:
        from agent_core.kernel.redaction.redactor import Redactor  # noqa: PLC0415 - see above

        redactor = Redactor()
        redactor.hold_environment(self._environment())
        return redactor


def hide_early(environment: Callable[[], Mapping[str, str]]) -> None:
    """Install on every log handler a remover of the environment's secrets, until `hide_in_log` replaces it."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(EarlyLog(_inner(handler), environment))


def hide_in_log(redactor: LogRedactor) -> None:
    """Install a redactor on every log handler, in place of an earlier one."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(RedactedLog(_inner(handler), redactor))


def _inner(handler: logging.Handler) -> logging.Formatter:
    formatter = handler.formatter or logging.Formatter()
    return formatter.inner if isinstance(formatter, RedactedLog | EarlyLog) else formatter
