"""The index follows the files, and can always be thrown away."""

import sqlite3
import stat
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from agent_core.kernel import SystemClock
from agent_core.storage.adapters.index.lines import LINE_BYTES
from agent_core.storage.adapters.index.sqlite import SqliteIndex
from agent_core.storage.adapters.index.tables import connect
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.storage.adapters.index.indexed import names, opened, say
from tests.support.session.entries import assistant, entry, header, user


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(data: Path) -> JsonlStore:
    return JsonlStore(data / "sessions", SystemClock())


@pytest.fixture
async def index(data: Path) -> AsyncGenerator[SqliteIndex]:
    found = opened(data)
    yield found
    await found.close()


async def test_of_a_file_that_grew_only_the_new_part_is_read(
    store: JsonlStore, index: SqliteIndex
) -> None:
    path = await say(store, "s1", *(user(f"word{number} " + "x" * 400) for number in range(20)))
    assert names(await index.search("word9")) == ["s1"]
    grown = path.read_bytes().replace(b"word9 ", b"other ") + b""
    with path.open("r+b") as file:
        file.write(grown)
    log = (await store.open(header("s1").id)).log
    await log.append([entry("new", user("freshly said"), parent="e20")])
    await log.close()
    assert names(await index.search("freshly")) == ["s1"]
    assert names(await index.search("word9")) == ["s1"], "what was read before was read again"
    (one,) = await index.list()
    assert one.messages == 21


@pytest.mark.parametrize("how", ["in place", "by another file", "cut short"])
async def test_a_file_that_was_changed_is_read_anew(
    store: JsonlStore, index: SqliteIndex, how: str
) -> None:
    path = await say(store, "s1", user("before"), assistant("lasting"), user("later"))
    assert names(await index.search("before")) == ["s1"]
    text = path.read_bytes()
    if how == "cut short":
        path.write_bytes(
            b"".join(text.splitlines(keepends=True)[:1] + text.splitlines(keepends=True)[2:3])
        )
    elif how == "in place":
        path.write_bytes(text.replace(b"before", b"behind"))
    else:
        other = path.with_suffix(".new")
        other.write_bytes(text.replace(b"before", b"in the beginning"))
        other.replace(path)
    assert await index.search("before") == ()
    assert names(await index.search("lasting")) == ["s1"]
    assert (await index.list())[0].messages == (1 if how == "cut short" else 3)


async def test_a_session_that_is_gone_is_found_no_more(
    store: JsonlStore, index: SqliteIndex
) -> None:
    path = await say(store, "s1", user("parser"))
    await say(store, "s2", user("parser"))
    assert len(await index.search("parser")) == 2
    path.unlink()
    assert names(await index.search("parser")) == ["s2"]
    assert [one.session for one in await index.list()] == ["s2"]


async def test_what_is_no_session_is_passed_over_and_damaged_lines_hide_only_themselves(
    data: Path, store: JsonlStore, index: SqliteIndex
) -> None:
    path = await say(store, "s1", user("parser"))
    folder = path.parent
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "other.jsonl").write_text('{"type":"message"}\nparser\n', encoding="utf-8")
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 100)
    with path.open("ab") as file:
        file.write(b'{broken parser\n[1]\n\n"x"\n{"type":"message","id":"e9","message":{"role":"us')
    assert names(await index.search("parser")) == ["s1"]
    assert [(one.session, one.messages) for one in await index.list()] == [("s1", 1)]
    with path.open("ab") as file:
        file.write(b'er","content":"finished"}}\n')
    assert names(await index.search("finished")) == ["s1"]
    assert (await index.list())[0].messages == 2


@pytest.mark.parametrize("how", ["deleted", "damaged", "half damaged", "older"])
async def test_an_index_that_cannot_be_used_is_made_anew(
    data: Path, store: JsonlStore, how: str
) -> None:
    for number in range(30):
        await say(store, f"s{number}", user(f"parser {number} " + "words " * 200))
    first = opened(data)
    assert len(await first.search("parser")) == 30
    await first.close()
    path = data / "index.sqlite3"
    match how:
        case "deleted":
            path.unlink()
        case "damaged":
            path.write_bytes(b"this is no database" * 1000)
        case "half damaged":
            whole = path.read_bytes()
            path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
        case _:
            with sqlite3.connect(path) as connection:
                connection.executescript(
                    "DROP TABLE files; CREATE TABLE files (x); PRAGMA user_version = 0"
                )
            connection.close()
    again = opened(data)
    assert len(await again.search("parser")) == 30
    assert again.problem is None
    await again.close()


