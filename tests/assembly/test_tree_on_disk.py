"""The tree in the file: what a move, a label and a fork write, and what outlives the process."""

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from agent_core.compaction import CompactionPolicy
from agent_core.events import ErrorRaised
from agent_core.kernel import SessionId
from agent_core.kernel.errors import StorageUnavailable
from agent_core.session.context import SessionOptions
from agent_core.storage import OpenedSession, Recovery, SessionLog
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import AnyEntry
from agent_core.transcript.entries import ColdEntry
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import header
from tests.support.session.folders import Folder, ask, handled
from tests.support.session.scripted_model import ScriptedModel, say
from tests.support.session.sessions import bench, words
from tests.support.session.trees import node, talk, talked

LONG = "word " * 2_000


def lines(path: str | Path | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path / "sessions", FakeClock())


async def test_a_move_is_one_line_that_every_reader_takes_for_the_leaf(store: JsonlStore) -> None:
    async with bench(talk(), store=store) as b:
        await talked(b, "u1", "u2")
        before = lines(b.session.info.location)
        await b.session.tree.navigate(node(b, "a1"))
        *same, added = lines(b.session.info.location)
        assert same == before
        assert (added["type"], added["customType"]) == ("custom", "tiller.leaf")
        assert (added["parentId"], added["data"]) == (node(b, "a1"), {"from": before[-1]["id"]})


async def test_a_crash_right_after_a_move_opens_at_the_new_place(
    store: JsonlStore, tmp_path: Path
) -> None:
    async with bench(talk(), store=store) as b:
        await talked(b, "u1", "u2")
        await b.session.tree.navigate(node(b, "a1"))
        leaf, session = b.session.tree.leaf, b.session.id
        location = Path(b.session.info.location or "")
        there = tmp_path / "copy" / location.parent.name
        there.mkdir(parents=True)
        _ = copy(location, there)
    died = JsonlStore(tmp_path / "copy", FakeClock())
    async with bench(ScriptedModel([say("a2b")]), store=died, opened=await died.open(session)) as b:
        assert b.session.tree.leaf == leaf
        await talked(b, "u2b")
        assert [words(message) for message in b.messages] == ["u1", "a1", "u2b", "a2b"]


async def test_a_fork_is_a_file_of_its_own_that_names_where_it_comes_from(
    store: JsonlStore,
) -> None:
    async with bench(talk(), store=store) as b:
        await talked(b, "u1", "u2")
        await b.session.tree.label(node(b, "a1"), "start")
        before, source = lines(b.session.info.location), b.session.info.location
        forked = await b.session.tree.fork(node(b, "u2"))
        assert lines(source) == before
    head, *entries = lines(forked.location)
    assert (head["id"], head["parentSession"], head["cwd"]) == (
        forked.session,
        source,
        "/project",
    )
    assert [entry["parentId"] for entry in entries] == [
        None,
        *(entry["id"] for entry in entries[:-1]),
    ]
    assert [entry["type"] for entry in entries] == [
        "message",
        "custom",
        "message",
        "custom",
        "label",
    ]
    assert not list(Path(forked.location or "").parent.glob("*.lock"))


async def test_a_fork_at_the_first_words_makes_no_file(store: JsonlStore) -> None:
    async with bench(talk(), store=store) as b:
        await talked(b, "u1")
        forked = await b.session.tree.fork(node(b, "u1"))
        assert (forked.session, forked.location) == (None, None)
        assert [one.session for one in await store.list()] == [b.session.id]


