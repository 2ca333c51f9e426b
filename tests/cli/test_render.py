"""A run on a terminal: words on one stream, everything around them on the other, JSON lines for programs."""

import io
import json
from typing import Literal

from agent_core.events import (
    ChangeCounts,
    Event,
    EventEnvelope,
    Failure,
    MessageDelta,
    MessageEnded,
    Notice,
    RetryStarted,
    RunEnded,
    RunResult,
    RunStarted,
    RunStatus,
    ToolEnded,
    ToolRunning,
    ToolStatus,
    TurnEnded,
    TurnStarted,
    UiEditorText,
    UiNotify,
    UiStatus,
    UiWidget,
    UsageReport,
)
from agent_core.kernel import ItemId, RunId, ToolCallId, TurnId
from agent_core.messages import Cost, StopReason, Text, Usage
from tiller_server.cli.subcommands.run import FinalAnswer
from tiller_server.cli.terminal.run_renderer import JsonRunRenderer, TextRunRenderer, summary

RUN, TURN = RunId("r"), TurnId("t")
HEADER = {"type": "session", "id": "s", "model": "lab/m", "cwd": "/w"}
USAGE = UsageReport(
    tokens=Usage(input=1200, output=300, cost=Cost(input=0.01)), context_used=1, context_size=2
)


def result(
    status: RunStatus = "completed", *, text="", usage=USAGE, error: Failure | None = None
) -> RunResult:
    changes = ChangeCounts(files=2, additions=3, deletions=1)
    return RunResult(run=RUN, status=status, text=text, usage=usage, changes=changes, error=error)


def delta(text: str, item: str = "i") -> Event:
    return MessageDelta(run=RUN, turn=TURN, item=ItemId(item), text=text)


def ended(text: str, item: str = "i", role: Literal["user", "assistant"] = "assistant") -> Event:
    content = (Text(text=text),)
    return MessageEnded(run=RUN, turn=TURN, item=ItemId(item), role=role, content=content)


def tool(title: str) -> Event:
    return ToolRunning(run=RUN, turn=TURN, item=ItemId("c"), title=title, input={})


def tool_ended(status: ToolStatus = "ok", text: str = "") -> Event:
    return ToolEnded(
        run=RUN,
        turn=TURN,
        item=ItemId("c"),
        call=ToolCallId("c"),
        name="bash",
        status=status,
        content=(Text(text=text),),
        details=None,
        duration_ms=1,
    )


def turn_started() -> Event:
    return TurnStarted(run=RUN, turn=TURN, index=0)


def turn_ended(reason: StopReason = "stop") -> Event:
    return TurnEnded(run=RUN, turn=TURN, index=0, stop_reason=reason, usage=USAGE)


def shown(
    *events: Event, colour: bool = False, verbose: bool = False, ending: RunResult | None = None
) -> tuple[str, str]:
    out, side = io.StringIO(), io.StringIO()
    view = TextRunRenderer(
        out=out, side=side, colour=colour, verbose=verbose, location=lambda: "/d/s.jsonl"
    )
    final = FinalAnswer()
    view.begin(HEADER)
    for number, event in enumerate(events, 1):
        if words := final.see(event):
            view.interim(words)
        view.see(EventEnvelope(seq=number, first=number, at_ms=0, event=event))
    answer, rest = final.close(ending)
    if rest:
        view.interim(rest)
    view.end(ending, answer)
    return out.getvalue(), side.getvalue()


TALK = (
    RunStarted(run=RUN, message_id=None, model="lab/m"),
    ended("do it", "u", "user"),
    turn_started(),
    delta("I lo"),
    delta("ok."),
    ended("I look."),
    tool("ls"),
    tool_ended(),
    turn_ended(),
    turn_started(),
    delta("Half an ans", "b"),
    ended("Half an ans", "b"),
    turn_ended("error"),
    turn_started(),
    ended("Done.", "j"),
    turn_ended(),
)


def test_a_pipe_gets_the_final_answer_alone_and_no_words_of_a_broken_attempt() -> None:
    out, side = shown(*TALK, ending=result(text="Done."))
    assert out == "Done.\n"
    assert side == (
        "lab/m in /w\nI look.\n▸ ls\ndone · 2 files +3 -1 · 1.5k tokens · $0.0100\nsession: /d/s.jsonl\n"
    )


def test_verbosely_a_pipe_gets_every_whole_answer() -> None:
    out, side = shown(*TALK, verbose=True, ending=result(text="Done."))
    assert out == "I look.\nDone.\n"
    assert "I look" not in side


