"""Where a conversation is cut, and what is taken from it."""

from collections.abc import Sequence

from agent_core.compaction import CompactionPolicy, NothingToCompact, prepare
from agent_core.kernel import EntryId
from agent_core.transcript import (
    AnyEntry,
    CompactionPreparation,
    ContextEditEntry,
    CustomEntry,
    StoredMessage,
    UnknownEntry,
    build_context,
)
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    chain,
    compaction,
    entry,
    result,
    user,
)

BIG = "x" * 4_000
"""A thousand tokens."""


def test_a_short_conversation_is_left_alone() -> None:
    path = chain(*(user("hi") if n % 2 == 0 else assistant("yes") for n in range(10)))
    assert prepare(path, context_window=100_000, settings=CompactionPolicy()) == NothingToCompact(
        why="the conversation is too short to be compacted"
    )
    assert isinstance(_prepared([]), NothingToCompact)


def test_of_fifty_messages_the_last_twenty_stay() -> None:
    path = chain(*(user(BIG) if n % 2 == 0 else assistant(BIG) for n in range(50)))
    prepared = prepare(path, context_window=100_000, settings=CompactionPolicy())
    assert isinstance(prepared, CompactionPreparation)
    assert (len(prepared.messages), prepared.first_kept) == (30, "e31")
    assert (prepared.tokens_before, prepared.turn_prefix) == (50_000, ())


def test_the_cut_never_begins_with_a_tool_result() -> None:
    path = chain(user(BIG), assistant("a", call("read")), result(BIG * 3), user("b"))
    prepared = _prepared(path, keep=2_000)
    assert prepared.first_kept == "e4"
    assert len(prepared.messages) == 3


def test_a_huge_result_at_the_end_stays_with_its_call() -> None:
    path = chain(user(BIG), assistant("a", call("read")), result(BIG * 3))
    prepared = _prepared(path, keep=2_000)
    assert (prepared.first_kept, prepared.messages) == ("e2", ())
    assert prepared.turn_prefix == (user(BIG),)


def test_a_turn_that_is_too_long_is_split() -> None:
    path = chain(
        user("first"),
        assistant("done"),
        user("second"),
        assistant("one", call("read")),
        result(BIG),
        assistant("two", call("read")),
        result(BIG),
        assistant("three"),
    )
    prepared = _prepared(path, keep=1_000)
    assert prepared.first_kept == "e8"
    assert prepared.messages == (user("first"), assistant("done"))
    assert prepared.turn_prefix == tuple(one.message for one in path[2:7])


def test_words_that_are_pinned_stay_with_all_that_follows_them() -> None:
    path = chain(user(BIG), assistant(BIG), user("mine"), user(BIG), assistant(BIG))
    settings = CompactionPolicy(keep_recent_tokens=500)
    free = prepare(path, context_window=0, settings=settings)
    pinned = prepare(path, context_window=0, settings=settings, pinned=EntryId("e3"))
    assert isinstance(free, CompactionPreparation)
    assert isinstance(pinned, CompactionPreparation)
    assert (free.first_kept, pinned.first_kept) == ("e5", "e3")


def test_an_attempt_that_was_left_out_is_neither_summarised_nor_counted() -> None:
    path: list[AnyEntry] = [
        *chain(user(BIG), assistant(BIG), user("on"), assistant(BIG, stop_reason="error")),
        ContextEditEntry(
            id=EntryId("x"),
            parent=EntryId("e4"),
            at_ms=AT_MS,
            target=EntryId("e4"),
            replacement=None,
        ),
    ]
    prepared = _prepared(path, keep=1)
    assert (prepared.first_kept, prepared.tokens_before) == ("e3", 2_001)
    assert prepared.messages == (user(BIG), assistant(BIG))


def test_what_the_model_does_not_see_stays_with_what_it_stood_before() -> None:
    note = CustomEntry(id=EntryId("n"), parent=EntryId("e1"), at_ms=AT_MS, custom_type="x")
    path: list[AnyEntry] = [*chain(user(BIG)), note, entry("e2", user(BIG), parent="n")]
    assert _prepared(path, keep=1_000).first_kept == "n"


