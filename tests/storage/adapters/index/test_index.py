"""The index finds what was said, in any script, and nothing else."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent_core.kernel import EntryId, SystemClock
from agent_core.messages import BashMessage
from agent_core.storage.adapters.index.sqlite import SqliteIndex
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import LabelEntry
from tests.storage.adapters.index.indexed import names, opened, rename, say
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    header,
    result,
    user,
)

DAY_MS = 24 * 3600 * 1000


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


@pytest.mark.parametrize(
    "query",
    [
        "会话",
        "话索",
        "索",
        "会话索引",
        "PARSER",
        "pars",
        "naive",
        "the parser",
        '"the parser"',
        "don't",
        "v1.2",
        "ﾃｽ",
    ],
)
async def test_a_session_is_found_by_what_was_said(
    store: JsonlStore, index: SqliteIndex, query: str
) -> None:
    await say(
        store,
        "s1",
        user("Fix the Parser: 会话索引, テスト"),
        assistant("A naïve one; don't use v1.2"),
    )
    await say(store, "s2", user("something else 会 话 是"))
    assert names(await index.search(query))[:1] == ["s1"]


@pytest.mark.parametrize("query", ["引索", "arser", '"parser the"', "the nothing", "会议"])
async def test_what_was_not_said_is_not_found(
    store: JsonlStore, index: SqliteIndex, query: str
) -> None:
    await say(store, "s1", user("Fix the Parser: 会话索引"))
    assert await index.search(query) == ()


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "*",
        "AND",
        "a AND",
        "NOT x",
        "text:",
        ":",
        "(",
        "^a",
        "a*b",
        "a-b",
        "'",
        "\x00",
        "\ud800",
        "NEAR(a b)",
        "{a}",
        "+",
    ],
)
async def test_a_query_of_odd_characters_is_no_error(
    store: JsonlStore, index: SqliteIndex, query: str
) -> None:
    await say(store, "s1", user("Fix it"))
    assert await index.search(query) == ()


async def test_words_may_stand_in_different_messages(store: JsonlStore, index: SqliteIndex) -> None:
    await say(store, "s1", user("about the parser"), assistant("the lexer"))
    await say(store, "s2", user("about the parser"))
    assert names(await index.search("parser lexer")) == ["s1"]


async def test_a_hit_shows_its_place(store: JsonlStore, index: SqliteIndex) -> None:
    await say(store, "s1", user("first"), assistant("In the end the parser was wrong"))
    (hit,) = await index.search("parser")
    assert hit.entry == "e2"
    assert hit.snippet == "In the end the parser was wrong"
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["parser"]


async def test_titles_weigh_more_and_new_sessions_come_first(
    store: JsonlStore, index: SqliteIndex
) -> None:
    await say(store, "old", user("the parser"), at_ms=AT_MS - 400 * DAY_MS)
    await say(store, "new", user("the parser"))
    await say(store, "titled", user("something"), at_ms=AT_MS - 400 * DAY_MS)
    await rename(store, "titled", "Parser work")
    for number in range(5):
        await say(store, f"other{number}", user("of no interest"))
    assert names(await index.search("parser")) == ["titled", "new", "old"]


async def test_only_the_present_title_counts(store: JsonlStore, index: SqliteIndex) -> None:
    await say(store, "s1", user("hello"))
    await rename(store, "s1", "First name")
    assert names(await index.search("first")) == ["s1"]
    await rename(store, "s1", "Second name")
    assert await index.search("first") == ()
    assert names(await index.search("second")) == ["s1"]


async def test_commands_summaries_and_labels_are_searched_and_of_outputs_the_beginning(
    store: JsonlStore, index: SqliteIndex
) -> None:
    ran = BashMessage(command="make quux", output="x", exit_code=0, at_ms=AT_MS)
    long = "heading " + "filler " * 100 + "tailword"
    log = await store.create(header())
    entries = chain(
        user("hi"), assistant(call("bash", {"command": "grep foobar"})), result(long), ran
    )
    label = LabelEntry(
        id=EntryId("l"), parent=EntryId("c"), at_ms=AT_MS, target=EntryId("e1"), label="milestone"
    )
    await log.append(
        [*entries, compaction("c", parent="e4", first_kept="e4", summary="summed up"), label]
    )
    await log.close()
    found = {
        word: len(await index.search(word))
        for word in ("foobar", "quux", "summed", "milestone", "heading", "tailword")
    }
    assert found == {
        "foobar": 1,
        "quux": 1,
        "summed": 1,
        "milestone": 1,
        "heading": 1,
        "tailword": 0,
    }


async def test_the_list_says_what_reading_every_file_says(
    store: JsonlStore, index: SqliteIndex
) -> None:
    await say(store, "s1", user("one"), assistant("two", model="x"), cwd="/w/a")
    await say(store, "s2", user("three"), cwd="/w/b", at_ms=AT_MS + 5)
    await rename(store, "s1", "Title")
    assert await index.list() == await store.list()
    assert await index.list("/w/a") == await store.list("/w/a")
    (one,) = await index.list("/w/a")
    assert (one.title, one.model, one.messages, one.preview) == ("Title", "lab/x", 2, "one")


async def test_a_search_can_be_kept_to_a_folder_and_paged(
    store: JsonlStore, index: SqliteIndex
) -> None:
    for number in range(5):
        await say(store, f"s{number}", user("parser"), cwd=f"/w/{number % 2}", at_ms=AT_MS + number)
    assert names(await index.search("parser", cwd="/w/1")) == ["s3", "s1"]
    pages = [names(await index.search("parser", limit=2, offset=offset)) for offset in (0, 2, 4)]
    assert pages == [["s4", "s3"], ["s2", "s1"], ["s0"]]
