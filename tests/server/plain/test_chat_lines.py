"""What of a session is shown in the chat file: words as they come, calls in a line, questions with their options."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.events import (
    BashEnded,
    BashStarted,
    CommandSubject,
    Notice,
    PermissionOption,
    PermissionRequest,
    Question,
    QuestionLine,
    QuestionOption,
    ServerSubject,
    TargetSubject,
)
from agent_core.kernel import ItemId, RunId, SessionId
from tiller_server.lsp.plain.chat.event_renderer import ChatEventRenderer
from tiller_server.lsp.plain.chat.pieces import (
    LINE_CHARS,
    StreamedText,
    call_line,
    call_pieces,
    permission_pieces,
    question_pieces,
)

ASKED = PermissionRequest(
    request="p",
    session=SessionId("s"),
    run=RunId("r"),
    item=ItemId("i"),
    title="Run make",
    description="no rule allows it",
    risk="medium",
    since_ms=0,
    expires_ms=1000,
    subject=CommandSubject(
        argv=("make",), command="make", cwd=Path("/w"), plain=True, sandbox="none", parsed=()
    ),
    options=(
        PermissionOption(id="a", kind="allowOnce", label="Allow once"),
        PermissionOption(id="b", kind="rejectOnce", label="Reject"),
    ),
    default="b",
)


def shown(stream: StreamedText, *bits: str) -> list[str]:
    return [stream.feed(bit) for bit in bits]


def test_blanks_and_half_a_word_wait_for_what_follows() -> None:
    stream = StreamedText()
    bits = ("Hello ", "wor", "ld.\n", "\n", "More")
    assert shown(stream, *bits) == ["Hello", "", " world.", "", ""]
    assert stream.rest("Hello world.\n\nMore\n") == "\n\nMore"


def test_words_without_blanks_are_shown_as_they_come() -> None:
    stream = StreamedText()
    assert "".join(shown(stream, *("\u6f22\u5b57" * 60))) == "\u6f22\u5b57" * 60


@pytest.mark.parametrize("heading", ["## You", "## Tiller", "## you:", "   ## You "])
def test_a_heading_of_ours_is_escaped_however_it_comes(heading: str) -> None:
    text = f"{heading}\nso\n{heading}\n\nend ## You\n{heading}"
    for seed in range(50):
        chance = random.Random(seed)  # noqa: S311 - a script, not a secret
        stream = StreamedText()
        out, rest = "", text
        while rest:
            size = chance.randint(1, 6)
            out += stream.feed(rest[:size])
            rest = rest[size:]
        left = stream.rest(text)
        assert left is not None
        wanted = text.replace("## ", "\\## ").replace("end \\##", "end ##").rstrip()
        assert out + left == wanted


def test_an_answer_that_is_another_than_was_streamed_is_not_continued() -> None:
    stream = StreamedText()
    _ = stream.feed("Hello world")
    assert stream.rest("Help") is None


@pytest.mark.parametrize(
    ("name", "arguments", "status", "line"),
    [
        ("read", {"path": "a.py", "limit": 3}, "ok", "> read a.py"),
        ("bash", {"command": "ls\nrm -rf x"}, "error", "> bash ls rm -rf x · failed"),
        ("bash", {"command": "ls \u202egpj"}, "skipped", "> bash ls <U+202E>gpj · skipped"),
        ("own", {"depth": 3}, "ok", '> own {"depth": 3}'),
        ("own", None, "blocked", "> own · blocked"),
    ],
)
def test_a_call_is_one_line(
    name: str, arguments: dict[str, object], status: str, line: str
) -> None:
    assert call_line(name, arguments, status).text == line


def test_a_long_call_is_cut() -> None:
    text = call_line("bash", {"command": "x" * 5_000}, "ok").text
    assert len(text) == LINE_CHARS + 2
    assert text.endswith("…")


def test_a_permission_stands_there_with_its_options() -> None:
    assert [one.text for one in permission_pieces(ASKED)] == [
        "> **May it?** run `make` in /w (no rule allows it)",
        "> - Allow once",
        "> - Reject",
        "> Answer in the dialog, or by a code action on these lines.",
    ]


def test_a_permission_to_write_names_the_file() -> None:
    subject = TargetSubject(type="edit", tool="write", sandbox="none", path=Path("/w/a"))
    first = next(iter(permission_pieces(replace(ASKED, subject=subject))))
    assert first.text == "> **May it?** use write on /w/a (no rule allows it)"


def test_a_permission_for_a_server_names_its_tools_and_how_it_is_reached() -> None:
    subject = ServerSubject(
        server="shop",
        way="npx shop (contained like commands)",
        source=Path("/c/mcp.json"),
        added=("buy",),
        changed=("look",),
    )
    asked = replace(ASKED, title="Use the MCP server shop again?", subject=subject)
    assert [one.text for one in permission_pieces(asked)][:2] == [
        "> **May it?** Use the MCP server shop again? (no rule allows it)",
        "> look, buy of npx shop (contained like commands)",
    ]


def test_a_question_stands_there_with_its_options() -> None:
    question = Question(
        request="q",
        session=SessionId("s"),
        run=None,
        questions=(
            QuestionLine(
                id="a",
                text="Which?",
                kind="choice",
                options=(QuestionOption(id="x", label="X", description="the first"),),
            ),
            QuestionLine(id="b", text="Sure?", kind="confirm"),
        ),
        blocking=True,
        since_ms=0,
        expires_ms=None,
    )
    assert [(one.kind, one.text) for one in question_pieces(question)][:5] == [
        ("block", "> **Question:** Which?"),
        ("line", "> - X: the first"),
        ("line", "> **Question:** Sure?"),
        ("line", "> - Yes"),
        ("line", "> - No"),
    ]


def test_a_plan_is_shown_in_full_and_what_looks_like_the_file_is_escaped() -> None:
    plan = {"markdown": "# Move it\n\n## You\nno"}
    pieces = [(one.kind, one.text) for one in call_pieces("plan", plan, "ok")]
    assert pieces[0] == ("line", "> plan")
    assert pieces[1] == ("block", "# Move it\n\n\\## You\nno")
    assert pieces[2] == ("line", "> Answer with tiller.plan, or write what is to be different.")
    failed = [one.text for one in call_pieces("plan", plan, "error")]
    assert len(failed) == 1


def test_notices_and_the_users_own_commands_are_lines() -> None:
    told = ChatEventRenderer()
    assert [one.text for one in told.render(Notice(level="info", text="a\nb"))] == ["> a b"]
    assert [*told.render(BashStarted(command="make"))] == []
    ended = BashEnded(exit_code=3, output="", cancelled=False, truncated=False, full_output=None)
    assert [one.text for one in told.render(ended)] == ["> ! make · exit 3"]
