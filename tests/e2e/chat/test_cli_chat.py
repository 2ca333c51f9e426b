"""`tiller chat` in a terminal: talking, steering, commands, and going from one session to another."""

import json
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.harness.shared import ROOT
from tests.support.programs.pty_screen import Terminal, terminal
from tests.support.programs.terminal import tiller
from tests.support.session.session_files import checked_entries, messages, runs, said
from tests.support.workspace.processes import processes_with, wait_gone

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

EXAMPLES = ROOT / "examples" / "extensions"
CTRL_C, CTRL_D, ESCAPE, UP, TAB = "\x03", "\x04", "\x1b", "\x1b[A", "\t"
SHIFT_TAB = "\x1b[Z"
READY = "permission"
"""Stands in the line below the one that is typed."""
KEYS = 150
"""Pressed one after the other: some of them come while the line before is done."""
TALK = {"text": "There is a lot to say. " * 8, "deltas": 60, "delta_delay_s": 0.04}
STALL = {"text": "half a word", "deltas": 2, "stall_forever_after_deltas": 1}


@contextmanager
def chat(ground: Ground, *arguments: str, **more: Any) -> Generator[Terminal, None, None]:
    """Start a conversation and wait until it can be talked in."""
    with terminal(ground, ["chat", *arguments], columns=100, lines=30, **more) as window:
        _ = window.until(READY)
        yield window


def flowing(picture: str) -> str:
    """Give what is shown as if the terminal had no edge: lines may be cut at a blank, or in a word."""
    return "".join(picture.split())


def leave(window: Terminal) -> int:
    window.type(CTRL_D)
    return window.end()


def test_words_are_answered_and_what_is_typed_meanwhile_steers(ground: Ground) -> None:
    ground.provider.script([TALK, says("Steered.")])
    with chat(ground) as window:
        window.line("Hello there")
        _ = window.until("a lot to say")
        window.type("wait, also")
        _ = window.until("> wait, also")
        window.line(" this")
        _ = window.until("Steered.")
        _ = window.until("done ·")
        assert leave(window) == 0
    lines = window.whole.splitlines()
    assert [line for line in lines if line.startswith("> ")] == [
        "> Hello there",
        "> wait, also this",
    ]
    assert "tiller -r " in "".join(lines)
    assert said(checked_entries(*ground.sessions())) == ["Hello there", "wait, also this"]


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C], ids=["Esc", "Ctrl-C"])
def test_a_key_stops_what_goes_on_and_the_conversation_stays(ground: Ground, key: str) -> None:
    ground.provider.script([STALL, says("back again")])
    with chat(ground) as window:
        window.line("talk")
        _ = window.until("half")
        window.type(key)
        _ = window.until("cancelled")
        window.line("go on")
        _ = window.until("back again")
        assert leave(window) == 0


