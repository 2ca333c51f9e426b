"""`tiller run` in a terminal of its own: what a person sees, whatever the window, the model and the keys do."""

import re
import signal
import time

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.harness.sizes import at_size
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import shell, tiller
from tests.support.provider import write_config
from tests.support.session.session_files import checked_entries, runs, said
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]
RUN_WAYS = BOTH_WAYS

COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
CURSOR_HIDDEN, CURSOR_SHOWN = b"\x1b[?25l", b"\x1b[?25h"
PAGE = """# Plan

I found **two** problems:

1. The name `hight` is misspelt.
2. See [the docs](https://example.org/x).

```python
def area(w, h):
    return w * h
```

| file | lines |
|------|-------|
| shape.py | 12 |
"""
REPAIR = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
STEPS = ("bash", {"command": "for i in 1 2 3; do echo step $i; sleep 0.3; done"})


def test_markdown_tools_changes_and_cost_are_shown(ground: Ground) -> None:
    ground.file("shape.py", "area = w * hight\n")
    ground.provider.script(
        [
            {
                "text": PAGE,
                "deltas": 60,
                "delay_s": 0.5,
                "delta_delay_s": 0.005,
                "tool_calls": [_call(STEPS)],
            },
            calls(REPAIR),
            calls(("bash", {"command": "echo bad; exit 3"})),
            says("Done, wörd 木 🦜."),
        ]
    )
    with terminal(ground, ["run", "Repair it."], lines=50) as window:
        assert window.end() == 0
    assert b"waiting for the model" in window.raw
    assert b"step 2" in window.raw
    lines = window.whole.splitlines()
    # The path may be broken at the edge of the window.
    assert "".join(window.whole.split()).startswith(f"lab/min{ground.root}Plan")
    assert [line for line in lines if "#" in line or "**" in line or "```" in line] == []
    for line in (
        "I found two problems:",
        " 1 The name hight is misspelt.",
        " 2 See the docs (https://example.org/x).",
        "    return w * h",
        " shape.py  12",
        "  -area = w * hight",
        "  +area = w * h",
        "✗ $ echo bad; exit 3",
        "  bad",
        "  Command exited with code 3",
        "Done, wörd 木 🦜.",
    ):
        assert line in lines, window.whole
    assert any(re.fullmatch(r"✓ edit shape\.py · \d\.\d s", line) for line in lines), window.whole
    assert any(line.startswith("done · 1 file +1 -1 · ") and "context" in line for line in lines)
    assert window.raw.count(CURSOR_HIDDEN) > 0
    assert window.raw.rindex(CURSOR_SHOWN) > window.raw.rindex(CURSOR_HIDDEN)


def test_the_end_of_what_was_said_does_not_wait_for_more(ground: Ground) -> None:
    ground.provider.script([{"text": "no end yet", "deltas": 2, "stall_forever_after_deltas": 2}])
    with terminal(ground, ["run", "hi"]) as window:
        _ = window.until("no end yet", wait_s=20)
        _ = window.until("writing")
        window.type("\x03")
        assert window.end() == 130
    assert "no end yet" in window.whole
    assert "cancelled" in window.whole


@pytest.mark.parametrize(("columns", "lines"), [(20, 6), (5, 3), (1, 1), (200, 60)])
def test_every_window_is_good_enough(ground: Ground, columns: int, lines: int) -> None:
    ground.provider.script(
        [
            {"text": PAGE, "deltas": 40, "delta_delay_s": 0.005, "tool_calls": [_call(STEPS)]},
            says("The last words."),
        ]
    )
    with terminal(ground, ["run", "hi"], columns=columns, lines=lines) as window:
        assert window.end() == 0
    shown = "".join(window.whole.split())
    assert "Traceback" not in shown
    assert "Thelastwords." in shown
    # Where every word is broken, a line that scrolled away may stand there twice.
    assert shown.count("Ifoundtwoproblems") == 1 or columns < 20


def test_a_window_that_changes_meanwhile_ends_with_everything_said(ground: Ground) -> None:
    ground.provider.script([{"text": PAGE * 3, "deltas": 200, "delta_delay_s": 0.01}])
    with terminal(ground, ["run", "hi"], columns=100, lines=30) as window:
        for columns, lines in ((40, 10), (120, 40), (60, 12)):
            _ = window.until("writing")
            window.resize(columns, lines)
        assert window.end() == 0
    assert "done ·" in window.whole


