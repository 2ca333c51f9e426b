"""Messages of an opened session are decoded when they are read, and are what the careful way reads."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from agent_core.kernel import SessionId, SystemClock
from agent_core.messages import Cost, Usage
from agent_core.messages.values import total_usage
from agent_core.session.runs.recovered_state import recover_session, recover_state
from agent_core.session.snapshot import session_stats
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import (
    BranchSummaryEntry,
    ColdEntry,
    CustomEntry,
    Transcript,
    build_context,
)
from agent_core.transcript.codec import (
    MessageLine,
    encode_entry,
    encode_header,
    read_head,
    read_whole,
)
from agent_core.transcript.context import last_choice
from agent_core.transcript.entries import AnyEntry
from agent_core.transcript.tree import has_prompt_or_answer
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    header,
    result,
    user,
)
from tests.transcript.test_quick_reading import ANSWER, RESULT, STAMP, USER, lines

USAGE = Usage(input=5, output=7, cost=Cost(input=0.1, output=0.2))
USAGES = st.builds(
    Usage,
    input=st.integers(0, 9),
    reasoning=st.integers(0, 9),
    cost=st.none() | st.builds(Cost, input=st.floats(0, 1), output=st.floats(0, 1)),
)
ODD_BYTES = (
    b'"\\ud800"',
    b'"\\ud83d\\ude00"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b"1e999",
    b"NaN",
    b'"\\u001b[1m"',
    b'"\xc3\xbc"',
    b"[" * 300 + b"]" * 300,
    b'"a\tb"',
    b"{",
)
"""Values of a field that no parser of another program may have looked at."""


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path, SystemClock())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines(), lines())
@example(
    _line := {"type": "message", "id": "b", "parentId": None, "timestamp": STAMP}
    | {"message": ANSWER},
    _line,
)
async def test_an_opened_session_is_what_reading_it_whole_gives(
    store: JsonlStore, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await _same_as_read(store, *(json.dumps(one).encode() for one in (first, second | {"id": "c"})))


@pytest.mark.parametrize("odd", ODD_BYTES)
@pytest.mark.parametrize("where", ["details", "text", "id", "future"])
async def test_odd_bytes_are_reported_as_by_reading_the_whole_file(
    store: JsonlStore, odd: bytes, where: str
) -> None:
    message = RESULT | {"content": [{"type": "text", "text": "out"}]}
    line = json.dumps(
        {"type": "message", "id": "b", "parentId": None, "timestamp": STAMP, "message": message}
    ).encode()
    spots = {
        "details": (b'"isError": false', b'"isError": false, "details": ' + odd),
        "text": (b'"text": "out"', b'"text": ' + odd),
        "id": (b'"id": "b"', b'"id": ' + odd),
        "future": (b'"parentId": null', b'"parentId": null, "future": ' + odd),
    }
    await _same_as_read(store, line.replace(*spots[where]), encode_entry(chain(user("on"))[0]))


async def test_opening_decodes_the_newest_messages_only(store: JsonlStore) -> None:
    said = chain(*(user("hi") if number % 2 == 0 else assistant("ho") for number in range(100)))
    await _write(store, [encode_entry(one) for one in said])
    opened = await store.open(SessionId("s1"))
    transcript = opened.transcript
    assert recover_session(transcript) == recover_state(said, path=said)
    assert last_choice(transcript).model == "lab/m"
    assert has_prompt_or_answer(transcript.stored_path)
    assert transcript.title is None
    assert len(transcript) == 100
    undecoded = [one for one in transcript.stored if isinstance(one, MessageLine)]
    assert len(undecoded) > 90
    assert opened.entries == tuple(said)
    await opened.log.close()


async def test_the_state_of_a_branch_is_that_of_all_its_entries(store: JsonlStore) -> None:
    asked = assistant("look", call("read"), call("ls", call_id="c2"), usage=USAGE)
    begun = chain(user("one"), asked, result("out"))
    left = CustomEntry(id="l", parent="e1", at_ms=AT_MS, custom_type="tiller.leaf", data={})  # pyright: ignore[reportArgumentType] - ids are texts
    summary = BranchSummaryEntry(
        id="s",  # pyright: ignore[reportArgumentType] - ids are texts
        parent="e3",  # pyright: ignore[reportArgumentType] - ids are texts
        at_ms=AT_MS,
        from_id="e3",
        summary="went",
        usage=USAGE,
    )
    unused = entry("u", assistant("", stop_reason="aborted"), parent="e3")
    for more in ([], [left], [summary], [unused], [compaction("c", parent="e3", first_kept="e2")]):
        entries: list[AnyEntry] = [*begun, *more]
        await _write(store, [encode_entry(one) for one in entries])
        opened = await store.open(SessionId("s1"))
        expected = recover_state(entries, path=Transcript(entries).path())
        assert recover_session(opened.transcript) == expected
        context = build_context(Transcript(entries).path())
        choice = last_choice(opened.transcript)
        assert (choice.model, choice.thinking) == (context.model, context.thinking)
        assert session_stats(opened.entries) == session_stats(entries)
        await opened.log.close()
        await store.delete(SessionId("s1"))


@given(st.lists(USAGES, max_size=6))
def test_a_total_is_the_sum_in_order(parts: list[Usage]) -> None:
    total = Usage()
    for one in parts:
        total = total.plus(one)
    assert total_usage(parts) == total


@pytest.mark.parametrize("message", [ANSWER, RESULT, USER], ids=lambda raw: raw["role"])
def test_the_usual_messages_are_left_for_later(message: dict[str, Any]) -> None:
    raw = {"type": "message", "id": "b", "parentId": "a", "timestamp": STAMP, "message": message}
    head = read_head(json.dumps(raw).encode())
    assert head is not None
    assert read_whole(head).id == "b"
    assert read_head(json.dumps(raw | {"type": "future"}).encode()) is None


async def _same_as_read(store: JsonlStore, *content: bytes) -> None:
    await _write(store, list(content))
    read = await store.read(SessionId("s1"))
    opened = await store.open(SessionId("s1"))
    assert opened.recovery == read.recovery
    whole = Transcript(read.entries)
    assert recover_session(opened.transcript) == recover_state(whole.entries, path=whole.path())
    assert has_prompt_or_answer(opened.transcript.stored_path) == has_prompt_or_answer(
        whole.stored_path
    )
    assert opened.transcript.path() == whole.path()
    cold = [one for one in opened.entries if isinstance(one, ColdEntry)]
    bodies = {one.id: one for one in await opened.log.load(cold)}
    assert tuple(bodies.get(one.id, one) for one in opened.entries) == read.entries
    await opened.log.close()
    await store.delete(SessionId("s1"))


async def _write(store: JsonlStore, content: list[bytes]) -> None:
    log = await store.create(header())
    location = log.location
    assert location is not None
    await log.close()
    location.parent.mkdir(exist_ok=True)
    _ = location.write_bytes(b"\n".join([encode_header(header()), *content, b""]))
