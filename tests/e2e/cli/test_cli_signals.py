"""Ctrl-C and SIGTERM in a terminal: the run is settled and told, nothing is left behind, and a second one leaves at once."""

import signal
import time
from dataclasses import replace

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.harness.isolation import COVERAGE_VARIABLE
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.terminal import Ran, running, tiller
from tests.support.session.session_files import checked_entries, messages, runs
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
RUN_WAYS = BOTH_WAYS

SLEEP = ("bash", {"command": "sleep 600 & sleep 600"})
STUBBORN = ("bash", {"command": "trap '' TERM INT; echo deaf; while :; do sleep 1; done"})
PYTHON_NOT_STARTED = ("Could not import runpy", "Fatal Python error: init")
BY_SIGNAL = (130, -signal.SIGINT)
"""What a shell calls 130: exited with it, or ended by the signal when nothing was left to settle."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_settles_the_run_and_leaves_no_process(
    ground: Ground, number: signal.Signals, code: int
) -> None:
    ground.provider.script([calls(SLEEP), says("never said")])
    with running(ground, ["run", "--json", "sleep"]) as command:
        command.until("tool.running")
        sleepers = processes_with(
            "sleep", "600", below=ground.runs_below or command.pid, at_least=2
        )
        begun = time.monotonic()
        command.send(number)
        ran = command.end()
        took_s = time.monotonic() - begun
    print(f"{number.name}: settled and left after {took_s * 1000:.0f} ms")
    assert ran.code == code
    assert "Traceback" not in ran.err
    assert wait_gone(sleepers, timeout_s=2) == set()
    assert _ends(ran) == ["cancelled"]
    assert [event["type"] for event in ran.lines][-3:] == [
        *("run.ended", "session.state", "result")
    ]
    assert (ran.lines[-1]["status"], ran.lines[-1]["text"]) == ("cancelled", "")
    entries = checked_entries(*ground.sessions())
    assert runs(entries)[-1][1] == "cancelled"
    assert len(messages(entries, "toolResult")) == 1
    ground.provider.script([says("awake again")])
    assert tiller(ground, "run", "--continue", "go on").out == "awake again\n"


def test_a_signal_ends_a_stream_that_has_stalled_and_keeps_what_was_said(ground: Ground) -> None:
    ground.provider.script([{"text": "half a word", "deltas": 2, "stall_forever_after_deltas": 1}])
    with running(ground, ["run", "--json", "talk"]) as command:
        command.until("message.delta")
        command.send(signal.SIGINT)
        ran = command.end()
    assert ran.code == 130
    assert _ends(ran) == ["cancelled"]
    assert messages(checked_entries(*ground.sessions()), "assistant")[-1]["stopReason"] == "aborted"
    assert len(ground.provider.wait_gone(1)) == 1


def test_the_second_ctrl_c_leaves_at_once_and_the_session_can_still_be_used(
    ground: Ground,
) -> None:
    ground.provider.script([calls(STUBBORN)])
    with running(ground, ["run", "--json", "resist"]) as command:
        command.until("tool.output.delta", "deaf")
        children = processes_with("sleep", "1", below=ground.runs_below or command.pid, at_least=1)
        command.send(signal.SIGINT)
        command.told("stopping")
        begun = time.monotonic()
        command.send(signal.SIGINT)
        ran = command.end()
        took_s = time.monotonic() - begun
    print(f"second SIGINT: left after {took_s * 1000:.0f} ms")
    assert ran.code in BY_SIGNAL
    assert took_s < 1
    assert "Traceback" not in ran.err
    assert wait_gone(children, timeout_s=2) == set()
    ground.provider.script([says("never mind")])
    assert tiller(ground, "run", "--continue", "go on").out == "never mind\n"
    assert len(messages(checked_entries(*ground.sessions()), "toolResult")) == 1


@pytest.mark.parametrize("after_ms", [50, 150, 300, 450, 600])
def test_a_signal_while_it_starts_ends_it_without_a_traceback(
    ground: Ground, after_ms: int
) -> None:
    ground.provider.script([{"text": "x", "stall_forever_after_deltas": 1, "repeat": -1}])
    ran = _interrupted(ground, after_ms)
    while _came_too_early(ran):
        after_ms += 50
        ran = _interrupted(ground, after_ms)
    assert ran.code in BY_SIGNAL
    # What the signal hits of Python's own search for the command is reported in Python's own way.
    assert "Traceback" not in ran.err or "server/tiller_server/cli" not in ran.err
    for file in ground.sessions():
        assert runs(checked_entries(file))[-1][1] == "cancelled"


def _interrupted(ground: Ground, after_ms: int) -> Ran:
    # Coverage's own start swallows every exception, an interrupt too: it must not be there.
    env = {name: value for name, value in ground.env.items() if name != COVERAGE_VARIABLE}
    with running(replace(ground, env=env), ["run", "--json", "talk"]) as command:
        # Any moment is as good as another: what is tested is that none of them is bad.
        time.sleep(after_ms / 1000)
        command.send(signal.SIGINT)
        return command.end()


def _came_too_early(ran: Ran) -> bool:
    """Tell whether it was Python itself that had not started: on a busy machine that takes a while."""
    return ran.code == 1 and any(word in ran.err for word in PYTHON_NOT_STARTED)


def _ends(ran: Ran) -> list[str]:
    return [event["status"] for event in ran.lines if event["type"] == "run.ended"]
