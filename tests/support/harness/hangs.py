"""Ends what stands still: a test over its limit fails alone, and a run in which nothing happens ends with its stacks.

Three limits, one inside the other:

1. pytest-timeout raises in the test at its limit;
2. where that cannot be, as the interpreter is stuck in a call, the process is ended `GRACE_S` later with all its stacks,
   and xdist fails that test and goes on with another worker;
3. where no test runs and none begins for `STILL_S`, every worker prints its stacks and the run ends as if interrupted.
"""

import faulthandler
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType
from typing import Any, Final, TextIO, final

import psutil
import pytest

GRACE_S: Final = 15.0
STILL_S: Final = 120.0
COLLECTING_S: Final = 900.0
SHOWING_S: Final = 2.0
ENDING_S: Final = 60.0
STUCK: Final = 70
"""Exit code of a run that could not even be interrupted."""
_LATER_S: Final = 0.01
_SHOW: Final = signal.SIGUSR1


@final
class Limits:
    """Limits 1 and 2, in the process that runs the tests.

    Args:
        grace_s: How much later the second limit is.
    """

    def __init__(self, *, grace_s: float = GRACE_S) -> None:
        self._grace_s = grace_s
        self._ends_at_s = math.inf
        """When the second limit of the present test is reached, on the monotonic clock."""
        # What pytest captures would hide the stacks: the stream is kept from before.
        self._stacks: TextIO = os.fdopen(os.dup(2), "w")
        faulthandler.register(_SHOW, file=self._stacks, all_threads=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_timeout_set_timer(
        self, item: pytest.Item, settings: Any
    ) -> Generator[None, Any, Any]:
        """Add the second limit to the first, and raise never in the middle of coverage's own lock."""
        done = yield
        if settings.timeout:
            self._ends_at_s = time.monotonic() + settings.timeout + self._grace_s
            self._begin()
            _spare_coverage(signal.getsignal(signal.SIGALRM))
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_exception_interact(self) -> Generator[None, Any, Any]:
        """Set the second limit again, which pytest takes back at a failure: fixtures may wait for the test that hung."""
        done = yield
        if self._ends_at_s < math.inf:
            self._begin()
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """Take the second limit back when the fixtures have ended, too."""
        try:
            return (yield)
        finally:
            self._ends_at_s = math.inf
            faulthandler.cancel_dump_traceback_later()

    def _begin(self) -> None:
        left_s = max(self._grace_s, self._ends_at_s - time.monotonic())
        faulthandler.dump_traceback_later(left_s, exit=True, file=self._stacks)


def _spare_coverage(handler: object) -> None:
    """Put off an alarm that comes while coverage holds its lock, which would stay taken for ever."""
    if not callable(handler):
        return
    raising: Callable[[int, FrameType | None], object] = handler

    def put_off(number: int, frame: FrameType | None) -> None:
        if frame is not None and Path(frame.f_code.co_filename).parent.name == "coverage":
            signal.setitimer(signal.ITIMER_REAL, _LATER_S)
        else:
            raising(number, frame)

    signal.signal(signal.SIGALRM, put_off)


@final
class Stillness:
    """Limit 3, in the process that gives the tests out.

    Args:
        workers: Gives the processes that run tests now.
        still_s: How long nothing may happen.
        collecting_s: The same before the first test.
    """

    def __init__(
        self,
        workers: Callable[[], list[int]],
        *,
        still_s: float = STILL_S,
        collecting_s: float = COLLECTING_S,
    ) -> None:
        self._workers = workers
        self._still_s = still_s
        self._since = time.monotonic() + max(0.0, collecting_s - still_s)
        self._running: set[str] = set()
        self._over = threading.Event()

    def pytest_sessionstart(self) -> None:
        """Begin to watch."""
        # What is started in the background may have been told to ignore interrupts.
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=self._watch, name="stillness", daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test began: limits 1 and 2 are with it now."""
        self._running.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note that a test ended."""
        self._ended(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a worker died of a test: xdist reports that with `???`, and without an end."""
        if report.when not in {"setup", "call", "teardown"}:
            self._ended(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Print the exit code of a worker that died; xdist names its test only."""
        if error:
            try:
                state = f"exited with code {node.gateway._io.popen.wait(SHOWING_S)}"
            except subprocess.TimeoutExpired:
                state = "still runs, but its connection is closed"
            _say(f"the process of worker {node.gateway.id} {state}")

    def _ended(self, node_id: str) -> None:
        self._running.discard(node_id)
        self._since = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """End the watch, before others use their time at the end."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self._still_s / 4)):
            if not self._running and time.monotonic() - self._since > self._still_s:
                self._end()
                return

    def _end(self) -> None:
        _say(f"no test has run for {self._still_s:g} s: the run is ended")
        for pid in self._workers():
            os.kill(pid, _SHOW)
        if self._over.wait(SHOWING_S):
            return
        # As Ctrl-C does: what failed so far is printed.
        os.kill(os.getpid(), signal.SIGINT)
        if not self._over.wait(ENDING_S):
            os._exit(STUCK)


def register(config: pytest.Config, *, is_worker: bool) -> None:
    """Add the limits to a run; `is_worker` where another process gives the tests out."""
    runs_tests = is_worker or not config.getoption("numprocesses", None)
    if runs_tests:
        config.pluginmanager.register(Limits(), "hangs-limits")
    if not is_worker:
        here = psutil.Process()
        workers = (
            (lambda: [here.pid])
            if runs_tests
            else (lambda: [child.pid for child in here.children()])
        )
        config.pluginmanager.register(Stillness(workers), "hangs-stillness")


def _say(words: str) -> None:
    os.write(2, f"\n{words}\n".encode())