def test_a_question_is_answered_in_the_same_line(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script(
        [calls(("bash", {"command": f"touch {name}"})) for name in ("one", "two")]
        + [says("That was it.")]
    )
    with chat(ground) as window:
        window.line("touch them")
        _ = window.until("touch one\n")
        _ = window.until("\N{BLACK RIGHT-POINTING TRIANGLE} [n] Reject")
        window.type("\x1b[B")  # after the last row comes the first
        _ = window.until("\N{BLACK RIGHT-POINTING TRIANGLE} [y] Allow once")
        window.line("")
        _ = window.until("touch two\n")
        _ = window.until("\N{BLACK RIGHT-POINTING TRIANGLE} [n] Reject")
        window.line("n")
        _ = window.until("That was it.")
        assert leave(window) == 0
    assert [(ground.root / name).exists() for name in ("one", "two")] == [True, False]


def test_a_half_typed_line_is_no_answer_and_comes_back_after_the_question(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    slow = {**calls(("bash", {"command": "touch one"})), "text": "I look. " * 20, "deltas": 20}
    ground.provider.script([{**slow, "delta_delay_s": 0.05}, says("Both heard.")])
    with chat(ground) as window:
        window.line("touch it")
        _ = window.until("I look.")
        window.type("yes")
        _ = window.until("[n] Reject")
        window.line("")
        _ = window.until("Your text comes back after this: yes")
        window.line("use pnpm instead")
        _ = window.until("Both heard.")
        _ = window.until("> use pnpm instead\n⊘ bash: You rejected this: use pnpm instead\n")
        _ = window.until("\n> yes")
        window.type("\x15")
        assert leave(window) == 0
    assert not (ground.root / "one").exists()
    assert "They said: use pnpm instead" in str(ground.provider.requests[-1]["body"]["messages"])


@pytest.mark.parametrize("answer", ["1", "2", "\x1b[A", "\x1b[A\x1b[A", ""], ids=ascii)
def test_a_dialog_of_an_extension_is_answered_in_the_same_line(ground: Ground, answer: str) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off")
    kept = ground.file("build/out.txt", "x")
    ground.provider.script([calls(("bash", {"command": "rm -rf build"})), says("Over.")])
    gate = EXAMPLES / "permission_gate"
    with chat(ground, "--extension", str(gate)) as window:
        window.line("clean up")
        _ = window.until("permission_gate: This looks dangerous")
        _ = window.until("or type a number; Enter declines")
        _ = window.until("\n▶ Decline\n")
        window.line(answer)
        _ = window.until("Over.")
        assert leave(window) == 0
    # The first row is a yes, and the arrow goes up from the last, which declines.
    assert kept.exists() is (answer not in {"1", "\x1b[A\x1b[A"})


def test_commands_and_views_of_an_extension_are_shown(ground: Ground) -> None:
    with chat(ground, "--extension", str(EXAMPLES / "plan_mode")) as window:
        window.line("/planning")
        picture = window.until("> /planning\n")
        picture = window.until("plan_mode")
        window.line("/key")
        _ = window.until("(plan_mode)")
        window.line("/key f99")
        _ = window.until("no extension offers the key 'f99'")
        assert leave(window) == 0
    assert "/planning" in picture


TITLES = r"""
def extension(api):
    @api.command()
    def window(words, ctx):
        ctx.ui.title(words and f"\x1b]0;{words}\x07\r here")
"""


def test_an_extension_names_the_terminal_until_the_end(ground: Ground) -> None:
    path = ground.file("titles.py", TITLES)
    with chat(ground, "--extension", str(path)) as window:
        window.line("/window first")
        _ = window.until(lambda _: window.screen.title == "]0;first here")
        window.line("/window")
        _ = window.until(lambda _: b"\x1b[23;0t" in window.raw)
        window.line("/window second")
        _ = window.until(lambda _: window.screen.title == "]0;second here")
        assert leave(window) == 0
    assert re.findall(rb"\x1b\[2[23];0t|\x1b\][^\x07]*\x07", bytes(window.raw)) == [
        b"\x1b[22;0t",
        b"\x1b]2;]0;first here\x07",
        b"\x1b[23;0t",
        b"\x1b[22;0t",
        b"\x1b]2;]0;second here\x07",
        b"\x1b[23;0t",
    ]


def test_commands_of_the_user_are_run_and_told_to_the_model_or_not(ground: Ground) -> None:
    ground.provider.script([says("I see.")])
    with chat(ground) as window:
        window.line("!echo for both of us; exit 3")
        _ = window.until("✗ exit code 3")
        window.line("!!echo for me alone")
        _ = window.until("for me alone\n✓")
        window.line("what did I do?")
        _ = window.until("I see.")
        assert leave(window) == 0
    heard = str(ground.provider.requests[-1]["body"]["messages"])
    assert ("for both of us" in heard, "for me alone" in heard) == (True, False)


def test_commands_of_the_conversation_say_and_change_what_holds(ground: Ground) -> None:
    with chat(ground) as window:
        for typed, seen in (
            ("/help", "Ctrl-D"),
            ("/think high", "Thinking: high"),
            ("/think", "Thinking level? (arrows"),
            ("2", "Thinking: minimal"),
            ("/think loud", "unknown level 'loud'"),
            ("/permission plan", "Permission mode plan: read only."),
            ("/permission", "3  auto  as ask, with your allow rules"),
            ("2", "Permission mode ask: asks before risky steps."),
            ("/permission", "Permission mode?"),
            ("plan", "Permission mode plan: read only."),
            ("/tools readonly", "Tools: read, grep, find, ls"),
            ("/name  My  work ", "Title: My work"),
            ("/session", "tool calls"),
            ("/modle", "Did you mean /model?"),
            ("/next", "/next needs a text"),
            ("/stop", "Nothing is running."),
            ("/undo", "Nothing to undo: no run of this session changed a file."),
            ("/diff", "No changes in this session."),
            ("/tree", "No entries yet."),
            ("/export", "nothing to export"),
            ("/reload", "Reloaded "),
            ("/model embedded/repair", "Using embedded/repair"),
        ):
            window.line(typed)
            _ = window.until(seen)
        window.line("/quit")
        assert window.end() == 0
    assert "Traceback" not in window.whole


def test_a_folder_that_is_only_read_is_trusted_later(ground: Ground) -> None:
    ground.configure(permission={"mode": "yolo"}, sandbox="off", defaultProjectTrust="ask")
    _ = ground.file("AGENTS.md", "Speak in verse.\n")
    ground.provider.script([says("One."), says("Two."), says("Three.")])
    with chat(ground) as window:
        window.line("go")
        _ = window.until("[n] Read only for now")
        window.line("n")
        _ = window.until("One.")
        window.line("on")
        _ = window.until("Two.")
        window.line("/trust")
        _ = window.until("Instructions that would count: AGENTS.md.")
        window.line("2")
        _ = window.until("is trusted.")
        window.line("and on")
        _ = window.until("Three.")
        assert leave(window) == 0
    heard = ["in verse" in json.dumps(one["body"]) for one in ground.provider.requests]
    assert heard == [False, False, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_conversation_and_what_goes_on(
    ground: Ground, number: signal.Signals
) -> None:
    ground.provider.script([calls(("bash", {"command": "sleep 600"}))])
    with chat(ground) as window:
        window.line("sleep")
        _ = window.until("sleep 600")
        sleepers = processes_with("sleep", "600", below=window.process.pid, at_least=1)
        window.process.send_signal(number)
        assert window.end() == 143
    assert wait_gone(sleepers, timeout_s=2) == set()
    assert "Traceback" not in window.whole
    assert runs(checked_entries(*ground.sessions()))[-1][1] == "cancelled"


def test_without_a_model_it_says_what_to_do_and_the_first_choice_is_kept(ground: Ground) -> None:
    settings = '{"defaultProjectTrust": "always", "titles": "off"}'
    (ground.dirs.config / "settings.json").write_text(settings)
    lab = f'{{"ollama": {{"baseUrl": "{ground.provider.origin}"}}}}'
    (ground.dirs.config / "models.json").write_text(f'{{"providers": {lab}}}')
    ground.provider.script([says("Hello.")])
    with chat(ground) as window:
        _ = window.until("Ollama, which runs on this machine")
        window.line("1")
        _ = window.until("Using ollama/m for this and new sessions")
        window.line("hello")
        _ = window.until("Hello.")
        assert leave(window) == 0
    with chat(ground) as window:
        assert "No model selected" not in window.until("ollama/m in ")
        assert leave(window) == 0


def test_a_model_is_picked_from_a_list(ground: Ground) -> None:
    with chat(ground) as window:
        window.line("/model")
        picture = window.until("embedded/repair\n")
        number = re.search(r"(\d+)  embedded/repair", picture)
        assert number is not None
        window.line(number[1])
        _ = window.until("Using embedded/repair")
        assert leave(window) == 0


def test_tab_goes_on_with_commands_models_and_files(ground: Ground) -> None:
    (ground.root / "folder").mkdir()
    ground.file("folder/shape.py", "x = 1\n")
    ground.provider.script([says("I read it.")])
    with chat(ground) as window:
        window.type(f"/comp{TAB}")
        _ = window.until("> /compact")
        window.type("\x15")
        window.type(f"see @fol{TAB}")
        _ = window.until("> see @folder/")
        window.type(f"sh{TAB}")
        _ = window.until("> see @folder/shape.py")
        window.line("")
        _ = window.until("I read it.")
        assert leave(window) == 0
    assert "x = 1" in str(ground.provider.requests[-1]["body"]["messages"])


def test_sessions_are_left_begun_found_and_forked(ground: Ground) -> None:
    ground.provider.script([says(f"answer {number}") for number in range(4)])
    with chat(ground, "--name", "First") as window:
        window.line("the very first words")
        _ = window.until("answer 0")
        _ = window.until("done ·")
        window.line("/new")
        _ = window.until("> /new\nlab/m in")
        window.line("other words")
        _ = window.until("answer 1")
        _ = window.until(lambda _: window.whole.count("done ·") == 2)
        window.line("/resume")
        _ = window.until("2 messages  First")
        window.line("nothing like it")
        _ = window.until("contains 'nothing like it'")
        window.line("/resume")
        _ = window.until("2 messages  First")
        window.line("very first")  # in no row: searches, and the list has what was found
        _ = window.until(lambda _: window.whole.count("Continue which session") == 3)
        window.line("1")
        _ = window.until(lambda _: window.whole.count("/help shows") == 3)
        window.line("second words of the first")
        _ = window.until("answer 2")
        _ = window.until(lambda _: window.whole.count("done ·") == 3)
        window.line("/fork")
        _ = window.until("2  second words of the first")
        window.line("2")
        _ = window.until("> second words of the first")
        window.line(", said otherwise")
        _ = window.until("answer 3")
        assert leave(window) == 0
    heard = sorted(said(checked_entries(path)) for path in ground.sessions())
    assert heard == [
        ["other words"],
        ["the very first words", "second words of the first"],
        ["the very first words", "second words of the first, said otherwise"],
    ]


def test_a_place_of_the_tree_is_gone_on_from_and_the_own_words_come_back(ground: Ground) -> None:
    look = calls(("bash", {"command": "echo seen"}), text="I look.")
    ground.provider.script([look, *(says(f"answer {number}") for number in range(4))])
    with chat(ground) as window:
        for number, words in enumerate(("first words", "second words")):
            window.line(words)
            _ = window.until(f"answer {number}")
            _ = window.until(lambda _, runs=number + 1: window.whole.count("done ·") == runs)
        window.line("/tree")
        _ = window.until("  4  > second words\n▶ 5  answer 1 ← here\n")
        window.line("4")
        _ = window.until("Continuing before: second words")
        _ = window.until("> second words\n\n")
        window.line(", said otherwise")
        _ = window.until("answer 2")
        _ = window.until(lambda _: window.whole.count("done ·") == 3)
        window.line("/tree I LOOK")
        _ = window.until("▶ 1  I look. ▸ bash echo seen\n")
        window.line("1")
        _ = window.until("Continuing after: I look.")
        window.line("third words")
        _ = window.until("answer 3")
        _ = window.until(lambda _: window.whole.count("done ·") == 4)
        window.line("/tree")
        _ = window.until("  3  ├─ answer 0\n")
        picture = window.until("  8  └─ > third words\n▶ 9     answer 3 ← here\n")
        assert "  4  │ ├─ > second words\n" in picture
        window.line("nothing like it")
        _ = window.until("unknown entry 'nothing like it'")
        window.line("/tree no such words")
        _ = window.until("No entry contains 'no such words'.")
        assert leave(window) == 0
    heard = ground.provider.requests[-1]["body"]["messages"]
    assert [one["role"] for one in heard][-4:] == ["user", "assistant", "tool", "user"]
    assert len(ground.sessions()) == 1


def test_a_list_of_steps_is_shown_when_the_model_changes_it(ground: Ground) -> None:
    steps = [
        {"text": "Read the build", "status": "done"},
        {"text": "Mend it", "status": "active"},
        {"text": "Run the tests"},
    ]
    ground.provider.script([calls(("todo", {"items": steps})), says("I go on.")])
    with chat(ground) as window:
        window.line("work")
        picture = window.until("I go on.")
        assert leave(window) == 0
    assert (
        "✓ todo 1 of 3 done · 0.0 s\n  ☑ Read the build\n  ▶ Mend it\n  ☐ Run the tests\n"
        in picture
    )


def test_a_question_of_the_model_is_answered_in_the_conversation(ground: Ground) -> None:
    store = {
        "question": "Which store?",
        "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
    }
    ground.provider.script([calls(("ask", {"questions": [store]})), says("Postgres it is.")])
    with chat(ground) as window:
        window.line("build it")
        _ = window.until("Which store?")
        _ = window.until("Postgres")
        window.line("2")
        _ = window.until("Postgres it is.")
        assert leave(window) == 0
    heard = ground.provider.requests[-1]["body"]["messages"][-1]
    assert heard["content"] == "Which store?\n→ Postgres"


def test_while_the_model_works_the_tree_waits(ground: Ground) -> None:
    ground.provider.script([STALL])
    with chat(ground) as window:
        window.line("talk")
        _ = window.until("half")
        window.line("/tree")
        _ = window.until("A run is active. Press Esc to stop it")
        window.type(ESCAPE)
        _ = window.until("cancelled")
        assert leave(window) == 0


def test_a_session_in_memory_has_a_tree_and_no_export(ground: Ground) -> None:
    ground.provider.script([says("answer 0"), says("answer 1")])
    with chat(ground, "--no-session") as window:
        window.line("first words")
        _ = window.until("done ·")
        window.line("/tree")
        _ = window.until("  1  > first words\n▶ 2  answer 0 ← here\n")
        window.line("1")
        _ = window.until("> first words\n\n")
        window.line(" again")
        _ = window.until("answer 1")
        window.line("/export")
        _ = window.until("or it is in memory only")
        assert leave(window) == 0


def test_a_session_is_exported_and_no_file_is_overwritten(ground: Ground) -> None:
    ground.provider.script([says("An answer.")])
    (ground.root / "notes").mkdir()
    with chat(ground) as window:
        window.line("hello there")
        _ = window.until("done ·")
        window.line("/export")
        _ = window.until("Exported to")
        window.line("/export")
        _ = window.until("-2.md")
        window.type(f"/export no{TAB}")
        _ = window.until("> /export notes/")
        window.line("talk.html")
        _ = window.until("talk.html\n>")
        window.line("/export notes/talk.html")
        _ = window.until(lambda picture: "istherealready" in flowing(picture))
        for name, why in (
            ("talk.pdf", "unknown format 'talk.pdf'"),
            ("none/talk.md", "could not be written"),
        ):
            window.line(f"/export {name}")
            _ = window.until(lambda picture, why=why: flowing(why) in flowing(picture))
        assert leave(window) == 0
    (session,) = ground.sessions()
    short = json.loads(session.read_text("utf-8").splitlines()[0])["id"][-6:]
    first, second = (ground.root / f"tiller-{short}{number}.md" for number in ("", "-2"))
    assert first.read_text("utf-8") == second.read_text("utf-8")
    assert "hello there" in first.read_text("utf-8")
    assert first.stat().st_mode & 0o777 == 0o600
    assert "<html" in (ground.root / "notes" / "talk.html").read_text("utf-8")
    stored = tiller(ground, "sessions", "export", short, "--output", "again.html")
    assert stored.code == 0
    assert "<html" in (ground.root / "again.html").read_text("utf-8")


def test_what_was_typed_before_is_found_again_and_a_blank_before_it_hides_it(
    ground: Ground,
) -> None:
    ground.provider.script([{"text": "ok", "repeat": -1}])
    with chat(ground) as window:
        for words in ("remember me", "  not this"):
            window.line(words)
            _ = window.until(f"> {words.strip()}")
        _ = window.until("done ·")
        assert leave(window) == 0
    history = ground.dirs.data / "chat_history"
    assert history.stat().st_mode & 0o077 == 0
    assert "not this" not in history.read_text("utf-8")
    with chat(ground, "--continue") as window:
        window.type(UP)
        _ = window.until("> remember me")
        window.type(CTRL_C)
        assert leave(window) == 0


def test_a_key_between_two_lines_is_not_lost(ground: Ground) -> None:
    with chat(ground) as window:
        for _ in range(KEYS):
            window.type(SHIFT_TAB)
            window.look(0.003)
        assert leave(window) == 0
    assert window.whole.count("Permission mode ") == KEYS


def test_ctrl_c_twice_with_nothing_running_quits(ground: Ground) -> None:
    with chat(ground) as window:
        window.type(CTRL_C)
        _ = window.until("Press Ctrl-C again to quit.")
        window.type(CTRL_C)
        assert window.end() == 0


def test_a_provider_that_refuses_leaves_the_conversation_open(ground: Ground) -> None:
    ground.provider.script([{"status": 400}, says("better now")])
    with chat(ground) as window:
        window.line("hi")
        _ = window.until("400")
        window.line("again")
        _ = window.until("better now")
        assert leave(window) == 0
    assert len(messages(checked_entries(*ground.sessions()), "assistant")) >= 1


def test_without_a_terminal_it_says_what_to_do_instead(ground: Ground) -> None:
    ran = tiller(ground, "chat")
    assert ran.code == 2
    assert "needs a terminal. For one prompt in a script: tiller run PROMPT" in ran.complaint


WATCHES = """
from pathlib import Path

from agent_core.hooks import GoOn, SessionSwitched, SessionSwitching, SwitchCancelled

SEEN = Path(__file__).with_name("seen.txt")

def extension(api):
    @api.on(SessionSwitching)
    def leaving(event, ctx):
        with SEEN.open("a") as file:
            file.write(f"leaving {event.reason}\\n")
        lines = SEEN.read_text().splitlines()
        return SwitchCancelled(reason="the build runs") if len(lines) == 1 else GoOn()

    @api.on(SessionSwitched)
    def arrived(event, ctx):
        with SEEN.open("a") as file:
            file.write(f"arrived {event.reason}\\n")
"""


def test_an_extension_is_asked_before_the_conversation_goes_to_another_session(
    ground: Ground,
) -> None:
    folder = ground.dirs.config / "extensions"
    folder.mkdir()
    (folder / "watches.py").write_text(WATCHES, encoding="utf-8")
    with chat(ground) as window:
        window.line("/new")
        _ = window.until("wants this session to stay: the build runs")
        window.line("/new")
        _ = window.until("> /new\nlab/m in")
        assert leave(window) == 0
    seen = (folder / "seen.txt").read_text("utf-8").splitlines()
    assert seen == ["leaving new", "leaving new", "arrived new"]
