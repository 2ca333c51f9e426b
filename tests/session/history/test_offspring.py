"""The entries of a session that is made from a part of another: pure."""

import pytest

from agent_core.kernel import EntryId, JsonValue
from agent_core.session.history.entries import fork_entries, labels_of
from agent_core.transcript import AnyEntry, CompactionEntry, CustomEntry, LabelEntry
from tests.support.session.entries import AT_MS, assistant, chain, compaction, user


def label(entry_id: str, target: str, text: str | None, *, parent: str, at_ms: int) -> LabelEntry:
    return LabelEntry(
        id=EntryId(entry_id),
        parent=EntryId(parent),
        at_ms=at_ms,
        target=EntryId(target),
        label=text,
    )


def note(entry_id: str, kind: str, data: JsonValue, *, parent: str) -> CustomEntry:
    return CustomEntry(
        id=EntryId(entry_id), parent=EntryId(parent), at_ms=AT_MS, custom_type=kind, data=data
    )


def run(entry_id: str, name: str, status: str, *, parent: str) -> CustomEntry:
    return note(entry_id, "tiller.run", {"run": name, "status": status}, parent=parent)


def made(path: list[AnyEntry]) -> tuple[AnyEntry, ...]:
    """Make one, and hold it against what every session promises."""
    entries = fork_entries(path, labels=labels_of(path))
    ids = [entry.id for entry in entries]
    assert len(set(ids)) == len(ids)
    assert [entry.parent for entry in entries] == [None, *ids[:-1]][: len(ids)]
    return entries


def test_a_plain_path_stays_as_it_is() -> None:
    path: list[AnyEntry] = [*chain(user("1"), assistant("2"), user("3"))]
    assert made(path) == tuple(path)


def test_of_nothing_comes_nothing() -> None:
    assert made([]) == ()


def test_labels_come_last_with_their_times_and_only_for_what_is_there() -> None:
    path: list[AnyEntry] = [
        *chain(user("1")),
        label("l1", "e1", "old", parent="e1", at_ms=AT_MS + 1),
        *chain(assistant("2"), after="l1", first=2),
        label("l2", "gone", "of another branch", parent="e2", at_ms=AT_MS + 2),
        label("l3", "e2", "kept", parent="l2", at_ms=AT_MS + 3),
        label("l4", "e1", "new", parent="l3", at_ms=AT_MS + 4),
        label("l5", "l1", "on a label", parent="l4", at_ms=AT_MS + 5),
    ]
    one, two, *labels = made(path)
    assert (one.id, two.id) == ("e1", "e2")
    assert [
        (entry.target, entry.label, entry.at_ms)
        for entry in labels
        if isinstance(entry, LabelEntry)
    ] == [("e2", "kept", AT_MS + 3), ("e1", "new", AT_MS + 4)]


def test_a_label_that_was_taken_off_is_none() -> None:
    path: list[AnyEntry] = [
        *chain(user("1")),
        label("l1", "e1", "a", parent="e1", at_ms=AT_MS),
        label("l2", "e1", None, parent="l1", at_ms=AT_MS),
    ]
    assert [entry.id for entry in made(path)] == ["e1"]


@pytest.mark.parametrize(
    ("first_kept", "moved_to"),
    [("e1", "e1"), ("l1", "e2"), ("q1", "c"), ("c", "c"), ("nowhere", "nowhere")],
    ids=["kept", "a-label", "nothing-else-left", "itself", "not-on-the-path"],
)
def test_a_compaction_keeps_from_the_next_entry_that_came_along(
    first_kept: str, moved_to: str
) -> None:
    path: list[AnyEntry] = [
        *chain(user("1")),
        label("l1", "e1", "x", parent="e1", at_ms=AT_MS),
        *chain(assistant("2"), after="l1", first=2),
        note("q1", "tiller.queue", {"op": "take", "queueId": "q"}, parent="e2"),
        compaction("c", parent="q1", first_kept=first_kept),
    ]
    (found,) = [entry for entry in made(path) if isinstance(entry, CompactionEntry)]
    assert found.first_kept == moved_to


def test_what_waits_in_the_session_stays_there() -> None:
    path: list[AnyEntry] = [
        *chain(user("1")),
        note("q1", "tiller.queue", {"op": "put", "queueId": "q"}, parent="e1"),
        note("q2", "tiller.aside", {"op": "put", "id": "a"}, parent="q1"),
        note("o", "another.program", {"x": 1}, parent="q2"),
    ]
    assert [entry.id for entry in made(path)] == ["e1", "o"]


@pytest.mark.parametrize("kind", ["tiller.change", "tiller.review", "tiller.checkpoint"])
def test_what_the_session_did_to_files_stays_its_own(kind: str) -> None:
    path: list[AnyEntry] = [
        *chain(user("a"), assistant("b")),
        note("x", kind, {"path": "/w/a"}, parent="e2"),
    ]
    assert [entry.id for entry in made(path)] == ["e1", "e2"]


def test_a_run_that_is_not_over_on_the_path_is_none_of_the_new_session() -> None:
    path: list[AnyEntry] = [
        *chain(user("1")),
        run("r1", "one", "started", parent="e1"),
        *chain(assistant("2"), after="r1", first=2),
        run("r2", "one", "completed", parent="e2"),
        *chain(user("3"), after="r2", first=3),
        run("r3", "two", "started", parent="e3"),
    ]
    assert [entry.id for entry in made(path)] == ["e1", "r1", "e2", "r2", "e3"]
