"""Entries as lines: every type both ways, unknown things kept, nonsense refused."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel import EntryId, JsonObject, SessionId
from agent_core.messages import Cost, Text, Usage
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
    UnknownEntry,
    UsageEntry,
)
from agent_core.transcript.codec import (
    decode_entry,
    decode_header,
    encode_entry,
    encode_header,
    entry_to_json,
)
from tests.support.session.entries import AT_MS, user

STAMP = "2026-01-01T00:00:00.000Z"
LINE = {"id": "b", "parentId": "a", "timestamp": STAMP}
BASE: dict[str, Any] = {"id": EntryId("b"), "parent": EntryId("a"), "at_ms": AT_MS}
USAGE = Usage(input=3, output=2, cost=Cost(input=0.5))
USAGE_JSON = {
    "input": 3,
    "output": 2,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 5,
    "cost": {"input": 0.5, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.5},
}


def _name(value: object) -> str:
    return type(value).__name__ if not isinstance(value, dict) else json.dumps(value)[:60]


PAIRS: list[tuple[AnyEntry, dict[str, object]]] = [
    (
        MessageEntry(**BASE, message=user("hi", at_ms=3)),
        {
            "type": "message",
            "message": {
                "role": "user",
                "content": [{"type": "text", "text": "hi"}],
                "timestamp": 3,
            },
        },
    ),
    (
        ModelChange(**BASE, provider="p", model="m/x"),
        {"type": "model_change", "provider": "p", "modelId": "m/x"},
    ),
    (
        ThinkingChange(**BASE, level="high"),
        {"type": "thinking_level_change", "thinkingLevel": "high"},
    ),
    (
        CompactionEntry(
            **BASE,
            summary="s",
            first_kept=EntryId("a"),
            tokens_before=9,
            details={"readFiles": ["a"]},
            usage=USAGE,
            from_hook=True,
        ),
        {
            "type": "compaction",
            "summary": "s",
            "firstKeptEntryId": "a",
            "tokensBefore": 9,
            "details": {"readFiles": ["a"]},
            "usage": USAGE_JSON,
            "fromHook": True,
        },
    ),
    (
        BranchSummaryEntry(**BASE, from_id="root", summary="s", usage=USAGE),
        {"type": "branch_summary", "fromId": "root", "summary": "s", "usage": USAGE_JSON},
    ),
    (
        CustomEntry(**BASE, custom_type="tiller.run", data={"n": 1}),
        {"type": "custom", "customType": "tiller.run", "data": {"n": 1}},
    ),
    (
        CustomMessageEntry(
            **BASE, custom_type="x", content=(Text(text="t"),), display=False, details=2
        ),
        {
            "type": "custom_message",
            "customType": "x",
            "content": [{"type": "text", "text": "t"}],
            "display": False,
            "details": 2,
        },
    ),
    (
        LabelEntry(**BASE, target=EntryId("a"), label="here"),
        {"type": "label", "targetId": "a", "label": "here"},
    ),
    (LabelEntry(**BASE, target=EntryId("a"), label=None), {"type": "label", "targetId": "a"}),
    (SessionNameEntry(**BASE, name="A name"), {"type": "session_info", "name": "A name"}),
    (
        SessionNameEntry(**BASE, name="A name", generated=True),
        {"type": "session_info", "name": "A name", "generated": True},
    ),
    (
        ContextEditEntry(**BASE, target=EntryId("a"), replacement=None),
        {"type": "context_edit", "targetId": "a", "replacement": None},
    ),
    (
        ContextEditEntry(**BASE, target=EntryId("a"), replacement={"content": "x"}),
        {"type": "context_edit", "targetId": "a", "replacement": {"content": "x"}},
    ),
]


@pytest.mark.parametrize(("entry", "body"), PAIRS, ids=_name)
def test_each_entry_type_has_its_line_both_ways(entry: AnyEntry, body: dict[str, object]) -> None:
    raw = {**LINE, **body}
    line = encode_entry(entry)
    assert b"\n" not in line
    assert json.loads(line) == raw
    assert decode_entry(_json(raw)) == entry


@pytest.mark.parametrize(("entry", "body"), PAIRS, ids=_name)
def test_unknown_fields_of_a_known_entry_are_written_back(
    entry: AnyEntry, body: dict[str, object]
) -> None:
    raw = {**LINE, **body, "systemMessage": {"content": "x"}, "zz": None}
    read = decode_entry(_json(raw))
    assert type(read) is type(entry)
    assert json.loads(encode_entry(read)) == raw


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "usage", "kind": "cache_warm", "usage": {}, **LINE},
        {"type": "message", "message": {"role": "system", "content": "x"}, **LINE},
        {"type": "message", "message": "text", **LINE},
        {"type": "message", **LINE},
        {"type": "message", "message": {"role": "toolResult"}, **LINE},
        {"type": "compaction", "summary": 5, **LINE},
        {"type": "model_change", **LINE},
    ],
    ids=json.dumps,
)
def test_an_entry_that_we_cannot_read_keeps_its_place_and_its_content(
    raw: dict[str, object],
) -> None:
    read = decode_entry(_json(raw))
    assert read == UnknownEntry(**BASE, raw=_json(raw))
    assert entry_to_json(read) == raw


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"type": "message"},
        {"id": "a"},
        {"type": "message", "id": ""},
        {"type": 5, "id": "a"},
        {"type": "message", "id": 5},
    ],
    ids=json.dumps,
)
def test_an_entry_without_type_or_id_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="needs a type and an id"):
        decode_entry(_json(raw))


@pytest.mark.parametrize("stamp", [None, "yesterday", 5, "9999999-01-01", ""])
def test_a_time_that_cannot_be_read_is_kept_as_it_is(stamp: object) -> None:
    raw = {"type": "session_info", "id": "b", "parentId": None, "timestamp": stamp, "name": "n"}
    read = decode_entry(_json(raw))
    assert (read.at_ms, json.loads(encode_entry(read))) == (0, raw)


@pytest.mark.parametrize(
    ("written", "at_ms"),
    [
        ("2026-01-01T00:00:00Z", AT_MS),
        ("2026-01-01T01:00:00.250+01:00", AT_MS + 250),
        ("2026-01-01T00:00:00", AT_MS),
    ],
)
def test_times_of_other_programs_are_read(written: str, at_ms: int) -> None:
    raw = _json({**LINE, "type": "session_info", "name": "n", "timestamp": written})
    assert decode_entry(raw).at_ms == at_ms


def test_a_session_name_is_one_line() -> None:
    entry = SessionNameEntry(**BASE, name=" two\r\nlines ")
    assert entry_to_json(entry)["name"] == "two lines"


def test_a_message_of_the_old_custom_role_is_a_custom_message() -> None:
    message = {"role": "custom", "customType": "x", "content": "t", "display": True, "zz": 1}
    read = decode_entry(_json({**LINE, "type": "message", "message": message}))
    assert read == CustomMessageEntry(
        **BASE, custom_type="x", content=(Text(text="t"),), line_extra={"zz": 1}
    )


def test_a_header_has_its_line_both_ways() -> None:
    header = Header(
        id=SessionId("s1"), at_ms=AT_MS, cwd="/w", parent_session="/old", extra={"zz": 1}
    )
    raw = {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": STAMP,
        "cwd": "/w",
        "parentSession": "/old",
        "zz": 1,
    }
    assert json.loads(encode_header(header)) == raw
    assert decode_header(_json(raw)) == header


def test_a_header_without_a_version_is_of_the_first() -> None:
    header = decode_header({"type": "session", "id": "s1", "timestamp": STAMP, "cwd": "/w"})
    assert header == Header(id=SessionId("s1"), at_ms=AT_MS, cwd="/w", version=1)


@pytest.mark.parametrize("raw", [{}, {"type": "message", "id": "a"}, {"type": "session", "id": 5}])
def test_another_line_is_no_header(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no session header"):
        decode_header(_json(raw))


def test_a_lone_surrogate_does_not_stop_a_line() -> None:
    line = encode_entry(MessageEntry(**BASE, message=user("a\ud800b")))
    read = decode_entry(json.loads(line))
    assert isinstance(read, MessageEntry)
    assert read.message == user("a\ufffdb") or "\ud800" not in str(read.message)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


@given(
    kind=st.sampled_from([str(body["type"]) for _, body in PAIRS] + ["new"]),
    parent=st.none() | st.text(max_size=4),
    body=st.dictionaries(
        st.sampled_from(
            [
                "message",
                "summary",
                "firstKeptEntryId",
                "tokensBefore",
                "usage",
                "details",
                "provider",
                "modelId",
                "targetId",
                "label",
                "content",
                "customType",
                "name",
                "zz",
            ]
        ),
        _JSON,
    ),
)
def test_any_line_with_an_id_is_read_and_read_again_the_same(
    kind: str, parent: str | None, body: dict[str, object]
) -> None:
    raw = _json({"timestamp": STAMP, **body, "type": kind, "id": "b", "parentId": parent})
    entry = decode_entry(raw)
    assert (entry.id, entry.parent) == ("b", parent)
    assert decode_entry(json.loads(encode_entry(entry))) == entry


def _json(value: object) -> JsonObject:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("kind", ["cache_warm", "a kind of tomorrow"])
@pytest.mark.parametrize("more", [{}, {"note": "n"}, {"note": 1, "later": [2]}], ids=str)
def test_usage_of_any_kind_is_read_and_written_as_it_was(kind: str, more: JsonObject) -> None:
    raw = {
        "type": "usage",
        "id": "u",
        "parentId": "e1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "kind": kind,
        "provider": "p",
        "model": "m",
        "usage": USAGE_JSON,
        **more,
    }
    read = decode_entry(raw)
    assert isinstance(read, UsageEntry)
    assert (read.kind, read.usage, read.note) == (kind, USAGE, _note(more))
    assert entry_to_json(read) == raw


def test_the_system_message_of_a_compaction_is_kept() -> None:
    raw = {
        "type": "compaction",
        "id": "c",
        "parentId": "e1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": "s",
        "firstKeptEntryId": "c",
        "tokensBefore": 5,
        "systemMessage": {"role": "system", "content": "be good", "sections": []},
    }
    read = decode_entry(raw)
    assert isinstance(read, CompactionEntry)
    assert entry_to_json(read) == raw


def _note(more: JsonObject) -> str | None:
    note = more.get("note")
    return note if isinstance(note, str) else None


@pytest.mark.parametrize("name", ["extra", "line_extra", "at_ms", "parent"])
def test_a_field_that_is_named_as_one_of_the_class_is_a_foreign_field(name: str) -> None:
    raw = {**LINE, "type": "message", "message": {"role": "user", "content": [], "timestamp": 3}}
    raw = {**raw, name: {"id": "other"}}
    entry = decode_entry(_json(raw))
    assert entry.line_extra == {name: {"id": "other"}}
    assert entry_to_json(entry) == raw
