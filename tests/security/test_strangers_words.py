"""What strangers wrote is shown: nothing of it orders a terminal about, hides, or is fetched from elsewhere."""

import argparse
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agent_core.events import (
    ChangeCounts,
    ErrorRaised,
    Event,
    EventEnvelope,
    ExtensionError,
    Failure,
    MessageDelta,
    MessageEnded,
    Notice,
    RetryStarted,
    RunEnded,
    ToolEnded,
    ToolRunning,
    UsageReport,
)
from agent_core.kernel import EntryId, ItemId, RunId, SystemClock, ToolCallId, TurnId
from agent_core.messages import Text, Usage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import AnyEntry, LabelEntry, SessionNameEntry
from agent_core.transcript.export.html_document import html
from tests.support.harness.shared import SHARED_ROOT
from tests.support.hostile.hostile_texts import HOSTILE
from tests.support.hostile.html_safety import read_page
from tests.support.session.entries import AT_MS, assistant, call, chain, header, result, user
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import complain
from tiller_server.cli.subcommands import sessions
from tiller_server.cli.terminal.run_renderer import TextRunRenderer

RUN, TURN, ITEM = RunId("r"), TurnId("t"), ItemId("i")
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
CORPUS = SHARED_ROOT / "data" / "hostile" / "inject.jsonl"
ORDERS = (
    "\x1b[2J\x1b[1;1Hpassword:",
    "\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07",
    "\x1b]8;;https://canary.invalid/\x1b\\here\x1b]8;;\x1b\\",
    "\x9b31mred\x9d52;c;ZXZpbA==\x9c",
    "\x1bP+q544e\x1b\\ \x1b_Gi=1;AAAA\x1b\\",
    "all is well\rrm -rf ~",
    "rm x\x08\x08\x08\x08ls",
    "user\u202egnp.exe \u2066hidden\u2069 a\u200bb",
    "hello\U000e0072\U000e0075\U000e006e",
    "![x](https://canary.invalid/p.png) <img src=https://canary.invalid/q.png>",
    "[x]: https://canary.invalid/r\n![y][x] <a href='javascript:x()'>go</a>",
)


def texts() -> list[str]:
    """Give what strangers may have written: our own list, and the corpus where it is there."""
    rows = CORPUS.read_text("utf-8").splitlines() if CORPUS.is_file() else []
    return [*ORDERS, *HOSTILE, *(json.loads(row)["content"] for row in rows)]


def raw_in(shown: str) -> list[str]:
    return RAW.findall(shown)


def events_with(text: str) -> Sequence[Event]:
    failure = Failure(kind="Internal", message=text)
    usage = UsageReport(tokens=Usage(), context_used=None, context_size=0)
    said = (Text(text=text),)
    return (
        *(MessageDelta(run=RUN, turn=TURN, item=ITEM, text=char) for char in text),
        MessageDelta(run=RUN, turn=TURN, item=ITEM, text=text),
        MessageEnded(run=RUN, turn=TURN, item=ItemId("j"), role="assistant", content=said),
        ToolRunning(run=RUN, turn=TURN, item=ITEM, title=text, input={}),
        ToolEnded(
            run=RUN,
            turn=TURN,
            item=ITEM,
            call=ToolCallId("c"),
            name=text,
            status="error",
            content=said,
            details=None,
            duration_ms=1,
        ),
        RetryStarted(run=RUN, attempt=1, max_attempts=2, delay_ms=1, error=failure),
        Notice(level="warning", text=text),
        ErrorRaised(run=RUN, error=failure),
        ExtensionError(extension=text, event=text, error=text),
        RunEnded(run=RUN, status="failed", usage=usage, changes=ChangeCounts(), error=failure),
    )


@pytest.mark.parametrize("text", texts(), ids=range(len(texts())))
def test_a_run_on_a_terminal_shows_it(text: str) -> None:
    out, side = io.StringIO(), io.StringIO()
    view = TextRunRenderer(out=out, side=side, colour=False, location=lambda: text)
    view.begin({"type": "session", "model": text, "cwd": text})
    for at, event in enumerate(events_with(text)):
        view.see(EventEnvelope(seq=at, first=at, at_ms=AT_MS, event=event))
    view.interim(text)
    view.end(None, text)
    assert raw_in(out.getvalue()) == []
    assert raw_in(side.getvalue()) == []


@pytest.mark.parametrize("text", ORDERS)
def test_an_error_on_a_terminal_shows_it(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    complain("run", text)
    assert raw_in(capsys.readouterr().err) == []


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep a stranger's session for each text."""
    base = tmp_path_factory.mktemp("strangers")

    async def write() -> None:
        store = JsonlStore(base / "d" / "sessions", SystemClock())
        for at, text in enumerate(texts()):
            log = await store.create(header(f"s-{at:03}", cwd=str(base)))
            await log.append(session_of(text))
            await log.close()

    anyio.run(write)
    return base


def session_of(text: str) -> list[AnyEntry]:
    talk = chain(
        user(text),
        assistant(text, call("c1", {"command": text, text: text})),
        result(text, call_id="c1"),
        assistant(text),
    )
    name = SessionNameEntry(id=EntryId("n"), parent=talk[-1].id, at_ms=AT_MS, name=text)
    label = LabelEntry(
        id=EntryId("l"), parent=EntryId("n"), at_ms=AT_MS, target=talk[0].id, label=text
    )
    return [*talk, name, label]


def run(base: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="tiller")
    sessions.add_arguments(parser.add_subparsers().add_parser("sessions"))
    options = parser.parse_args(["sessions", *arguments])
    variables = {"TILLER_DATA_DIR": str(base / "d"), "TILLER_CONFIG_DIR": str(base / "c")}
    return sessions.main(options, Environment(variables))


@pytest.mark.timeout(120)
def test_a_strangers_session_is_shown(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(texts())
    for at in range(count):
        for command in ("show", "tree"):
            assert run(stored, command, f"s-{at:03}") == 0, (command, at)
            shown = capsys.readouterr()
            assert raw_in(shown.out) == [], (command, texts()[at])
    assert run(stored, "list", "--all") == 0
    assert raw_in(capsys.readouterr().out) == []
    for word in ("canary", "password", "well", "hidden", "rm"):
        _ = run(stored, "search", word)
        assert raw_in(capsys.readouterr().out) == [], word


@pytest.mark.parametrize("text", texts(), ids=range(len(texts())))
def test_an_exported_session_fetches_nothing(text: str) -> None:
    entries = session_of(text)
    page = read_page(html(header("s"), entries, entries[-1].id))
    assert (page.faults, page.pictures) == ([], [])
    policy = next(one for one in page.metas if one.get("http-equiv"))["content"] or ""
    assert "default-src 'none'" in policy
    assert not re.search(r"img-src[^;]*http", policy)