def test_system_messages_are_neither_summarised_nor_shown() -> None:
    system = UnknownEntry(
        id=EntryId("s"),
        parent=None,
        at_ms=AT_MS,
        raw={"type": "message", "message": {"role": "system", "content": "rules"}},
    )
    path: list[AnyEntry] = [system, *chain(*[user(BIG)] * 4, after="s")]
    prepared = _prepared(path, keep=2_000)
    assert prepared.messages == (user(BIG), user(BIG))
    compacted = [*path, compaction("c", parent="e4", first_kept=prepared.first_kept)]
    assert len(build_context(compacted).messages) == 1 + 2


def test_nothing_new_since_a_compaction_is_nothing_to_compact() -> None:
    path: list[AnyEntry] = [
        *chain(user(BIG), user(BIG)),
        compaction("c", parent="e2", first_kept="e2"),
    ]
    note = CustomEntry(id=EntryId("n"), parent=EntryId("c"), at_ms=AT_MS, custom_type="x")
    for entries in (path, [*path, note]):
        outcome = prepare(entries, context_window=1_000, settings=CompactionPolicy())
        assert outcome == NothingToCompact(why="already compacted: nothing has been said since")


def test_the_next_compaction_takes_up_the_kept_part_and_the_summary() -> None:
    path: list[AnyEntry] = [
        *chain(user(BIG), assistant("kept " + BIG), user("kept")),
        compaction("c", parent="e3", first_kept="e2", summary="the first summary"),
        *chain(user(BIG), assistant(BIG), user(BIG), after="c", first=4),
    ]
    prepared = _prepared(path, keep=1_000)
    assert prepared.previous_summary == "the first summary"
    assert prepared.first_kept == "e6"
    assert prepared.messages == (
        assistant("kept " + BIG),
        user("kept"),
        user(BIG),
        assistant(BIG),
    )


def test_files_that_were_read_and_changed_are_collected() -> None:
    path = chain(
        user("go"),
        assistant(
            call("read", {"path": "read.py"}),
            call("read", {"path": "changed.py"}, call_id="c2"),
            call("read", {"path": "missing.py"}, call_id="c3"),
            call("bash", {"path": "no.py"}, call_id="c4"),
            call("read", {"path": 5}, call_id="c5"),
        ),
        result("ok"),
        result("no such file", call_id="c3", is_error=True),
        assistant(
            call("edit", {"path": "changed.py"}), call("write", {"path": "new.py"}, call_id="c2")
        ),
        user(BIG),
    )
    prepared = _prepared(path, keep=500)
    assert prepared.read_files == ("read.py",)
    assert prepared.modified_files == ("changed.py", "new.py")


def test_files_of_earlier_compactions_are_carried_on_unless_a_hook_wrote_them() -> None:
    details = {"readFiles": ["old.py", 5], "modifiedFiles": ["m.py"]}
    for from_hook, read, modified in (
        (False, ("a.py", "old.py"), ("m.py",)),
        (True, ("a.py",), ()),
    ):
        path: list[AnyEntry] = [
            *chain(user("x")),
            compaction("c", parent="e1", first_kept="c", details=details, from_hook=from_hook),
            *chain(assistant(call("read", {"path": "a.py"})), user(BIG), after="c", first=2),
        ]
        prepared = _prepared(path, keep=500)
        assert (prepared.read_files, prepared.modified_files) == (read, modified)


def test_after_a_compaction_the_context_is_smaller_than_before() -> None:
    messages: list[StoredMessage] = []
    for number in range(30):
        messages += [user(BIG), assistant("a", call("read", {"path": f"{number}"})), result(BIG)]
    path = chain(*messages)
    prepared = prepare(path, context_window=32_000, settings=CompactionPolicy())
    assert isinstance(prepared, CompactionPreparation)
    compacted = [*path, compaction("c", parent="e90", first_kept=prepared.first_kept)]
    again = prepare(
        [*compacted, entry("n", user("on"), parent="c")],
        context_window=32_000,
        settings=CompactionPolicy(),
    )
    tokens = again.tokens_before if isinstance(again, CompactionPreparation) else 0
    assert tokens <= 8_000 + 2_100 < prepared.tokens_before


def _prepared(path: Sequence[AnyEntry], *, keep: int = 1_000) -> CompactionPreparation:
    settings = CompactionPolicy(keep_recent_tokens=keep)
    return prepare(path, context_window=200_000, settings=settings)  # pyright: ignore[reportReturnType]
