"""Also before the agent is loaded the log holds no secret of the environment, and nobody waits for that."""

import io
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.process.logs import EarlyLog, RedactedLog, hide_early, hide_in_log

ROOT = Path(__file__).resolve().parents[2]
HELD = "held-Value-" + "8c1e5d3f9b"
log = logging.getLogger("tests.early")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    root, text = logging.getLogger(), io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)


def environment() -> Mapping[str, str]:
    return {"LAB_TOKEN": HELD, "HOME": "/home/me"}


def unknown() -> NoReturn:
    raise RuntimeError(f"no environment, {HELD}")


def test_a_secret_of_the_environment_is_taken_out_of_lines_and_tracebacks(
    written: io.StringIO,
) -> None:
    hide_early(environment)
    log.error("started in %s with %r", "/home/me", {"apiKey": HELD})
    log.error("it failed", exc_info=ValueError(HELD))
    first, *others = written.getvalue().splitlines()
    assert first == "ERROR: started in /home/me with {'apiKey': '[redacted:secret]'}"
    assert others[-1] == "ValueError: [redacted:secret]"


@pytest.mark.parametrize("environment", [unknown, lambda: None])
def test_what_cannot_be_looked_through_is_withheld(
    environment: Callable[[], Mapping[str, str]],
    written: io.StringIO,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hide_early(environment)
    log.error("it is %s", HELD)
    assert written.getvalue() == (
        "(a log line that cannot be looked through for secrets, of tests.early)\n"
    )
    assert capsys.readouterr().err == ""


def test_the_agent_takes_its_place_once_it_is_loaded(written: io.StringIO) -> None:
    hide_early(unknown)
    hide_in_log(Redactor((HELD,)))
    formatter = logging.getLogger().handlers[-1].formatter
    assert isinstance(formatter, RedactedLog)
    assert not isinstance(formatter.inner, EarlyLog)
    log.error("it is %s", HELD)
    assert written.getvalue() == "ERROR: it is [redacted:secret]\n"


def test_a_start_that_logs_nothing_loads_nothing_for_it() -> None:
    code = (
        "import logging, sys; logging.basicConfig()\n"
        "from tiller_server.process.logs import hide_early\n"
        "hide_early(dict)\n"
        "print([name for name in sys.modules if name.endswith('.redaction')])\n"
    )
    argv = [sys.executable, "-c", code]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