@pytest.mark.parametrize(
    ("env", "colours", "moves"),
    [({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_colours_and_what_moves_are_each_there_only_where_they_can_be(
    ground: Ground, env: dict[str, str], colours: bool, moves: bool
) -> None:
    ground.provider.script([{"text": PAGE, "deltas": 30, "delta_delay_s": 0.01}])
    with terminal(ground, ["run", "hi"], env=env) as window:
        assert window.end() == 0
    assert bool(COLOUR.search(bytes(window.raw))) is colours
    assert (CURSOR_HIDDEN in window.raw) is moves


def test_ctrl_c_once_settles_and_twice_leaves_at_once_with_the_cursor_shown(ground: Ground) -> None:
    stubborn = ("bash", {"command": "trap '' TERM INT; echo deaf; while :; do sleep 1; done"})
    ground.provider.script([calls(stubborn)])
    with terminal(ground, ["run", "resist"]) as window:
        _ = window.until("deaf")
        children = processes_with(
            "sleep", "1", below=ground.runs_below or window.process.pid, at_least=1
        )
        window.type("\x03")
        _ = window.until("once more leaves at once")
        begun = time.monotonic()
        window.type("\x03")
        assert window.end() in (130, -signal.SIGINT)
        took_s = time.monotonic() - begun
    print(f"the second Ctrl-C left after {took_s * 1000:.0f} ms")
    assert wait_gone(children, timeout_s=2) == set()
    assert window.raw.rindex(CURSOR_SHOWN) > window.raw.rindex(CURSOR_HIDDEN)


def test_a_terminal_that_goes_away_leaves_no_process_and_a_whole_session(ground: Ground) -> None:
    ground.provider.script([{"text": "word " * 2000, "deltas": 2000, "delta_delay_s": 0.005}])
    with terminal(ground, ["run", "hi"]) as window:
        _ = window.until("word word")
        process = window.process
        window.hang_up()
        assert process.wait(20) != 0
    _ = checked_entries(*ground.sessions())
    ground.provider.script([says("here again")])
    assert tiller(ground, "run", "--continue", "go on").out == "here again\n"


def test_a_question_is_asked_above_nothing_that_moves(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    touch = ("bash", {"command": "touch made"})
    script = [calls(touch), says("did it"), calls(touch), says("did not")]
    ground.provider.script([*script, calls(touch), says("did it")])
    for key, made in (("y", True), ("n", False), ("yes", True)):
        (ground.root / "made").unlink(missing_ok=True)
        with terminal(ground, ["run", "touch it"]) as window:
            _ = window.until("[y] Allow once")
            _ = window.until(lambda picture: picture.endswith("?"))
            window.line(key)
            assert window.end() == 0
        assert (ground.root / "made").exists() is made


def test_what_is_typed_before_a_question_is_no_answer_to_it(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    touch = calls(("bash", {"command": "touch made"}))
    ground.provider.script([{**touch, "delay_s": 1.0}, says("did not")])
    with terminal(ground, ["run", "touch it"]) as window:
        _ = window.until("lab/m in")
        window.line("y")
        _ = window.until("[y] Allow once")
        window.line("n")
        assert window.end() == 0
    assert not (ground.root / "made").exists()


def test_y_at_the_question_of_trust_trusts_and_what_is_unclear_is_asked_again(
    ground: Ground,
) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="ask")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("did it")])
    with terminal(ground, ["run", "touch it"]) as window:
        _ = window.until("[y] Trust this folder")
        window.line("t")
        _ = window.until("'t' is not an answer. Type y, s, n or never.")
        window.line("y")
        assert window.end() == 0
    assert (ground.root / "made").exists()


def test_a_question_that_nobody_answers_ends_with_its_time(ground: Ground) -> None:
    ground.configure(
        permission={"mode": "ask", "timeoutS": 1}, sandbox="off", defaultProjectTrust="always"
    )
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("went on")])
    with terminal(ground, ["run", "touch it"]) as window:
        _ = window.until("[y] Allow once")
        assert window.end() == 0
    assert "went on" in window.whole
    assert not (ground.root / "made").exists()


def test_ten_megabytes_of_words_are_shown_to_the_last(ground: Ground) -> None:
    size = at_size(ci=1_000_000, campaign=10_000_000)
    line = "some words that are said again and again\n"
    text = (line * 40 + "\n") * (size // (len(line) * 40))
    ground.provider.script([{"text": f"{text}The end.", "deltas": 2_000}])
    begun = time.monotonic()
    with terminal(ground, ["run", "hi"]) as window:
        assert window.drain() == 0
    took_s = time.monotonic() - begun
    print(f"{len(text) / 1e6:.1f} MB of words on a terminal: {took_s:.1f} s")
    assert b"The end." in window.raw


def test_ten_megabytes_through_a_pipe_come_whole(ground: Ground) -> None:
    size = at_size(ci=2_000_000, campaign=10_000_000)
    text = "0123456789 wörd\n" * (size // 17)
    ground.provider.script([{"text": text, "deltas": 2_000}])
    begun = time.monotonic()
    ran = shell(ground, "$TILLER run hi")
    print(f"{len(text.encode()) / 1e6:.1f} MB through a pipe: {time.monotonic() - begun:.1f} s")
    assert (ran.code, ran.out == text) == (0, True)


@pytest.mark.parametrize("way", ["2>/dev/null", "2>side"])
def test_words_alone_go_to_a_file_while_the_terminal_shows_the_rest(
    ground: Ground, way: str
) -> None:
    ground.provider.script([says("# Words\n\nalone")])
    ran = shell(ground, f"$TILLER run hi {way}")
    assert (ran.code, ran.out) == (0, "# Words\n\nalone\n")


def test_sessions_are_forked_and_named(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("three")])
    first = tiller(ground, "run", "--json", "--name", "The  first", "begin").lines[0]["id"]
    fork = tiller(ground, "run", "--json", "--continue", "--fork", "--name", "Copy", "more")
    assert fork.code == 0
    assert fork.lines[0]["id"] != first
    assert tiller(ground, "run", "--session", first, "--fork", "again").code == 0
    heard = [said(checked_entries(path)) for path in ground.sessions()]
    assert sorted(heard) == [["begin"], ["begin", "again"], ["begin", "more"]]
    listed = tiller(ground, "sessions", "list", "--json").out
    assert "The first" in listed
    assert "Copy" in listed
    nothing = tiller(ground, "run", "--fork", "hi")
    assert (nothing.code, "--fork needs a session" in nothing.complaint) == (2, True)
    assert runs(checked_entries(ground.sessions()[0]))[-1][1] == "completed"


def test_money_ends_a_run_within_one_turn_with_what_was_done_so_far(ground: Ground) -> None:
    price = {"cost": {"input": 10.0, "output": 10.0, "cacheRead": 1.0, "cacheWrite": 1.0}}
    write_config(ground.dirs.config, ground.provider, model=price)
    look = ("ls", {"path": "."})
    ground.provider.script([calls(look, text=f"Step {at}.") for at in range(9)])
    ran = tiller(ground, "run", "--json", "--budget-usd", "0.1", "Look around.")
    ended = next(event for event in ran.lines if event["type"] == "run.ended")
    assert (ran.code, ended["status"]) == (4, "budget")
    spent = ended["cost"]["amount"]
    each = spent / len(ground.provider.requests)
    print(f"budget 0.1 USD: {spent:.4f} spent in {len(ground.provider.requests)} turns")
    assert 0.1 <= spent <= 0.1 + each
    assert said(checked_entries(*ground.sessions()), "assistant")[-1].startswith("Step")


def test_minutes_end_a_run_whose_turn_hangs(ground: Ground) -> None:
    ground.provider.script([{"text": "half", "deltas": 2, "stall_forever_after_deltas": 1}])
    begun = time.monotonic()
    ran = tiller(ground, "run", "--max-minutes", "0.01", "hi")
    took_s = time.monotonic() - begun
    print(f"0.01 minutes and a stalled stream: ended after {took_s:.1f} s")
    assert ran.code == 4
    assert "budgets.minutes" in ran.err
    assert took_s < 15


def _call(named: tuple[str, dict]) -> dict:
    return {"name": named[0], "arguments": named[1]}
