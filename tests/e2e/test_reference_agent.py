"""A session goes from Tiller to another agent of the same file format and back, and nothing of it is lost."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core import AgentSession, create_session
from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import UserMessage, text_of
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.session_import import import_session
from tests.support.clients.server import Ground, calls, says
from tests.support.programs.reference_agent import ReferenceAgent, heard, reference_agent
from tests.support.session.session_files import read_entries

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

Json = dict[str, Any]
WAIT_S = 30.0
SUMMARY = {**says("what was agreed so far"), "repeat": -1}
READ = calls(("read", {"path": "a.txt"}), text="I look. ")


@pytest.fixture(autouse=True)
def _installed() -> None:
    reference_agent()


def ours(ground: Ground, session: str = "new") -> Any:
    """Open a session of ours."""
    return create_session(workspace=ground.root, session=session, env=ground.env, trusted=True)


async def ask(session: AgentSession, words: str) -> None:
    """Say something and wait until all is done."""
    with anyio.fail_after(WAIT_S):
        await session.prompt(words)
        ended = await session.wait_idle()
    assert ended is not None
    assert ended.status == "completed"


async def compact(session: AgentSession) -> None:
    """Summarise all but the last words, and wait for it."""
    with anyio.fail_after(WAIT_S):
        receipt = await session.compact(keep_recent_tokens=1)
        assert receipt.compaction is not None, receipt
        await session.wait_idle()


def id_of(session: AgentSession, words: str) -> EntryId:
    """Give the entry in which the user said something."""
    (found,) = [node.entry for node in session.tree.nodes() if node.preview.startswith(words)]
    return found


def assert_told(ground: Ground, *words: str, but_not: Sequence[str] = ()) -> None:
    """Check what the model was told last."""
    request = heard(ground.provider.requests[-1])
    assert [one for one in words if one not in request] == []
    assert [one for one in but_not if one in request] == []


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def configure(ground: Ground) -> None:
    ground.configure()
    ground.file("a.txt", "the text of a\n")


async def test_it_reads_and_continues_a_session_of_ours(ground: Ground, tmp_path: Path) -> None:
    configure(ground)
    ground.provider.script([READ, says("first answer"), says("second answer"), SUMMARY])
    async with ours(ground) as session:
        await ask(session, "first question")
        await ask(session, "second question ✓ 漢字")
        await compact(session)
        ground.provider.script([says("third answer"), says("fourth answer")])
        await ask(session, "third question")
        await ask(session, "fourth question")
        await session.tree.rename("A shared session")
        await session.tree.label(id_of(session, "third question"), "here")
        await session.tree.navigate(id_of(session, "fourth question"))
        named = session.id
    (path,) = ground.sessions()
    before = lines(path)

    ground.provider.script([READ, says("answer of the other")])
    with ReferenceAgent(ground, tmp_path / "other", ["--session", str(path)]) as other:
        state = other.ask("get_state")
        assert (state["sessionId"], state["sessionName"]) == (named, "A shared session")
        assert Path(state["sessionFile"]) == path
        told = [one["role"] for one in other.ask("get_messages")["messages"]]
        assert told == ["compactionSummary", "assistant", "user", "assistant"]
        other.prompt("question to the other")
        print("the other agent:", json.dumps(other.ask("get_session_stats"), default=str)[:400])
        assert other.ask("get_last_assistant_text")["text"] == "answer of the other"
    assert_told(
        ground,
        "what was agreed so far",
        "second answer",
        "third question",
        "third answer",
        "question to the other",
        "the text of a",
        but_not=("first answer", "fourth question", "fourth answer"),
    )
    after = lines(path)
    assert after[: len(before)] == before
    print("lines: ours", len(before), "and", len(after) - len(before), "of the other")

    ground.provider.script([says("we go on")])
    async with ours(ground, named) as session:
        assert session.tree.title == "A shared session"
        labelled = {node.label: node.preview for node in session.tree.nodes() if node.label}
        assert labelled == {"here": "third question"}
        said = [text_of(m.content) for m in session.info.messages if isinstance(m, UserMessage)]
        assert said == ["third question", "question to the other"]
        await ask(session, "back with us")
    assert_told(ground, "what was agreed so far", "answer of the other", "back with us")
    assert lines(path)[: len(after)] == after


async def test_it_reads_a_fork_of_ours(ground: Ground, tmp_path: Path) -> None:
    configure(ground)
    ground.provider.script([READ, says("first answer"), says("second answer")])
    async with ours(ground) as session:
        await ask(session, "first question")
        await ask(session, "second question")
        await session.tree.label(id_of(session, "first question"), "kept")
        forked = await session.tree.fork(id_of(session, "second question"))
    assert forked.location is not None
    ground.provider.script([says("answer in the fork")])
    with ReferenceAgent(ground, tmp_path / "other", ["--session", forked.location]) as other:
        assert other.ask("get_state")["sessionId"] == forked.session
        other.prompt("another second question")
    assert_told(ground, "first answer", "another second question", but_not=("second answer",))
    async with ours(ground, forked.session) as session:
        assert [node.label for node in session.tree.nodes() if node.label] == ["kept"]
        assert session.info.last_answer() == "answer in the fork"


async def test_ours_reads_and_continues_a_session_of_it(ground: Ground, tmp_path: Path) -> None:
    configure(ground)
    folder = tmp_path / "theirs"
    ground.provider.script([READ, says("first answer"), says("second answer"), SUMMARY])
    with ReferenceAgent(ground, tmp_path / "other", ["--session-dir", str(folder)]) as other:
        other.prompt("first question ✓ 漢字")
        other.prompt("second question")
        other.ask("bash", command="echo from the shell")
        other.ask("set_session_name", name="Made elsewhere")
        other.ask("compact")
        ground.provider.script([says("third answer")])
        other.prompt("third question")
        path = Path(other.ask("get_state")["sessionFile"])
        theirs = other.ask("get_messages")["messages"]
    given = lines(path)

    store = JsonlStore(ground.dirs.data / "sessions", SystemClock())
    done = await import_session(path, store=store, cwd=str(ground.root), clock=SystemClock())
    assert done.skipped_lines == ()
    assert lines(path) == given
    (copy,) = ground.sessions()
    head, *entries = read_entries(copy)
    assert head["parentSession"] == str(path)
    _, *originals = read_entries(path)
    # Who summarised is only written down when it was a hook.
    assert entries == [
        {name: value for name, value in one.items() if (name, value) != ("fromHook", False)}
        for one in originals
    ]
    print("entries of the other agent:", [one["type"] for one in originals])

    ground.provider.script([READ, says("we go on")])
    async with ours(ground, done.session) as session:
        assert session.tree.title == "Made elsewhere"
        assert len(session.info.messages) == len(theirs)
        await ask(session, "with us now")
    assert_told(
        ground,
        "what was agreed so far",
        "echo from the shell",
        "third question",
        "third answer",
        "with us now",
        but_not=("first answer",),
    )

    ground.provider.script([says("once more")])
    with ReferenceAgent(ground, tmp_path / "other", ["--session", str(copy)]) as other:
        other.prompt("and back")
    assert_told(ground, "the text of a", "we go on", "and back")


async def test_a_file_of_it_is_opened_where_it_lies(ground: Ground, tmp_path: Path) -> None:
    configure(ground)
    ground.provider.script([says("first answer")])
    folder = ground.dirs.data / "sessions" / "placed by hand"
    with ReferenceAgent(ground, tmp_path / "other", ["--session-dir", str(folder)]) as other:
        other.prompt("first question")
        theirs = SessionId(other.ask("get_state")["sessionId"])
    ground.provider.script([says("we go on")])
    async with ours(ground, theirs) as session:
        await ask(session, "with us now")
    ground.provider.script([says("once more")])
    (path,) = ground.sessions()
    with ReferenceAgent(ground, tmp_path / "other", ["--session", str(path)]) as other:
        other.prompt("and back")
        said = [one["role"] for one in other.ask("get_messages")["messages"]]
    assert said == ["user", "assistant"] * 3
    assert len({entry["id"] for entry in read_entries(path)}) == len(read_entries(path))