async def test_what_a_compaction_put_away_is_read_back_for_a_move_and_a_fork(
    store: JsonlStore,
) -> None:
    notes = [say("## Goal\nx"), say("## Original Request\nx")]
    scripted = ScriptedModel([say(LONG + "1"), say(LONG + "2"), say("a3"), *notes])
    options = SessionOptions(auto_compact=False, compaction=CompactionPolicy(keep_recent_tokens=10))
    async with bench(scripted, store=store, options=options) as b:
        await talked(b, "u1", "u2", "u3")
        await b.session.compact()
        await b.idle()
        session = b.session.id
    opened = await store.open(session)
    assert any(isinstance(entry, ColdEntry) for entry in opened.entries)
    async with bench(ScriptedModel(), store=store, opened=opened) as b:
        second = node(b, "u2")
        forked = await b.session.tree.fork(second)
        moved = await b.session.tree.navigate(second)
        assert (moved.editor_text, forked.text) == ("u2", "u2")
        assert [words(message) for message in b.messages] == ["u1", LONG + "1"]
    assert forked.session is not None
    async with bench(ScriptedModel(), store=store, opened=await store.open(forked.session)) as b:
        assert [words(message) for message in b.messages] == ["u1", LONG + "1"]


class FullDisk:
    """A log that cannot write as long as the test says so."""

    def __init__(self, inner: SessionLog) -> None:
        self.is_full = False
        self._inner = inner
        self.header = inner.header
        self.location = inner.location
        self.attachments = inner.attachments
        self.cool = inner.cool
        self.load = inner.load
        self.sync = inner.sync
        self.close = inner.close

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        if self.is_full:
            raise StorageUnavailable("the disk is full")
        await self._inner.append(entries)


async def test_on_a_full_disk_a_move_a_label_and_a_title_are_refused_and_nothing_has_changed(
    store: JsonlStore,
) -> None:
    log = FullDisk(await store.create(header(cwd="/project")))
    opened = OpenedSession(log=log, entries=(), recovery=Recovery())
    async with bench(talk(), store=store, opened=opened) as b:
        await talked(b, "u1", "u2")
        tree, before, leaf = b.session.tree, b.session.info.entries, b.session.tree.leaf
        log.is_full = True
        for refused in (
            lambda: tree.navigate(node(b, "a1"), label="x"),
            lambda: tree.navigate(node(b, "u1")),
            lambda: tree.label(node(b, "a1"), "x"),
            lambda: tree.rename("x"),
        ):
            with pytest.raises(StorageUnavailable, match="full"):
                await refused()
        assert (b.session.info.entries, tree.leaf, tree.title) == (before, leaf, None)
        assert b.session.info.snapshot().unsaved == 0
        assert not any(isinstance(event, ErrorRaised) for event in b.seen())
        log.is_full = False
        await tree.navigate(node(b, "a1"), label="x")
        await talked(b, "u2b")
        assert [words(message) for message in b.messages] == ["u1", "a1", "u2b", "a3"]


async def test_a_session_opens_with_the_model_of_the_branch_where_it_stands(
    folder: Folder,
) -> None:
    keys = folder.env | {"OPENAI_API_KEY": "k"}
    async with folder.open(hooks=handled(), env=keys) as session:
        await session.models.choose("openai/gpt-5")
        await ask(session, "u1")
        first = session.info.entries[-1].id
        await session.models.choose("embedded/repair")
        await ask(session, "u2")
        await session.tree.navigate(first)
        assert session.info.config.model == "openai/gpt-5"
        opened = session.id
    async with folder.open(session=opened, model=None, env=keys) as session:
        assert session.info.config.model == "openai/gpt-5"


@pytest.mark.parametrize("kept", ["files", "memory"])
async def test_a_clone_can_be_opened_where_the_session_is_kept(folder: Folder, kept: str) -> None:
    store: JsonlStore | MemoryStore | str = MemoryStore() if kept == "memory" else "files"
    async with folder.open(hooks=handled(), store=store) as session:
        await ask(session, "u1")
        await session.tree.rename("My work")
        cloned = await session.tree.clone()
    assert isinstance(cloned.session, str)
    async with folder.open(session=SessionId(cloned.session), store=store) as session:
        assert [one.preview for one in session.tree.nodes()] == ["u1"]
        assert (session.tree.title, session.id) == ("My work", cloned.session)
