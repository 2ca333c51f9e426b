"""What the model is shown of a path."""

from collections.abc import Sequence
from typing import Any

from agent_core.kernel import EntryId, JsonValue
from agent_core.messages import (
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    Text,
    Usage,
)
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    LineLocation,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
    UnknownEntry,
    UsageEntry,
    build_context,
)
from agent_core.transcript.cold_entries import cooled
from agent_core.transcript.context import context_entries
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

BASE: dict[str, Any] = {"parent": None, "at_ms": AT_MS}


def test_an_empty_path_shows_nothing() -> None:
    context = build_context([])
    assert (context.messages, context.model, context.thinking) == ((), None, None)


def test_messages_stand_in_the_order_of_the_path() -> None:
    said = [user("a"), assistant("b", call("read")), result("c"), assistant("d")]
    assert build_context(chain(*said)).messages == tuple(said)


def test_the_model_is_the_last_one_set_or_heard() -> None:
    change = ModelChange(id=EntryId("m"), **BASE, provider="p", model="x/y")
    heard = entry("h", assistant("hi", model="heard"))
    assert build_context([heard, change]).model == "p/x/y"
    assert build_context([change, heard]).model == "lab/heard"


def test_the_thinking_level_is_the_last_one_set() -> None:
    levels = [ThinkingChange(id=EntryId(level), **BASE, level=level) for level in ("low", "high")]
    assert build_context(levels).thinking == "high"


def test_a_compaction_hides_what_came_before_the_kept_part() -> None:
    entries = chain(user("1"), assistant("2"), user("3"), assistant("4"))
    path = [*entries, compaction("c", parent="e4", first_kept="e3"), entry("n", user("5"))]
    assert _shown(path) == ["summary: what happened", "3", "4", "5"]


def test_only_the_latest_compaction_counts() -> None:
    path: list[AnyEntry] = [
        *chain(user("1"), assistant("2"), user("3")),
        compaction("c1", parent="e3", first_kept="e3", summary="first"),
        *chain(user("4"), assistant("5"), after="c1", first=4),
        compaction("c2", parent="e5", first_kept="e3", summary="second"),
        entry("n", user("6")),
    ]
    assert _shown(path) == ["summary: second", "3", "4", "5", "6"]


def test_a_compaction_may_keep_nothing_or_point_nowhere() -> None:
    entries = chain(user("1"), assistant("2"))
    for first_kept in ("c", "gone"):
        path = [
            *entries,
            compaction("c", parent="e2", first_kept=first_kept),
            entry("n", user("3")),
        ]
        assert _shown(path) == ["summary: what happened", "3"]


def test_model_and_level_from_before_a_compaction_still_hold() -> None:
    path: list[AnyEntry] = [
        ModelChange(id=EntryId("m"), **BASE, provider="p", model="x"),
        ThinkingChange(id=EntryId("t"), **BASE, level="low"),
        *chain(user("1")),
        compaction("c", parent="e1", first_kept="c"),
    ]
    context = build_context(path)
    assert (context.model, context.thinking) == ("p/x", "low")


def test_what_is_not_in_the_context_may_be_without_its_body() -> None:
    said = chain(user("1"), assistant("2", model="heard"), user("3"))
    path: list[AnyEntry] = [
        *(cooled(one, LineLocation(offset=0, size=1)) for one in said[:2]),
        said[2],
        compaction("c", parent="e3", first_kept="e3"),
    ]
    context = build_context(path)
    assert (len(context.messages), context.model) == (2, "lab/heard")


def test_the_context_is_made_of_the_latest_compaction_and_what_it_left() -> None:
    said = chain(user("1"), assistant("2"), user("3"))
    first = compaction("c1", parent="e3", first_kept="e2")
    second = compaction("c2", parent="c1", first_kept="e3")
    path: list[AnyEntry] = [*said, first, second, entry("n", user("4"), parent="c2")]
    shown = [one.id for one in context_entries(path)]
    assert shown == ["c2", "e3", "c1", "n"]
    cold = cooled(second, LineLocation(offset=0, size=1))
    assert [one.id for one in context_entries([*path[:4], cold, path[5]])] == shown