def test_a_run_that_did_not_complete_has_no_answer() -> None:
    over = RunEnded(run=RUN, status="budget", usage=USAGE, changes=ChangeCounts(), error=None)
    out, side = shown(*TALK, over, ending=result("budget", text="Done."))
    assert out == ""
    assert "Done.\n" in side


def test_what_went_wrong_is_told_beside_the_words() -> None:
    error = Failure(kind="RateLimited", message="too many requests")
    retry = RetryStarted(run=RUN, attempt=1, max_attempts=3, delay_ms=2000, error=error)
    run_ended = RunEnded(run=RUN, status="failed", usage=USAGE, changes=ChangeCounts(), error=error)
    out, side = shown(
        tool("rm -r x"),
        tool_ended("blocked", "not allowed\nbecause of the mode\n"),
        retry,
        Notice(level="warning", text="settings are broken"),
        run_ended,
        ending=result("failed", error=error),
    )
    assert out == ""
    assert side.splitlines()[1:-1] == [
        "▸ rm -r x",
        "⊘ bash: because of the mode",
        "too many requests; retry 1 of 3 in 2 s",
        "settings are broken",
        "RateLimited: too many requests",
        "failed · 2 files +3 -1 · 1.5k tokens · $0.0100",
    ]


def test_why_a_tool_failed_is_told_whole_or_cut_between_two_words() -> None:
    help_for_it = "The user can allow it with a rule for 'npm' in policy.json. " * 4
    _, side = shown(tool_ended("blocked", help_for_it))
    assert f"⊘ bash: {help_for_it.strip()}\n" in side
    _, side = shown(tool_ended("error", "twelve chars " * 100))
    line = side.splitlines()[1]
    assert line.endswith(("twelve chars …", "twelve …"))
    assert len(line) < 520


def test_what_an_extension_shows_is_told_beside_the_words() -> None:
    rows = {"kind": "list", "rows": [{"text": "write tests", "done": False}]}
    out, side = shown(
        UiNotify(extension="todo", view={"text": "2 left", "level": "info"}),
        UiStatus(extension="plan", view={"key": "mode", "text": "plan mode is on"}),
        UiStatus(extension="plan", view={"key": "mode", "text": None}),
        UiWidget(extension="todo", view={"key": "list", "view": rows}),
        UiWidget(extension="todo", view={"key": "list", "view": None}),
        UiEditorText(extension="todo", view={"text": "go on", "mode": "replace"}),
    )
    assert out == ""
    told = side.splitlines()[1:]
    assert told[:3] == ["todo: 2 left", "plan · plan mode is on", "todo:"]
    assert "write tests" in told[3]
    assert told[4:] == ["todo suggests to say: go on"]


def test_colour_is_only_where_it_is_wanted_and_never_in_the_words() -> None:
    out, side = shown(tool("ls"), ended("hi"), colour=True)
    assert out == "hi\n"
    assert "\x1b[2m▸ ls\x1b[0m\n" in side
    assert "\x1b" not in "".join(shown(tool("ls"), ended("hi")))


def test_the_summary_says_what_is_known_of_the_cost() -> None:
    unknown = UsageReport(tokens=Usage(input=10), context_used=0, context_size=0)
    free = UsageReport(tokens=Usage(cost=Cost()), context_used=0, context_size=0)
    assert summary(result(usage=unknown)) == "done · 2 files +3 -1 · 10 tokens · cost unknown"
    assert summary(result("cancelled", usage=free)) == "cancelled · 2 files +3 -1 · $0.0000"


def test_json_is_the_header_then_every_event_then_the_result_each_on_a_line() -> None:
    out = io.StringIO()
    view = JsonRunRenderer(out=out, side=io.StringIO())
    view.begin(HEADER)
    view.see(EventEnvelope(seq=7, first=6, at_ms=0, event=delta("a\nb")))
    run_ended = RunEnded(
        run=RUN, status="completed", usage=USAGE, changes=ChangeCounts(), error=None
    )
    view.see(EventEnvelope(seq=8, first=8, at_ms=0, event=run_ended))
    view.end(result(text="a\nb"), "a\nb")
    *lines, over, last = [json.loads(line) for line in out.getvalue().splitlines()]
    assert last == {
        "type": "result",
        "status": "completed",
        "text": "a\nb",
        "usage": over["usage"],
        "cost": over["cost"],
        "error": None,
    }
    assert lines == [
        HEADER,
        {
            "seq": 7,
            "from": 6,
            "at": "1970-01-01T00:00:00.000Z",
            "type": "message.delta",
            "run": "r",
            "turn": "t",
            "item": "i",
            "text": "a\nb",
        },
    ]