async def test_an_index_that_is_deleted_while_it_is_open_is_made_anew(
    data: Path, store: JsonlStore, index: SqliteIndex
) -> None:
    await say(store, "s1", user("parser"))
    assert len(await index.search("parser")) == 1
    for suffix in ("", "-wal", "-shm"):
        (data / f"index.sqlite3{suffix}").unlink()
    await say(store, "s2", user("parser"))
    assert len(await index.search("parser")) == 2
    assert (data / "index.sqlite3").exists()


async def test_without_a_place_for_its_file_the_index_is_built_in_memory_and_says_so(
    data: Path, store: JsonlStore, index: SqliteIndex
) -> None:
    await say(store, "s1", user("parser"))
    (data / "index.sqlite3").mkdir()
    assert names(await index.search("parser")) == ["s1"]
    assert index.problem is not None
    assert "index.sqlite3' cannot be used" in index.problem
    await say(store, "s2", user("parser"))
    assert len(await index.search("parser")) == 2


async def test_several_processes_at_once_do_no_harm(data: Path, store: JsonlStore) -> None:
    for number in range(20):
        await say(store, f"s{number}", *(user(f"parser {turn}") for turn in range(10)))
    indexes = [opened(data) for _ in range(4)]
    async with anyio.create_task_group() as group:
        for one in indexes:
            group.start_soon(one.refresh)
    for one in indexes:
        assert len(await one.search("parser")) == 20
        assert one.problem is None
        await one.close()
    with sqlite3.connect(data / "index.sqlite3") as connection:
        (count,) = connection.execute("SELECT count(*) FROM pieces").fetchone()
    connection.close()
    assert count == 200


async def test_a_new_index_is_opened_by_several_at_the_same_moment(tmp_path: Path) -> None:
    failures: list[sqlite3.Error] = []

    def open_index(path: Path, start: threading.Barrier) -> None:
        start.wait()
        try:
            connect(path).close()
        except sqlite3.Error as error:
            failures.append(error)

    for number in range(50):
        start = threading.Barrier(4)
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(to_thread.run_sync, open_index, tmp_path / f"{number}", start)
    assert failures == []


async def test_a_cancelled_refresh_is_gone_on_with(store: JsonlStore, index: SqliteIndex) -> None:
    for number in range(40):
        await say(store, f"s{number}", *(user(f"parser {turn}") for turn in range(10)))
    async with anyio.create_task_group() as group:
        group.start_soon(index.refresh)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert len(await index.search("parser")) == 40


async def test_the_index_is_for_the_user_alone_and_can_be_closed_twice(
    data: Path, store: JsonlStore, index: SqliteIndex
) -> None:
    await say(store, "s1", user("secret"))
    await index.refresh()
    for suffix in ("", "-wal", "-shm"):
        assert stat.S_IMODE((data / f"index.sqlite3{suffix}").stat().st_mode) == 0o600
    await index.close()
    await index.close()


async def test_no_folder_is_no_sessions(data: Path, index: SqliteIndex) -> None:
    assert await index.list() == ()
    assert await index.search("x") == ()


async def test_a_line_of_enormous_size_hides_only_itself(
    store: JsonlStore, index: SqliteIndex
) -> None:
    path = await say(store, "s1", user("parser"))
    with path.open("ab") as file:
        file.write(b'{"type":"message","id":"big","message":{"role":"user","content":"lexer ')
        file.write(b"x" * LINE_BYTES + b'"}}\n')
        file.write(b'{"type":"message","id":"e9","message":{"role":"user","content":"after it"}}\n')
    assert names(await index.search("parser after")) == ["s1"]
    assert await index.search("lexer") == ()
