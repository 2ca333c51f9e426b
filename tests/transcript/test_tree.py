"""The tree of entries: leaf, paths, branches, and files that are no tree."""

from dataclasses import replace

import pytest

from agent_core.kernel import EntryId, new_entry_id
from agent_core.transcript import AnyEntry, SessionNameEntry, Transcript
from agent_core.transcript.tree import children_of
from tests.support.session.entries import AT_MS, chain, entry, user


def test_an_empty_transcript_has_no_leaf_and_no_path() -> None:
    transcript = Transcript()
    assert (transcript.leaf, transcript.path(), transcript.entries) == (None, (), ())


def test_the_last_entry_is_the_leaf_and_the_path_leads_to_it() -> None:
    entries = chain(user("a"), user("b"), user("c"))
    transcript = Transcript(entries)
    assert transcript.leaf == "e3"
    assert transcript.path() == tuple(entries)
    assert transcript.path(EntryId("e2")) == tuple(entries[:2])


def test_moving_makes_the_next_entry_a_branch() -> None:
    transcript = Transcript(chain(user("a"), user("b"), user("c")))
    transcript.move(EntryId("e1"))
    assert _ids(transcript.path()) == ["e1"]
    transcript.add(entry("x", user("other"), parent="e1", at_ms=AT_MS + 5))
    assert _ids(transcript.path()) == ["e1", "x"]
    assert _ids(transcript.path(EntryId("e3"))) == ["e1", "e2", "e3"]
    assert _ids(children_of(transcript, EntryId("e1"))) == ["e2", "x"]


def test_moving_before_everything_begins_a_new_root() -> None:
    transcript = Transcript(chain(user("a"), user("b")))
    transcript.move(None)
    assert transcript.path() == ()
    transcript.add(entry("x", user("anew")))
    assert _ids(transcript.path()) == ["x"]
    assert _ids(children_of(transcript, None)) == ["e1", "x"]


def test_children_come_oldest_first() -> None:
    first = entry("a", user("a"))
    late = entry("b", user("b"), parent="a", at_ms=AT_MS + 9)
    early = entry("c", user("c"), parent="a", at_ms=AT_MS + 1)
    assert _ids(children_of(Transcript([first, late, early]), EntryId("a"))) == ["c", "b"]


def test_a_parent_that_is_missing_makes_a_root() -> None:
    transcript = Transcript([*chain(user("a")), entry("x", user("b"), parent="gone")])
    assert _ids(transcript.path()) == ["x"]
    assert _ids(children_of(transcript, None)) == ["e1", "x"]


def test_an_entry_that_is_its_own_parent_is_a_root() -> None:
    transcript = Transcript([entry("x", user("b"), parent="x"), entry("y", user("c"), parent="x")])
    assert _ids(transcript.path()) == ["x", "y"]
    assert _ids(children_of(transcript, None)) == ["x"]


def test_a_circle_ends() -> None:
    transcript = Transcript(
        [
            entry("a", user("a"), parent="c"),
            entry("b", user("b"), parent="a"),
            entry("c", user("c"), parent="b"),
        ]
    )
    assert _ids(transcript.path()) == ["a", "b", "c"]
    transcript.add(entry("d", user("d"), parent="c"))
    assert _ids(transcript.path()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "parents",
    [
        {"a": None, "b": "a", "c": "b"},
        {"a": None, "b": "a", "c": "a", "d": "c"},
        {"a": None, "b": None, "c": "b"},
        {"a": "c", "b": "a", "c": "b", "d": "a"},
        {"a": None, "b": "gone", "c": "b"},
    ],
    ids=["a row", "a branch", "two roots", "a circle", "an orphan"],
)
def test_entries_taken_in_together_make_the_tree_that_they_make_one_by_one(
    parents: dict[str, str | None],
) -> None:
    entries = [entry(name, user(name), parent=parent) for name, parent in parents.items()]
    together, singly = Transcript(entries), Transcript()
    for one in entries:
        singly.add(one)
        assert singly.leaf == one.id
    assert (together.leaf, together.entries) == (singly.leaf, singly.entries)
    assert together.path() == singly.path()
    with pytest.raises(ValueError, match="already"):
        _ = Transcript([*entries, entries[0]])


def test_a_parent_may_come_later_in_the_file() -> None:
    transcript = Transcript([entry("b", user("b"), parent="a"), entry("a", user("a"))])
    assert _ids(transcript.path(EntryId("b"))) == ["a", "b"]


def test_an_id_is_taken_once() -> None:
    transcript = Transcript(chain(user("a")))
    with pytest.raises(ValueError, match="'e1' already"):
        transcript.add(entry("e1", user("again")))
    assert _ids(transcript.entries) == ["e1"]


def test_going_to_an_entry_that_does_not_exist_is_refused() -> None:
    transcript = Transcript(chain(user("a")))
    with pytest.raises(ValueError, match="'nope'"):
        transcript.move(EntryId("nope"))
    with pytest.raises(ValueError, match="'nope'"):
        transcript.path(EntryId("nope"))
    assert transcript.leaf == "e1"


def test_the_next_id_is_eight_hex_digits_that_nobody_has() -> None:
    transcript = Transcript(chain(user("a")))
    drawn = new_entry_id(transcript, at_ms=AT_MS)
    assert (len(drawn), drawn in transcript) == (8, False)
    int(drawn, 16)


def test_the_title_is_the_name_set_last() -> None:
    named = SessionNameEntry(id=EntryId("n1"), parent=EntryId("e1"), at_ms=AT_MS, name="First")
    transcript = Transcript([*chain(user("a")), named])
    assert transcript.title == "First"
    transcript.add(replace(named, id=EntryId("n2"), name=""))
    assert transcript.title is None


def test_the_path_of_a_long_session_grows_with_it() -> None:
    transcript = Transcript()
    for one in chain(*(user(str(n)) for n in range(500))):
        transcript.add(one)
        assert len(transcript.path()) == len(transcript)


def _ids(entries: tuple[AnyEntry, ...]) -> list[str]:
    return [one.id for one in entries]
