"""Bodies that nobody needs now stay in the file, and come back whole."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.kernel.errors import SessionClosed, StorageUnavailable
from agent_core.messages import BashMessage, Cost, Usage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    ContextEditEntry,
    CustomEntry,
    LabelEntry,
    LineLocation,
    ModelChange,
    Transcript,
    UnknownEntry,
    build_context,
)
from agent_core.transcript.codec import encode_entry
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    header,
    user,
)

USAGE = Usage(input=5, output=7, cost=Cost(input=0.5))


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path, SystemClock())


async def test_only_what_the_context_needs_is_held_whole(store: JsonlStore) -> None:
    answer = assistant("two\nwords", call("read"), call("grep", call_id="c2"), usage=USAGE)
    ls = BashMessage(command="ls", output="x", exit_code=0, at_ms=AT_MS)
    said = chain(user("one"), answer, ls, user("three"))
    summary = compaction("c", parent="e4", first_kept="e4")
    await _write(store, [*said, summary, entry("e5", user("four"), parent="c")])
    opened = await store.open(SessionId("s1"))
    first, second, third = opened.entries[:3]
    assert list(opened.entries[3:]) == [said[3], summary, entry("e5", user("four"), parent="c")]
    assert first == ColdEntry(
        id=EntryId("e1"),
        parent=None,
        at_ms=AT_MS,
        kind="message",
        role="user",
        preview="one",
        place=LineLocation(offset=len(_header_line(opened.log.location)), size=_size(said[0])),
    )
    assert isinstance(first, ColdEntry)
    assert isinstance(second, ColdEntry)
    assert (second.role, second.preview, second.model) == ("assistant", "two words", "lab/m")
    assert (second.usage, second.stop_reason, second.tool_calls) == (
        USAGE,
        "stop",
        ("read", "grep"),
    )
    assert isinstance(third, ColdEntry)
    assert (third.role, third.preview) == ("bashExecution", "ls")
    assert await opened.log.load([third, first, second]) == (said[2], said[0], said[1])
    await opened.log.close()


async def test_the_context_of_an_opened_session_is_that_of_the_whole_file(
    store: JsonlStore,
) -> None:
    said = chain(*(user(str(number)) for number in range(1, 4_001)))
    entries: list[AnyEntry] = [*said[:2000]]
    for number in range(2_000, 4_000, 100):
        parent = entries[-1].id
        kept = said[number - 30].id if number % 300 else said[number - 130].id
        entries.append(compaction(f"c{number}", parent=parent, first_kept=kept))
        batch = said[number : number + 100]
        first = entry(batch[0].id, batch[0].message, parent=f"c{number}")
        entries.extend([first, *batch[1:]])
    side = entry("side", user("side"), parent="e10")
    for last in ([], [side], [side, entry("e9999", user("on"), parent="e2500")]):
        await _write(store, [*entries, *last])
        opened = await store.open(SessionId("s1"))
        whole = Transcript([*entries, *last])
        assert build_context(Transcript(opened.entries).path()) == build_context(whole.path())
        cold = [one for one in opened.entries if isinstance(one, ColdEntry)]
        assert len(cold) > 1_500
        known = {one.id: one for one in whole.entries}
        assert await opened.log.load(cold) == tuple(known[one.id] for one in cold)
        await opened.log.close()
        await store.delete(SessionId("s1"))


async def test_small_entries_are_always_held_whole(store: JsonlStore) -> None:
    base: dict[str, Any] = {"parent": EntryId("e1"), "at_ms": AT_MS}
    small: list[AnyEntry] = [
        ModelChange(id=EntryId("a"), **base, provider="p", model="m"),
        LabelEntry(id=EntryId("b"), **base, target=EntryId("e1"), label="l"),
        ContextEditEntry(id=EntryId("d"), **base, target=EntryId("e1"), replacement=None),
        CustomEntry(id=EntryId("f"), **base, custom_type="tiller.run", data={"run": "r"}),
    ]
    large: list[AnyEntry] = [
        CustomEntry(id=EntryId("g"), **base, custom_type="other", data={"x": 1}),
        BranchSummaryEntry(id=EntryId("h"), **base, from_id="e1", summary="went", usage=USAGE),
        UnknownEntry(id=EntryId("i"), **base, raw={"type": "new", "id": "i", "parentId": "e1"}),
    ]
    end = compaction("c", parent="e1", first_kept="c")
    await _write(store, [*chain(user("one")), *small, *large, end])
    opened = await store.open(SessionId("s1"))
    assert list(opened.entries[1:5]) == small
    cold = [one for one in opened.entries if isinstance(one, ColdEntry)]
    assert [one.kind for one in cold] == ["message", "custom", "branch_summary", "new"]
    assert [one.usage for one in cold] == [None, None, USAGE, None]
    loaded = await opened.log.load(cold[1:3])
    assert list(loaded) == large[:2]
    await opened.log.close()


async def test_lines_written_since_can_be_let_go_too(store: JsonlStore) -> None:
    log = await store.create(header())
    said = chain(*(user(f"{number} ü") for number in range(5)))
    await log.append(said[:2])
    await log.append(said[2:3])
    await log.append(said[3:])
    held = [one for one in log.cool(said) if isinstance(one, ColdEntry)]
    assert await log.load(held) == tuple(said)
    await log.close()


async def test_lines_behind_one_that_another_program_wrote_are_found(store: JsonlStore) -> None:
    log = await store.create(header())
    said = chain(user("a"), user("b"))
    await log.append(said[:1])
    assert log.location is not None
    with log.location.open("ab") as file:
        file.write(b"foreign words without an end")
    await log.append(said[1:])
    held = [one for one in log.cool(said) if isinstance(one, ColdEntry)]
    assert await log.load(held) == tuple(said)
    await log.close()


async def test_a_body_that_is_no_longer_there_is_an_error(store: JsonlStore) -> None:
    log = await store.create(header())
    said = chain(user("a"), user("b"))
    await log.append(said)
    held = [one for one in log.cool(said) if isinstance(one, ColdEntry)]
    assert log.location is not None
    content = log.location.read_bytes()
    log.location.write_bytes(content.replace(b'"e2"', b'"x2"'))
    with pytest.raises(StorageUnavailable, match="'e2' is no longer where it was"):
        await log.load(held)
    log.location.write_bytes(content[:-20])
    with pytest.raises(StorageUnavailable, match="'e2' is no longer where it was"):
        await log.load(held)
    await log.close()
    with pytest.raises(SessionClosed):
        await log.load(held)


async def test_the_bodies_of_a_deleted_file_are_still_ours(store: JsonlStore) -> None:
    log = await store.create(header())
    said = chain(user("a"), user("b"), user("c"))
    await log.append(said[:2])
    held = [one for one in log.cool(said) if isinstance(one, ColdEntry)]
    assert log.location is not None
    log.location.unlink()
    assert await log.load(held) == tuple(said[:2])
    await log.append(said[2:])
    assert await log.load(held) == tuple(said[:2])
    await log.close()


async def test_where_a_line_was_lost_a_body_keeps_the_parent_that_it_was_given(
    store: JsonlStore,
) -> None:
    said = chain(user("a"), user("b"), user("c"))
    await _write(store, [*said, compaction("c", parent="e3", first_kept="c")])
    (file,) = [one.location for one in await store.list() if one.location is not None]
    content = file.read_bytes()
    file.write_bytes(content.replace(encode_entry(said[1]), encode_entry(said[1])[:-9]))
    opened = await store.open(SessionId("s1"))
    third = opened.entries[1]
    assert isinstance(third, ColdEntry)
    assert third.parent == "e1"
    assert await opened.log.load([third]) == (entry("e3", user("c"), parent="e1"),)
    await opened.log.close()


def test_an_entry_without_its_body_cannot_be_written() -> None:
    cold = ColdEntry(
        id=EntryId("a"), parent=None, at_ms=1, kind="message", place=LineLocation(offset=0, size=1)
    )
    with pytest.raises(TypeError, match="load it first"):
        encode_entry(cold)


async def _write(store: JsonlStore, entries: list[AnyEntry]) -> None:
    log = await store.create(header())
    await log.append(entries)
    await log.close()


def _header_line(path: Path | None) -> bytes:
    assert path is not None
    return path.read_bytes().split(b"\n")[0] + b"\n"


def _size(one: AnyEntry) -> int:
    return len(encode_entry(one))
