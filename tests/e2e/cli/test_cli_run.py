"""`tiller run` against a real HTTP provider: the events as JSON lines, the words alone in a pipe, the session it leaves."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.daemon_runs import BOTH_WAYS
from tests.support.programs.terminal import in_terminal, tiller
from tests.support.session.event_schema import check_event
from tests.support.session.session_files import checked_entries, messages, read_entries, runs, said

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(90)]
RUN_WAYS = BOTH_WAYS

READ = ("read", {"path": "shape.py"})
LOOK = ("bash", {"command": "echo looking; exit 3"})
REPAIR = ("edit", {"path": "shape.py", "edits": [{"oldText": "hight", "newText": "h"}]})
JOB = [calls(READ, LOOK), calls(REPAIR, text="I see."), says("Repaired, wörd for wörd 🦜.")]
ANSI = re.compile(r"\x1b\[[0-9;]*m")

TURN_WITH_TOOLS = ["turn.started", "message.started", "tool.started", "tool.started"]
EVENTS = [
    *("run.started", "session.state", "run.stage", "message.started", "message.ended"),
    *("run.stage", *TURN_WITH_TOOLS, "session.usage", "message.ended"),
    *("tool.running", "tool.ended", "tool.running", "tool.ended", "turn.ended"),
    *("turn.started", "message.started", "tool.started", "session.usage", "message.ended"),
    *(
        "tool.running",
        "checkpoint.created",
        "edit.applied",
        "changes.updated",
        "tool.ended",
        "turn.ended",
    ),
    *("turn.started", "message.started", "session.usage", "message.ended", "turn.ended"),
    *("run.stage", "run.stage", "run.ended", "session.state"),
]


def with_uris(event: dict[str, Any]) -> dict[str, Any]:
    """Give an event as a client of the wire gets it: URIs where the terminal has paths."""
    if not event["type"].startswith("edit."):
        return event
    documents = [
        {"uri": Path(one["path"]).as_uri(), **{k: v for k, v in one.items() if k != "path"}}
        for one in event["documents"]
    ]
    return {**event, "documents": documents}


@pytest.mark.parametrize("api", ["openai-completions", "anthropic-messages"])
def test_the_json_stream_is_the_header_then_every_event_then_the_result(
    ground: Ground, api: str
) -> None:
    ground.configure(api=api, toolExecution="sequential")
    path = ground.file("shape.py", "area = w * hight\n")
    ground.provider.script(JOB)
    ran = tiller(ground, "run", "--json", "Repair", "it.")
    assert (ran.code, ran.err) == (0, "")
    assert path.read_text("utf-8") == "area = w * h\n"
    header, *events, last = ran.lines
    (file,) = ground.sessions()
    entries = checked_entries(file)
    assert header == {
        "type": "session",
        "version": 3,
        "id": read_entries(file)[0]["id"],
        "cwd": str(ground.root),
        "model": "lab/m",
        "file": str(file),
    }
    before = 0
    for event in events:
        assert event.get("from", event["seq"]) == before + 1
        before = event["seq"]
        check_event(with_uris(event))
    types = [event["type"] for event in events]
    assert [one for one in types if not one.endswith(".delta")] == EVENTS
    ended = next(event for event in events if event["type"] == "run.ended")
    assert (ended["status"], ended["cost"]) == ("completed", None)
    assert last == {
        "type": "result",
        "status": "completed",
        "text": "Repaired, wörd for wörd 🦜.",
        "usage": ended["usage"],
        "cost": None,
        "error": None,
    }
    assert ended["changes"] == {"files": 1, "additions": 1, "deletions": 1, "unreviewed": 1}
    assert said(entries) == ["Repair it."]
    assert [one["toolName"] for one in messages(entries, "toolResult")] == ["read", "bash", "edit"]
    assert said(entries, "assistant")[-1] == "Repaired, wörd for wörd 🦜."
    assert {one["api"] for one in messages(entries, "assistant")} == {api}
    print(f"{api}: {len(events)} events in order, {len(entries)} entries in {file.name}")


def test_a_run_makes_no_request_for_a_title(ground: Ground) -> None:
    ground.configure(titles="auto")
    ground.provider.script([says("one")])
    ran = tiller(ground, "run", "first question")
    assert (ran.code, ran.out, len(ground.provider.requests)) == (0, "one\n", 1)


@pytest.mark.parametrize("api", ["openai-completions", "anthropic-messages"])
@pytest.mark.parametrize("chunking", ["utf8", "boundary", "bytes:7"])
def test_words_arrive_whole_however_the_stream_is_cut(
    ground: Ground, api: str, chunking: str
) -> None:
    ground.configure(api=api)
    text = "wörd 🦜 – 木\n" * 40
    ground.provider.script([{"text": text, "deltas": 97, "chunking": chunking}])
    ran = tiller(ground, "run", "--json", "Talk.")
    assert ran.code == 0
    deltas = [event["text"] for event in ran.lines if event["type"] == "message.delta"]
    assert "".join(deltas) == text
    ended = [event for event in ran.lines if event["type"] == "message.ended"]
    assert ended[-1]["content"] == [{"type": "text", "text": text}]


def test_a_pipe_gets_the_final_answer_alone_and_nothing_is_coloured(ground: Ground) -> None:
    ground.file("shape.py", "area = w * hight\n")
    ground.provider.script(JOB)
    ran = tiller(ground, "run", "Repair it.")
    assert ran.code == 0
    assert ran.out == "Repaired, wörd for wörd 🦜.\n"
    assert not ANSI.search(ran.err)
    (file,) = ground.sessions()
    assert ran.err.splitlines() == [
        f"lab/m in {ground.root}",
        "▸ read shape.py",
        *[line for line in ran.err.splitlines() if "looking" in line],
        "✗ bash: Command exited with code 3",
        "I see.",
        "▸ edit shape.py",
        next(line for line in ran.err.splitlines() if line.startswith("done · 1 file +1 -1 · ")),
        f"session: {file}",
    ]


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_a_terminal_is_coloured_unless_it_is_not_wanted(
    ground: Ground, variables: dict[str, str], coloured: bool
) -> None:
    ground.provider.script([says("hello")])
    shown = in_terminal(ground, "run", "hi", env={"TERM": "xterm", **variables})
    assert "hello" in shown
    assert bool(ANSI.search(shown)) is coloured


def test_words_of_a_broken_attempt_reach_neither_standard_output_nor_a_file(ground: Ground) -> None:
    broken = {"text": "feat: wip " * 20, "deltas": 20, "cut_after_bytes": 1500}
    ground.configure(retry={"baseDelayMs": 1})
    ground.provider.script([broken, says("feat: add parser"), broken, says("feat: add parser")])
    ran = tiller(ground, "run", "-o", "message", "hi")
    assert (ran.code, ran.out) == (0, "feat: add parser\n")
    assert (ground.root / "message").read_text("utf-8") == "feat: add parser\n"
    ran = tiller(ground, "run", "--verbose", "hi")
    assert (ran.code, ran.out) == (0, "feat: add parser\n")


def test_a_file_for_the_answer_is_checked_before_and_kept_when_the_run_fails(
    ground: Ground,
) -> None:
    kept = ground.file("message", "as it was\n")
    nowhere = tiller(ground, "run", "-o", "gone/message", "hi")
    assert nowhere.code == 2
    assert "'gone/message' cannot be written: name a file in a folder" in nowhere.complaint
    assert ground.provider.requests == []
    ground.provider.script([{"status": 400, "body": {"error": {"message": "no"}}}])
    assert tiller(ground, "run", "-o", "message", "hi").code == 1
    assert kept.read_text("utf-8") == "as it was\n"


def test_standard_input_beside_words_is_told_to_the_model(ground: Ground) -> None:
    ground.provider.script([says("ok")])
    assert tiller(ground, "run", "Write a message", stdin=b"diff --git\n").code == 0
    assert said(checked_entries(*ground.sessions())) == ["Write a message\n\ndiff --git"]


def test_the_prompt_comes_from_stdin_when_there_is_none(ground: Ground) -> None:
    ground.provider.script([{"text": "ok", "repeat": -1}])
    assert tiller(ground, "run", "--json", stdin="Grüße,\nWelt\n".encode()).code == 0
    assert tiller(ground, "run", "--json", "-", stdin=b"dash").code == 0
    assert tiller(ground, "run", "--json", stdin=b"not \xff UTF-8").code == 0
    heard = [said(checked_entries(path)) for path in ground.sessions()]
    assert heard == [["Grüße,\nWelt"], ["dash"], ["not \N{REPLACEMENT CHARACTER} UTF-8"]]


def test_a_session_is_continued_by_id_or_as_the_latest_or_never_written(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("three"), says("four")])
    header = tiller(ground, "run", "--json", "first").lines[0]
    assert tiller(ground, "run", "--continue", "second").code == 0
    assert tiller(ground, "run", "--session", header["id"], "third").code == 0
    alone = tiller(ground, "run", "--json", "--no-session", "fourth")
    assert alone.code == 0
    assert alone.lines[0]["file"] is None
    (file,) = ground.sessions()
    entries = checked_entries(file)
    assert said(entries) == ["first", "second", "third"]
    assert said(entries, "assistant") == ["one", "two", "three"]
    assert len({run for run, _ in runs(entries)}) == 3
    sent = [request["body"]["messages"] for request in ground.provider.requests]
    assert [len([one for one in some if one["role"] == "user"]) for some in sent] == [1, 2, 3, 1]


def test_a_session_is_continued_as_it_is_listed_and_by_its_file(ground: Ground) -> None:
    ground.provider.script([{"text": "ok", "repeat": -1}])
    first = tiller(ground, "run", "--json", "first").lines[0]
    assert tiller(ground, "run", "second").code == 0
    listed = tiller(ground, "sessions", "list").out.splitlines()
    number, shown = next(line for line in listed if "first" in line).split()[:2]
    assert len(shown) == 6
    assert first["id"].endswith(shown)
    for name in (number, shown, first["file"]):
        assert tiller(ground, "run", "--session", name, "again").code == 0
    assert said(checked_entries(Path(first["file"]))) == ["first", "again", "again", "again"]
    ambiguous = tiller(ground, "run", "--session", first["id"][:2], "again")
    assert (ambiguous.code, "the ids of 2 sessions begin or end" in ambiguous.err) == (2, True)


def test_continuing_where_there_is_nothing_begins_a_session(ground: Ground) -> None:
    ground.provider.script([says("one")])
    assert tiller(ground, "run", "--continue", "first").code == 0
    assert said(checked_entries(*ground.sessions())) == ["first"]


def test_options_decide_the_model_the_tools_and_the_permission(ground: Ground) -> None:
    ground.configure(permission={"mode": "ask"}, sandbox="off", defaultProjectTrust="always")
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    refused = tiller(ground, "run", "--json", "--model", "lab/m", "touch it")
    assert [e["status"] for e in refused.lines if e["type"] == "tool.ended"] == ["blocked"]
    assert not (ground.root / "made").exists()
    assert refused.code == 0
    asking = [calls(("bash", {"command": f"touch made{at}"})) for at in range(4)]
    ground.provider.script(asking)
    ended = tiller(ground, "run", "--json", "touch them all")
    (last,) = [event for event in ended.lines if event["type"] == "run.ended"]
    assert (ended.code, last["status"]) == (5, "refused")
    assert last["error"]["kind"] == "TooManyDenials"
    ground.provider.script([calls(("bash", {"command": "touch made"})), says("done")])
    assert tiller(ground, "run", "--permission", "yolo", "touch it").code == 0
    assert (ground.root / "made").exists()
    ground.provider.script([says("done")])
    assert tiller(ground, "run", "--tools", "readonly", "look").code == 0
    offered = ground.provider.requests[-1]["body"]["tools"]
    assert [one["function"]["name"] for one in offered] == ["read", "grep", "find", "ls"]


def test_another_folder_is_worked_in_where_it_is_trusted(ground: Ground) -> None:
    ground.configure(defaultProjectTrust="ask")
    other = ground.root.parent / "other"
    other.mkdir()
    made = other / "made.txt"
    write = calls(("write", {"path": str(made), "content": "here\n"}))
    ground.provider.script([write, says("could not"), write, says("did it")])
    ran = tiller(ground, "run", "--add-dir", str(other), "write it")
    assert (ran.code, made.exists()) == (0, False)
    assert f"{other} is read-only until you trust it: tiller trust add {other}" in ran.err
    ran = tiller(ground, "run", "--trust", "--add-dir", str(other), "write it")
    assert (ran.code, ran.out, made.read_text("utf-8")) == (0, "did it\n", "here\n")
    ran = tiller(ground, "run", "--add-dir", str(other / "gone"), "hi")
    assert ran.code == 2
    assert "is not a folder" in ran.err
