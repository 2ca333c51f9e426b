"""What goes wrong is told without the secrets that were in it: in the log, and when nothing else can tell it."""

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from agent_core.kernel import RunId
from agent_core.kernel.ids import mark_run
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.process.logs import RedactedLog, hide_in_log

ROOT = Path(__file__).resolve().parents[2]
HELD = "held-Value-" + "8c1e5d3f9b"
CRASH = """
import logging, sys, threading
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.process.logs import log_crashes
from tiller_server.process.logs import hide_in_log
logging.basicConfig()
hide_in_log(Redactor(("held-Value-" + "8c1e5d3f9b",)))
log_crashes()

def fall():
    raise ValueError("the provider said: held-Value-" + "8c1e5d3f9b")

class Falls:
    def __del__(self):
        fall()

%s
"""


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root, text = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(text)
    root.addHandler(handler)
    hide_in_log(Redactor((HELD,)))
    yield text
    root.removeHandler(handler)


def in_run(*marks: str) -> None:
    mark_run(RunId("r1"), *marks)
    logging.getLogger("x").error("the disk is full", exc_info=ValueError("it broke"))


def test_a_line_names_the_run_that_it_belongs_to(written: io.StringIO) -> None:
    logging.getLogger("x").error("before")
    copy_context().run(in_run)
    copy_context().run(in_run, "4bf92f")
    lines = written.getvalue().splitlines()
    assert lines[0] == "before"
    assert "the disk is full [run r1]" in lines
    assert "the disk is full [run r1 trace 4bf92f]" in lines


@pytest.mark.parametrize(
    "way", ["message", "argument", "traceback", "cause", "group", "extra text"]
)
def test_no_way_into_the_log_carries_a_secret(way: str, written: io.StringIO) -> None:
    log = logging.getLogger("tests.way")
    error: Exception = ValueError(f"status 401: {HELD}")
    match way:
        case "message":
            log.error(f"bad key {HELD}")  # noqa: G004 - a careless call is the point
        case "argument":
            log.error("bad key %s in %r", HELD, {"Authorization": f"Bearer {HELD}"})
        case "cause":
            error = RuntimeError("outer")
            error.__cause__ = ValueError(HELD)
        case "group":
            error = ExceptionGroup("several", [ValueError(HELD), KeyError(HELD)])
        case "extra text":
            error.add_note(f"sent: {HELD}")
        case _:
            pass
    if way not in {"message", "argument"}:
        log.error("it failed", exc_info=error)
    assert "[redacted:" in written.getvalue()
    assert HELD not in written.getvalue()


def test_orders_to_a_terminal_are_written_out(written: io.StringIO) -> None:
    name = b"\xff\x1b[2J".decode("utf-8", "surrogateescape")
    logging.getLogger("tests.way").error("read %s", name, exc_info=ValueError("\x1b]0;mine\x07"))
    assert written.getvalue() == ("read \\udcff<U+001B>[2J\nValueError: <U+001B>]0;mine<U+0007>\n")


def test_a_wrong_call_still_gives_a_line(written: io.StringIO) -> None:
    logging.getLogger("tests.way").error("%d", HELD)
    assert written.getvalue() == "(a log line that cannot be put together, of tests.way)\n"


def test_hiding_again_takes_the_new_redactor_alone() -> None:
    handler = logging.StreamHandler(io.StringIO())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        hide_in_log(Redactor())
        hide_in_log(Redactor((HELD,)))
        assert isinstance(handler.formatter, RedactedLog)
        assert not isinstance(handler.formatter.inner, RedactedLog)
    finally:
        root.removeHandler(handler)


@pytest.mark.parametrize(
    "fall",
    ["fall()", "t = threading.Thread(target=fall); t.start(); t.join()", "Falls()"],
    ids=["program", "thread", "finalizer"],
)
def test_a_crash_tells_no_secret(fall: str) -> None:
    argv = [sys.executable, "-c", CRASH % fall]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    assert "ValueError: the provider said: [redacted:secret]" in ended.stderr
    assert HELD not in ended.stderr + ended.stdout
