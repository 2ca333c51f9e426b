"""Crash reports in the log, where secrets are removed."""

import logging
import sys
import threading
from types import TracebackType

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