def test_other_programs_system_messages_say_nothing_wherever_they_stand() -> None:
    raw = {"type": "message", "id": "s", "message": {"role": "system", "content": "be good"}}
    system = UnknownEntry(id=EntryId("s"), **BASE, raw=raw)
    said = chain(user("1"), assistant("2"))
    kept = compaction("c", parent="e2", first_kept="e1")
    assert _shown([system, *said]) == ["1", "2"]
    assert _shown([said[0], system, said[1], kept]) == ["summary: what happened", "1", "2"]


def test_an_edit_leaves_a_message_out() -> None:
    path = [*chain(user("1"), assistant("failed"), user("2")), _edit("e2", None)]
    assert _shown(path) == ["1", "2"]


def test_an_edit_replaces_what_a_message_says_and_the_latest_wins() -> None:
    path = [
        *chain(user("1"), assistant("2", call("read")), result("3")),
        _edit("e1", {"content": "first"}),
        _edit("e1", {"content": [{"type": "text", "text": "one"}]}, edit="x2"),
        _edit("e2", {"content": "two"}, edit="x3"),
        _edit("e3", {"content": "three"}, edit="x4"),
    ]
    shown = build_context(path).messages
    assert shown == (user("one"), assistant("two"), result("three"))


def test_an_edit_that_makes_no_sense_changes_nothing() -> None:
    path = [*chain(user("1")), _edit("e1", "text"), _edit("gone", None, edit="x2")]
    assert _shown(path) == ["1"]


def test_custom_messages_and_branch_summaries_are_shown() -> None:
    path: list[AnyEntry] = [
        CustomMessageEntry(
            id=EntryId("a"), **BASE, custom_type="note", content=(Text(text="n"),), details=1
        ),
        BranchSummaryEntry(id=EntryId("b"), **BASE, from_id="x", summary="went there"),
        BranchSummaryEntry(id=EntryId("c"), **BASE, from_id="x", summary="  "),
    ]
    assert build_context(path).messages == (
        CustomMessage(custom_type="note", content=(Text(text="n"),), details=1, at_ms=AT_MS),
        BranchSummaryMessage(summary="went there", from_id="x", at_ms=AT_MS),
    )


def test_a_users_command_is_shown_unless_it_is_excluded() -> None:
    shown = BashMessage(command="ls", output="a", exit_code=0, at_ms=1)
    hidden = BashMessage(command="env", output="x", exit_code=0, exclude_from_context=True, at_ms=1)
    assert build_context(chain(shown, hidden)).messages == (shown,)


def test_bookkeeping_is_never_shown() -> None:
    path: list[AnyEntry] = [
        LabelEntry(id=EntryId("a"), **BASE, target=EntryId("x"), label="l"),
        SessionNameEntry(id=EntryId("b"), **BASE, name="n"),
        CustomEntry(id=EntryId("c"), **BASE, custom_type="tiller.x", data=1),
        UsageEntry(
            id=EntryId("u"), **BASE, kind="k", provider="p", model="m", usage=Usage(input=1)
        ),
        UnknownEntry(
            id=EntryId("d"),
            **BASE,
            raw={"type": "message", "message": {"role": "system", "content": "x"}},
        ),
    ]
    assert build_context(path).messages == ()


def _edit(target: str, replacement: JsonValue, *, edit: str = "x1") -> ContextEditEntry:
    return ContextEditEntry(
        id=EntryId(edit), **BASE, target=EntryId(target), replacement=replacement
    )


def _shown(path: Sequence[AnyEntry]) -> list[str]:
    return [_words(message) for message in build_context(path).messages]


def _words(message: Message) -> str:
    if isinstance(message, CompactionSummaryMessage):
        return f"summary: {message.summary}"
    assert not isinstance(message, BashMessage | BranchSummaryMessage)
    return "".join(part.text for part in message.content if isinstance(part, Text))
