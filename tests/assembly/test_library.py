"""Stored sessions as front ends see them: pages that hold, ids that may be shortened, documents, copies."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import (
    IndexUnavailable,
    SessionLocked,
    SessionNotFound,
    StorageUnavailable,
    UsageError,
)
from agent_core.resources.paths import AppPaths
from agent_core.storage import SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.session.entries import AT_MS, assistant, entry, header, user


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths(config=tmp_path / "c", data=tmp_path / "d", runtime=tmp_path / "r")


@pytest.fixture
def store(paths: AppPaths) -> JsonlStore:
    return JsonlStore(paths.sessions, SystemClock())


@pytest.fixture
async def library(paths: AppPaths) -> AsyncGenerator[SessionLibrary]:
    async with open_library(paths, clock=SystemClock()) as found:
        yield found


async def say(
    store: SessionStore, session: str, text: str, *, cwd: str = "/w/a", later_ms: int = 0
) -> None:
    log = await store.create(header(session, cwd=cwd))
    at_ms = AT_MS + later_ms
    answer = entry("e2", assistant("yes"), parent="e1", at_ms=at_ms)
    await log.append([entry("e1", user(text), at_ms=at_ms), answer])
    await log.close()


async def test_pages_hold_while_sessions_come_and_go(
    store: JsonlStore, library: SessionLibrary
) -> None:
    for number in range(7):
        await say(store, f"s{number}", "hi", later_ms=number // 2)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await library.list(limit=3, cursor=cursor)
        seen.extend(one.session for one in page.sessions)
        if page.next is None:
            break
        cursor = page.next
        if len(seen) == 3:
            await library.delete(page.sessions[-1].session)
            await say(store, "newest", "hi", later_ms=100)
    assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]


async def test_a_list_with_a_query_holds_what_a_search_finds(
    store: JsonlStore, library: SessionLibrary
) -> None:
    for number in range(5):
        await say(store, f"s{number}", "the parser" if number % 2 else "else", later_ms=number)
    first = await library.list(query="parser", limit=1)
    second = await library.list(query="parser", limit=1, cursor=first.next)
    assert [one.session for one in (*first.sessions, *second.sessions)] == ["s3", "s1"]
    assert second.next is None
    assert len((await library.list(query="  ")).sessions) == 5


@pytest.mark.parametrize(
    ("limit", "cursor", "why"),
    [(0, None, "the limit is 0"), (-1, None, "the limit is -1"), (5, "x", "the cursor 'x'")],
)
async def test_a_limit_or_cursor_that_makes_no_sense_is_refused(
    library: SessionLibrary, limit: int, cursor: str | None, why: str
) -> None:
    for query in (None, "word"):
        with pytest.raises(UsageError, match=why):
            await library.list(query=query, limit=limit, cursor=cursor)


async def test_the_beginning_or_the_end_of_an_id_is_enough_when_it_is_of_one_session(
    store: JsonlStore, library: SessionLibrary
) -> None:
    for name in ("ab", "abc", "abd1", "abd2", "x1"):
        await say(store, name, "hi")
    assert (await library.find("x")).session == "x1"
    assert (await library.find("bc")).session == "abc"
    assert (await library.find("ab")).session == "ab"
    with pytest.raises(SessionNotFound, match="the ids of 2 sessions begin or end with 'abd': abd"):
        await library.find("abd")
    for nothing in ("y", ""):
        with pytest.raises(SessionNotFound, match="no session's id begins or ends with"):
            await library.find(nothing)


async def test_documents_of_each_kind_hold_what_was_said(
    store: JsonlStore, library: SessionLibrary
) -> None:
    await say(store, "s1", "what <b>was</b> said")
    session = header("s1").id
    (summary,) = (await library.list()).sessions
    assert summary.location is not None
    lines = await library.export(session, "jsonl", env={})
    assert lines == summary.location.read_bytes()
    assert b"what" in await library.export(session, "md", env={})
    page = await library.export(session, "html", env={})
    assert page.startswith(b"<!DOCTYPE html>")
    assert b"<b>was" not in page


async def test_an_exported_session_can_be_taken_into_another_folder(
    store: JsonlStore, library: SessionLibrary
) -> None:
    await say(store, "s1", "take me along")
    lines = await library.export(header("s1").id, "jsonl", env={})
    taken = await library.import_(lines, "/w/b")
    (found,) = (await library.list("/w/b")).sessions
    assert (found.session, found.parent, found.preview) == (taken.session, "s1", "take me along")


async def test_a_session_that_is_open_is_not_removed(
    store: JsonlStore, library: SessionLibrary
) -> None:
    await say(store, "s1", "hi")
    opened = await store.open(header("s1").id)
    with pytest.raises(SessionLocked):
        await library.delete(header("s1").id)
    assert len((await library.read(header("s1").id)).entries) == 2
    await opened.log.close()
    await library.delete(header("s1").id)
    assert (await library.list()).sessions == ()


async def test_sessions_in_memory_are_listed_and_exported_and_say_that_they_have_no_index() -> None:
    store = MemoryStore()
    library = SessionLibrary(store, index=None, clock=SystemClock())
    await say(store, "s1", "hi")
    assert [one.session for one in (await library.list()).sessions] == ["s1"]
    assert (await library.export(header("s1").id, "jsonl", env={})).count(b"\n") == 3
    with pytest.raises(IndexUnavailable, match="have no index"):
        await library.search("hi")
    await library.refresh()
    await library.close()


async def test_the_outputs_of_its_tools_go_with_a_session(
    paths: AppPaths, store: JsonlStore, library: SessionLibrary
) -> None:
    for name in ("s1", "s2", "s3"):
        await say(store, name, "hi")
    elsewhere = paths.data / "elsewhere"
    for folder in (paths.outputs / "s1" / "deep", paths.outputs / "s2", elsewhere):
        folder.mkdir(parents=True)
        (folder / "bash.log").write_text("the whole output", encoding="utf-8")
    (paths.outputs / "s3").symlink_to(elsewhere)
    await library.delete(header("s1").id)
    assert sorted(one.name for one in paths.outputs.iterdir()) == ["s2", "s3"]
    await library.delete(header("s3").id)
    assert [one.name for one in paths.outputs.iterdir()] == ["s2"]
    assert (elsewhere / "bash.log").exists()


async def test_what_changed_files_held_goes_with_a_session(
    paths: AppPaths, store: JsonlStore
) -> None:
    library = SessionLibrary(store, index=None, clock=SystemClock(), blobs=paths.blobs)
    for name in ("s1", "s2"):
        await say(store, name, "hi")
        (paths.blobs / name / "ab").mkdir(parents=True)
        (paths.blobs / name / "ab" / "abcd").write_bytes(b"old")
    await library.delete(header("s1").id)
    assert [one.name for one in paths.blobs.iterdir()] == ["s2"]


async def test_the_outputs_of_a_session_that_stays_are_left_alone(
    paths: AppPaths, store: JsonlStore, library: SessionLibrary
) -> None:
    await say(store, "s1", "hi")
    (paths.outputs / "s1").mkdir(parents=True)
    opened = await store.open(header("s1").id)
    with pytest.raises(SessionLocked):
        await library.delete(header("s1").id)
    await opened.log.close()
    assert (paths.outputs / "s1").is_dir()


async def test_an_id_that_leads_out_of_the_folder_removes_nothing_there(
    paths: AppPaths, library: SessionLibrary
) -> None:
    placed = paths.sessions / "placed.jsonl"
    placed.parent.mkdir(parents=True)
    placed.write_text(
        '{"type":"session","version":3,"id":"..","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}\n',
        encoding="utf-8",
    )
    paths.outputs.mkdir()
    await library.delete(SessionId(".."))
    assert not placed.exists()
    assert paths.outputs.is_dir()


async def test_outputs_that_cannot_be_removed_are_named(
    paths: AppPaths, store: JsonlStore, library: SessionLibrary
) -> None:
    await say(store, "s1", "hi")
    paths.outputs.mkdir(parents=True)
    (paths.outputs / "s1").write_text("no folder", encoding="utf-8")
    with pytest.raises(StorageUnavailable, match=r"the session was removed, .*outputs/s1' could"):
        await library.delete(header("s1").id)
    assert (await library.list()).sessions == ()
