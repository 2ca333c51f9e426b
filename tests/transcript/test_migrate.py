"""Files of format versions 1 and 2 become version 3."""

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import count

from agent_core.kernel import JsonObject
from agent_core.transcript.migration import migrate

OLD_HEADER = {"type": "session", "id": "s1", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/w"}


def test_entries_of_version_1_become_a_chain() -> None:
    lines = [
        OLD_HEADER,
        {"type": "message", "message": {"role": "user", "content": "a"}},
        {"type": "message", "message": {"role": "hookMessage", "content": "b"}},
        {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 5},
    ]
    assert migrate(_lines(lines), new_id=_numbered()) == (
        {**OLD_HEADER, "version": 3},
        {
            "type": "message",
            "message": {"role": "user", "content": "a"},
            "id": "n1",
            "parentId": None,
        },
        {
            "type": "message",
            "message": {"role": "custom", "content": "b"},
            "id": "n2",
            "parentId": "n1",
        },
        {
            "type": "compaction",
            "summary": "s",
            "tokensBefore": 5,
            "id": "n3",
            "parentId": "n2",
            "firstKeptEntryId": "n2",
        },
    )


def test_an_index_that_leads_nowhere_keeps_nothing() -> None:
    for index in (0, 99, -1):
        lines = [OLD_HEADER, {"type": "compaction", "summary": "s", "firstKeptEntryIndex": index}]
        assert migrate(_lines(lines), new_id=_numbered())[1]["firstKeptEntryId"] == "n1"


def test_version_2_keeps_its_ids() -> None:
    lines = [
        {**OLD_HEADER, "version": 2},
        {
            "type": "message",
            "id": "a",
            "parentId": None,
            "message": {"role": "hookMessage", "zz": 1},
        },
    ]
    assert migrate(_lines(lines), new_id=_numbered()) == (
        {**OLD_HEADER, "version": 3},
        {
            "type": "message",
            "id": "a",
            "parentId": None,
            "message": {"role": "custom", "zz": 1},
        },
    )


def test_version_3_and_later_stay_as_they_are() -> None:
    for version in (3, 4):
        message = {"role": "hookMessage", "content": "b"}
        lines = _lines(
            [{**OLD_HEADER, "version": version}, {"type": "message", "message": message}]
        )
        assert migrate(lines, new_id=_numbered()) == tuple(lines)


def test_what_was_given_is_not_changed() -> None:
    lines = _lines([OLD_HEADER, {"type": "message", "message": {"role": "hookMessage"}}])
    before = json.dumps(lines)
    migrate(lines, new_id=_numbered())
    assert json.dumps(lines) == before


def _lines(lines: Sequence[Mapping[str, object]]) -> list[JsonObject]:
    return json.loads(json.dumps(lines))


def _numbered():
    numbers: Iterator[int] = count(1)

    def draw(taken: Container[object]) -> str:
        drawn = f"n{next(numbers)}"
        assert drawn not in taken
        return drawn

    return draw
