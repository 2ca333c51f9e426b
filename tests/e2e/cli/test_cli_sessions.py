"""Sessions that commands left behind, as `tiller sessions` shows them in a shell and on a terminal."""

import json

import pytest

from tests.e2e.chat.test_cli_chat import chat, leave
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.pty_screen import terminal
from tests.support.programs.terminal import in_terminal, shell, tiller

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


def test_what_was_run_is_listed_found_shown_copied_and_removed(ground: Ground) -> None:
    ground.provider.script(
        [calls(("bash", {"command": "echo 会话"}), text="I look."), says("The parser is whole.")]
    )
    assert tiller(ground, "run", "Fix the parser").code == 0
    ground.provider.script([says("Nothing to do.")])
    assert tiller(ground, "run", "Say hello").code == 0

    listed = tiller(ground, "sessions")
    assert [line.rsplit("  ", 1)[1].strip() for line in listed.out.splitlines()] == [
        "Say hello",
        "Fix the parser",
    ]
    number, short = listed.out.splitlines()[1].split()[:2]

    found = tiller(ground, "sessions", "search", "会话", "pars")
    assert found.out.splitlines()[0].startswith(short)

    shown = tiller(ground, "sessions", "show", number)
    assert shown.out.splitlines()[2:] == [
        "",
        "> Fix the parser",
        "",
        "I look.",
        "▸ bash echo 会话",
        "",
        "The parser is whole.",
    ]
    drawn = tiller(ground, "sessions", "tree", short)
    assert drawn.out.splitlines()[-1].endswith("The parser is whole. ← here")

    copied = shell(
        ground,
        f"$TILLER sessions export {short} --format jsonl > copy.jsonl && $TILLER sessions import copy.jsonl",
    )
    assert copied.code == 0
    assert len(ground.sessions()) == 3
    removed = tiller(ground, "sessions", "rm", "--yes", short)
    assert removed.out.endswith(" was removed\n")
    left = json.loads(tiller(ground, "sessions", "list", "--json").out)["sessions"]
    assert sorted(one["preview"] for one in left) == ["Fix the parser", "Say hello"]


def test_colours_are_for_terminals_that_want_them(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    assert tiller(ground, "run", "Fix it").code == 0
    plain = {"TERM": "xterm", "NO_COLOR": "1"}
    assert "\x1b" not in in_terminal(ground, "sessions", env=plain)
    assert "\x1b[36m" in in_terminal(ground, "sessions", env={"TERM": "xterm"})
    assert "\x1b" not in tiller(ground, "sessions", "search", "fix").out


def test_a_closed_pipe_and_wrong_words_end_quietly(ground: Ground) -> None:
    ground.provider.script([says("Done. " * 5000)])
    assert tiller(ground, "run", "Fix it").code == 0
    ended = shell(ground, "$TILLER sessions | head -0; true")
    assert "Traceback" not in ended.err
    wrong = tiller(ground, "sessions", "shew")
    assert wrong.code == 2
    assert "unknown value 'shew'; did you mean show?" in wrong.err
    unknown = tiller(ground, "sessions", "show", "zz")
    assert unknown.code == 2
    assert unknown.complaint.startswith("tiller sessions: no session's id begins or ends with 'zz'")


@pytest.mark.parametrize("verb", ["list", "show", "tree", "search", "export", "import", "rm"])
def test_every_verb_has_help_with_an_example(ground: Ground, verb: str) -> None:
    told = tiller(ground, "sessions", verb, "--help")
    assert told.code == 0
    assert f"example: tiller sessions {verb} " in told.out


def test_what_a_session_changed_is_shown_and_taken_by_git(ground: Ground) -> None:
    before = {"a.txt": "one\r\ntwo", "b.txt": "x\n"}
    for name, text in before.items():
        ground.file(name, text)
    edits = [
        ("edit", {"path": "a.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
        ("write", {"path": "n w.txt", "content": "new\n"}),
    ]
    ground.provider.script([calls(("read", {"path": "a.txt"})), calls(*edits), says("Done.")])
    assert tiller(ground, "run", "Fix it").code == 0
    short = tiller(ground, "sessions").out.split()[0]

    shown = tiller(ground, "sessions", "diff", short).out.splitlines()
    assert "diff --git a/a.txt b/a.txt" in shown
    assert "-two" in shown
    assert "+new" in shown

    after = {name: (ground.root / name).read_bytes() for name in ("a.txt", "b.txt", "n w.txt")}
    assert after["a.txt"] == b"one\r\n2"
    (ground.root / "n w.txt").unlink()
    for name, text in before.items():
        ground.file(name, text)
    applied = shell(
        ground, f"$TILLER sessions diff {short} --output c.patch && git apply c.patch && rm c.patch"
    )
    assert applied.code == 0, applied
    assert {name: (ground.root / name).read_bytes() for name in after} == after
    taken_back = shell(ground, f"$TILLER sessions diff {short} --patch | git apply -R")
    assert taken_back.code == 0, taken_back
    assert (ground.root / "a.txt").read_bytes() == before["a.txt"].encode()


def test_a_session_that_changed_nothing_has_no_diff(ground: Ground) -> None:
    ground.provider.script([says("Done.")])
    assert tiller(ground, "run", "Fix it").code == 0
    short = tiller(ground, "sessions").out.split()[0]
    shown = tiller(ground, "sessions", "diff", short)
    assert (shown.code, shown.out) == (0, "")
    assert "changed no files" in shown.err


def test_the_title_of_the_model_is_shown_below_the_line_and_stored(ground: Ground) -> None:
    ground.configure(titles="auto")
    ground.provider.script([says("They are rounded."), says('"Totals of invoices."')])
    with chat(ground) as window:
        window.line("round the totals")
        _ = window.until("They are rounded.")
        _ = window.until("Totals of invoices")
        assert leave(window) == 0
    assert "Totals of invoices" in tiller(ground, "sessions", "list").out


def test_a_row_of_the_list_fits_into_80_columns(ground: Ground) -> None:
    title = "A title that is much longer than the room that a row of the list has"
    ground.provider.script([says("Yes.")])
    assert tiller(ground, "run", title).code == 0
    with terminal(ground, ["sessions", "list"], columns=80, lines=30) as window:
        assert window.end() == 0
    (row,) = [line for line in window.whole.splitlines() if "messages" in line]
    assert "A title that is much" in row
    assert len(row) <= 80
