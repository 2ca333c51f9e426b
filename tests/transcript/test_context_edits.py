"""What a context edit may change: messages on the same branch, and only some kinds of them."""

from typing import Any

from agent_core.kernel import EntryId, JsonValue
from agent_core.messages import BashMessage, CustomMessage, Message, Text, text_of
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Transcript,
    build_context,
)
from tests.support.session.entries import AT_MS, assistant, chain, compaction, entry, user

NOTE: dict[str, Any] = {"at_ms": AT_MS, "custom_type": "lint", "details": {"n": 1}}


def edit(target: str, replacement: JsonValue, *, parent: str, name: str = "x") -> ContextEditEntry:
    return ContextEditEntry(
        id=EntryId(name),
        parent=EntryId(parent),
        at_ms=AT_MS,
        target=EntryId(target),
        replacement=replacement,
    )


def shown(*path: AnyEntry) -> tuple[Message, ...]:
    return build_context(path).messages


def test_the_words_of_a_program_can_be_replaced_and_the_rest_of_them_stays() -> None:
    note = CustomMessageEntry(
        id=EntryId("n"), parent=None, content=(Text(text="2 faults"),), **NOTE
    )
    assert shown(note, edit("n", {"content": "none"}, parent="n")) == (
        CustomMessage(content=(Text(text="none"),), **NOTE),
    )
    assert shown(note, edit("n", None, parent="n")) == ()


def test_commands_and_summaries_are_not_edited() -> None:
    command = BashMessage(command="ls", output="a", exit_code=0, at_ms=AT_MS)
    branch = BranchSummaryEntry(
        id=EntryId("b"), parent=EntryId("e1"), at_ms=AT_MS, from_id="x", summary="went there"
    )
    path = (*chain(command), branch)
    edits = (edit("e1", None, parent="b"), edit("b", None, parent="x", name="y"))
    assert shown(*path, *edits) == shown(*path)
    kept = compaction("c", parent="e1", first_kept="c")
    assert shown(kept, edit("c", None, parent="c")) == shown(kept)


def test_an_edit_on_another_branch_changes_nothing_here() -> None:
    tree = Transcript(chain(user("1"), assistant("2")))
    tree.add(edit("e1", {"content": "one"}, parent="e2"))
    tree.move(EntryId("e1"))
    tree.add(entry("e3", assistant("other"), parent="e1"))
    assert [_words(one) for one in build_context(tree.path()).messages] == ["1", "other"]
    assert [_words(one) for one in build_context(tree.path(EntryId("x"))).messages] == ["one", "2"]


def test_the_latest_edit_counts_also_when_it_brings_a_message_back() -> None:
    path = chain(user("1"), assistant("2"))
    gone = edit("e2", None, parent="e2")
    back = edit("e2", {"content": "two"}, parent="x", name="y")
    assert [_words(one) for one in shown(*path, gone, back)] == ["1", "two"]
    assert [_words(one) for one in shown(*path, back, gone)] == ["1"]


def _words(message: Message) -> str:
    assert not isinstance(message, BashMessage)
    return text_of(getattr(message, "content", ()))
