"""Tasks in the terminal: `tiller run` waits for them, and `/tasks` shows and stops them."""

import re

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

CTRL_D = "\x04"
LOOK = {"description": "find it", "prompt": "CHILD: look", "preset": "explore", "background": True}
SCRIPT = (
    {**calls(("task", LOOK)), "when": "go"},
    {**calls(("read", {"path": "a.txt"})), "when": "CHILD"},
    {**says("It says hello."), "when": "hello", "delay_s": 0.2},
    {**says("I wait."), "when": "in the background"},
    {**says("All done: hello."), "when": "Its report"},
)


def test_a_run_ends_when_its_background_tasks_have_reported(ground: Ground) -> None:
    ground.file("a.txt", "hello\n")
    ground.provider.script(SCRIPT)
    ran = tiller(ground, "run", "go")
    assert ran.code == 0
    assert ran.out == "All done: hello.\n"
    assert "t1 (find it) works in the background\n" in ran.err
    assert "t1 (find it) completed (2 answers, 1 tool call, " in ran.err
    # No list names the session of a task, and it goes with the one that gave it.
    (session,) = ground.sessions()
    assert len([*ground.dirs.data.glob("sessions-of-tasks/*/*.jsonl")]) == 1
    removed = tiller(ground, "sessions", "rm", "--yes", session.stem.rpartition("_")[2])
    assert removed.code == 0
    assert [*ground.dirs.data.glob("sessions*/*/*.jsonl")] == []


def test_tasks_are_shown_and_stopped_in_a_chat(ground: Ground) -> None:
    stuck = {**says("never"), "when": "CHILD", "stall_forever_after_deltas": 0}
    ground.provider.script([SCRIPT[0], stuck, SCRIPT[3], {**says("Pity."), "when": "was stopped"}])
    with terminal(ground, [], columns=80, lines=40) as window:
        _ = window.until("/help shows")
        window.line("go")
        _ = window.until("I wait.")
        window.line("/tasks")
        _ = window.until(
            lambda picture: bool(
                re.search(r"t1  find it · (queued|running)\n    0 answers", picture)
            )
        )
        window.line("/tasks stop t1")
        _ = window.until("t1  find it · cancelled")
        # The model is told of it, and answers.
        _ = window.until("Pity.")
        window.line("/tasks stop t9")
        _ = window.until("There is no task 't9'; there are: t1.")
        window.type(CTRL_D)
        assert window.end() == 0
