"""`tiller chat` at 80 columns: a plan is revised and approved, two tasks work side by side, one is merged, undone and discarded."""

import re
from pathlib import Path

import pytest

from tests.e2e.chat.test_cli_chat import leave
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.pty_screen import Terminal, terminal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

GREETINGS = """def morning(name):
    return f"good morning, {name}"


def noon(name):
    return f"good day, {name}"


def evening(name):
    return f"good evening, {name}"
"""
USES = "from greet import evening, morning\n\nprint(morning('Ada'))\nprint(evening('Ada'))\n"
FIRST = "# Greet louder\n\n1. Put the three greetings into upper case."
SECOND = """# Greet louder

1. Find out who greets.
2. Put `morning` and `evening` into upper case, in a worktree.
3. `noon` stays as it is."""
FOUND = """`app.py` greets twice:

- `app.py:3` in the morning
- `app.py:4` in the evening

Nobody calls `noon`."""
LOOK = {
    "description": "Find who greets",
    "prompt": "LOOK who calls greet.py",
    "preset": "explore",
    "background": True,
}
WRITE = {
    "description": "Shout in the morning",
    "prompt": "WRITE the greetings in upper case",
    "isolation": "worktree",
    "background": True,
}
EDITS = [
    {"oldText": f"good {when},", "newText": f"GOOD {when.upper()},"}
    for when in ("morning", "evening")
]
PLANNING = [
    calls(("plan", {"markdown": FIRST})),
    says("Shall I do it like this?"),
    calls(("plan", {"markdown": SECOND})),
    says("Now noon stays, and we look first."),
]
WORKING = [
    {**calls(("task", LOOK), ("task", WRITE), text="I give both parts away."), "when": "I approve"},
    {**calls(("grep", {"pattern": "greet|morning|evening"})), "when": "LOOK who"},
    {**calls(("edit", {"path": "greet.py", "edits": EDITS})), "when": "WRITE the"},
    {**says(FOUND), "when": "app.py", "delay_s": 1},
    {**says("`morning` and `evening` shout now."), "when": "Success", "delay_s": 2},
    {**says("Both tasks work."), "when": "in the background"},
    *[{**says("I have the report."), "when": "Report of Tiller"}] * 2,
]
SHOUTED = GREETINGS.replace("good morning", "GOOD MORNING").replace("good evening", "GOOD EVENING")


def test_a_plan_is_revised_and_given_to_two_tasks_whose_changes_are_merged_undone_and_discarded(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    path = ground.file("greet.py", GREETINGS)
    _ = ground.file("app.py", USES)
    ground.commit()
    ground.provider.script(PLANNING)
    with terminal(ground, ["chat"], columns=80, lines=30) as window:
        _ = window.until("permission ask")
        window.line("/permission plan")
        _ = window.until("Permission mode plan: read only.")
        window.line("Plan how to greet louder.")
        shown = window.until("Shall I do it like this?")
        # The plan is written as Markdown, and its answer is one command away.
        assert " 1 Put the three greetings into upper case." in shown
        assert "The plan waits for your answer: /plan, or /plan TEXT to have it changed." in shown
        _ = window.until("done ·")
        window.line("/plan Leave noon alone, and look first who greets.")
        assert " 3 noon stays as it is." in window.until("Now noon stays, and we look first.")
        _ = window.until(lambda picture: picture.count("done ·") == 2)
        ground.provider.script(WORKING)
        window.line("/plan")
        _ = window.until("Carry out revision 2 of the plan?")
        window.line("1")
        _ = window.until("Both tasks work.")
        look, write = "t1", "t2"
        window.line("/tasks")
        for id_, task in ((look, LOOK), (write, WRITE)):
            row = re.compile(rf"{id_}  {task['description']} · (queued|running)")
            _ = window.until(lambda picture, row=row: row.search(picture) is not None)
        _ = window.until(f"{look} ({LOOK['description']}) completed (2 answers, 1 tool call, ")
        _ = window.until(f"{write} ({WRITE['description']}) completed (2 answers, 1 tool call, ")
        _ = window.until(f"{write} left changes in a worktree: /tasks diff {write}, /tasks merge")
        _ = window.until(lambda _: window.whole.count("I have the report.") == 2)
        assert f"{look} left changes" not in window.whole
        assert path.read_text("utf-8") == GREETINGS
        merge_and_discard(window, path, write)
        assert leave(window) == 0
    assert path.read_text("utf-8") == GREETINGS
    assert max(map(len, window.whole.split("\n"))) <= 80


def merge_and_discard(window: Terminal, path: Path, id_: str) -> None:
    """Look at the changes of a task, merge them, take that back, and remove its worktree."""
    window.line(f"/tasks diff {id_}")
    _ = window.until('+    return f"GOOD EVENING, {name}"')
    window.line(f"/tasks discard {id_}")
    _ = window.until("discard it with force, which keeps them under refs/tiller/kept/")
    for times in (1, 2):
        window.line(f"/tasks merge {id_}")
        _ = window.until(lambda _, n=times: window.whole.count(f"Merged {id_}: greet.py.") == n)
        assert path.read_text("utf-8") == SHOUTED
        window.line("/undo")
        _ = window.until(lambda _, n=times: window.whole.count("Restored: greet.py") == n)
        assert path.read_text("utf-8") == GREETINGS
    window.line(f"/tasks discard {id_} force")
    _ = window.until(f"Removed the worktree of {id_}; refs/tiller/kept/{id_}-")
    window.line(f"/tasks merge {id_}")
    _ = window.until(f"task {id_} has no worktree")
