"""Session files from elsewhere become sessions of this workspace, whole, and are only read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionDamaged, StorageUnavailable, TillerError
from agent_core.messages import UserMessage, text_of
from agent_core.storage import SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.storage.session_import import ImportResult, import_session
from agent_core.transcript import MessageEntry, UnknownEntry
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import AT_MS, assistant, chain, compaction, header, user

Json = dict[str, Any]
HERE = "/w/here"
THERE: Json = {
    "type": "session",
    "version": 3,
    "id": "theirs",
    "timestamp": "2025-01-01T00:00:00.000Z",
    "cwd": "/somewhere/else",
}


def said(entry_id: str, words: str, *, parent: str | None = None) -> Json:
    return {
        "type": "message",
        "id": entry_id,
        "parentId": parent,
        "timestamp": "2025-01-01T00:00:01.000Z",
        "message": {"role": "user", "content": words, "timestamp": 1_735_689_601_000},
    }


def lines(*raws: Json) -> bytes:
    return b"".join(json.dumps(raw).encode() + b"\n" for raw in raws)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(AT_MS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions"


@pytest.fixture
def store(folder: Path, clock: FakeClock) -> JsonlStore:
    return JsonlStore(folder, clock)


def stored_lines(folder: Path) -> list[Json]:
    (path,) = folder.glob("*/*.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


async def test_a_file_becomes_a_new_session_of_this_workspace(
    store: JsonlStore, folder: Path, clock: FakeClock, tmp_path: Path
) -> None:
    source = tmp_path / "theirs.jsonl"
    first = said("a", "hello")
    odd = {"type": "from_the_future", "id": "b", "parentId": "a", "timestamp": "x", "z": [1, {}]}
    branch = said("c", "or rather", parent="a")
    given = lines({**THERE, "mood": "good", "parentSession": "/older"}, first, odd, branch)
    source.write_bytes(given)
    done = await import_session(source, store=store, cwd=HERE, clock=clock)
    assert source.read_bytes() == given
    head, *entries = stored_lines(folder)
    assert head == {
        "type": "session",
        "version": 3,
        "id": done.session,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": HERE,
        "parentSession": str(source),
        "mood": "good",
    }
    assert done.session != "theirs"
    assert entries[1] == odd
    assert [(one["id"], one["parentId"]) for one in entries] == [
        ("a", None),
        ("b", "a"),
        ("c", "a"),
    ]
    assert done == ImportResult(session=done.session, entries=3)
    assert [one.session for one in await store.list(HERE)] == [done.session]


async def test_a_session_of_ours_comes_back_the_same(store: JsonlStore, clock: FakeClock) -> None:
    talk = chain(user("one"), assistant("two"), user("three"))
    log = await store.create(header("mine"))
    entries = [*talk, compaction("k", parent="e3", first_kept="e3")]
    await log.append(entries)
    await log.close()
    assert log.location is not None
    done = await import_session(log.location, store=store, cwd=HERE, clock=clock)
    copy = await store.read(done.session)
    assert copy.entries == tuple(entries)
    assert copy.header.parent_session == str(log.location)


async def test_content_without_a_path_names_the_session_it_was(
    store: JsonlStore, folder: Path, clock: FakeClock
) -> None:
    await import_session(lines(THERE, said("a", "hello")), store=store, cwd=HERE, clock=clock)
    assert stored_lines(folder)[0]["parentSession"] == "theirs"


async def test_a_store_in_memory_takes_one_too(clock: FakeClock) -> None:
    store: SessionStore = MemoryStore()
    done = await import_session(
        lines(THERE, said("a", "hello")), store=store, cwd=HERE, clock=clock
    )
    opened = await store.open(done.session)
    (only,) = opened.entries
    assert isinstance(only, MessageEntry)


async def test_version_1_is_brought_to_today(
    store: JsonlStore, folder: Path, clock: FakeClock
) -> None:
    old = {key: value for key, value in THERE.items() if key != "version"}
    message = {"type": "message", "timestamp": "2025-01-01T00:00:01.000Z"}
    given = lines(
        old,
        {**message, "message": {"role": "user", "content": "a", "timestamp": 1}},
        {**message, "message": {"role": "hookMessage", "customType": "x", "content": "b"}},
        {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5},
    )
    await import_session(given, store=store, cwd=HERE, clock=clock)
    head, first, hook, cut = stored_lines(folder)
    assert head["version"] == 3
    assert hook["parentId"] == first["id"]
    assert cut["firstKeptEntryId"] == hook["id"]


async def test_what_could_not_be_taken_over_is_told(store: JsonlStore, clock: FakeClock) -> None:
    given = lines(THERE, said("a", "hello")) + b"garbage\n" + lines(said("b", "x", parent="a"))
    done = await import_session(given + b'{"type":"mess', store=store, cwd=HERE, clock=clock)
    assert done.skipped_lines == (3, 5)
    assert done.entries == 2


async def test_half_a_character_is_replaced_and_told(store: JsonlStore, clock: FakeClock) -> None:
    done = await import_session(
        lines(THERE, said("a", "x\ud83d")), store=store, cwd=HERE, clock=clock
    )
    assert (done.entries, done.skipped_lines, done.patched_lines) == (1, (), (2,))
    (only,) = (await store.read(done.session)).entries
    assert isinstance(only, MessageEntry)
    assert isinstance(only.message, UserMessage)
    assert text_of(only.message.content) == "x\ufffd"


async def test_an_entry_of_an_unknown_type_is_kept(store: JsonlStore, clock: FakeClock) -> None:
    odd = {"type": "usage2", "id": "u", "parentId": "a", "timestamp": "2025-01-01T00:00:02.000Z"}
    done = await import_session(
        lines(THERE, said("a", "hello"), odd), store=store, cwd=HERE, clock=clock
    )
    opened = await store.open(done.session)
    assert [type(one) for one in opened.entries] == [MessageEntry, UnknownEntry]
    await opened.log.close()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b" \n\n", "is empty", id="blank"),
        pytest.param(b"# notes\n", "no readable line", id="text"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0", "no readable line", id="picture"),
        pytest.param(b'{"type":"event"}\n', "is no session file", id="other JSON"),
        pytest.param(
            lines({**THERE, "version": 4}, said("a", "x")), "of format version 4", id="newer"
        ),
        pytest.param(lines(THERE), "nothing was said", id="only a header"),
        pytest.param(
            lines(THERE, {**said("a", "x"), "type": "session_info", "name": "n"}),
            "nothing was said",
            id="no words",
        ),
    ],
)
async def test_what_is_no_session_is_refused_in_one_sentence(
    clock: FakeClock, tmp_path: Path, given: bytes, words: str
) -> None:
    store = JsonlStore(tmp_path / "sessions", clock)
    source = tmp_path / "given.jsonl"
    source.write_bytes(given)
    with pytest.raises(SessionDamaged) as caught:
        await import_session(source, store=store, cwd=HERE, clock=clock)
    message = str(caught.value)
    assert words in message
    assert str(source) in message
    assert "\n" not in message
    assert await store.list() == ()
    assert source.read_bytes() == given


async def test_a_file_that_is_not_there_is_named(
    store: JsonlStore, clock: FakeClock, tmp_path: Path
) -> None:
    for source in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(StorageUnavailable, match="could not be read") as caught:
            await import_session(source, store=store, cwd=HERE, clock=clock)
        assert str(source) in str(caught.value)


async def test_a_copy_that_cannot_be_written_leaves_nothing(
    clock: FakeClock, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    store = JsonlStore(blocked / "sessions", clock)
    with pytest.raises(TillerError):
        await import_session(lines(THERE, said("a", "x")), store=store, cwd=HERE, clock=clock)
    assert blocked.read_bytes() == b""


async def test_two_imports_of_one_file_are_two_sessions(
    store: JsonlStore, clock: FakeClock
) -> None:
    given: Sequence[ImportResult] = [
        await import_session(lines(THERE, said("a", "x")), store=store, cwd=HERE, clock=clock)
        for _ in range(2)
    ]
    ids: set[SessionId] = {one.session for one in given}
    assert len(ids) == 2
