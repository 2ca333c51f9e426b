"""What a session's file says about the time before: from entries alone."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agent_core.events import Delivery, QueueItem
from agent_core.kernel import EntryId, JsonValue, MessageId, QueueId, RunId
from agent_core.loop import UserInput
from agent_core.messages import StopReason, Text, Usage
from agent_core.session.history.entries import (
    EntryFactory,
    input_entries,
    message_entry,
    prompt_entries,
    queued_entry,
    run_ended_entry,
    run_started_entry,
    unqueued_entries,
)
from agent_core.session.runs.recovered_state import RecoveredState, UndeliveredInput, recover_state
from agent_core.transcript.entries import AnyEntry, CompactionEntry, CustomEntry
from tests.support.session.entries import AT_MS, assistant, call, compaction, result, user


def written(*drafts: EntryFactory | AnyEntry) -> list[AnyEntry]:
    """Number drafts as the recorder does."""
    entries: list[AnyEntry] = []
    for number, draft in enumerate(drafts):
        parent = entries[-1].id if entries else None
        entries.append(draft(EntryId(f"e{number}"), parent, AT_MS) if callable(draft) else draft)
    return entries


def prompt(run: str, text: str = "go", message_id: str | None = None) -> tuple[EntryFactory, ...]:
    known = MessageId(message_id) if message_id else None
    words = UserInput(content=(Text(text=text),), delivery="prompt", message_id=known)
    return prompt_entries(words, RunId(run))


def queued(
    name: str, message_id: str | None = None, *, delivery: Delivery = "steer"
) -> UndeliveredInput:
    item = QueueItem(queue_id=QueueId(name), delivery=delivery, content=(Text(text=name),), at_ms=7)
    return UndeliveredInput(item=item, message_id=MessageId(message_id) if message_id else None)


def put(waiting: UndeliveredInput) -> EntryFactory:
    return queued_entry(waiting.item, waiting.message_id)


def note(kind: str, data: JsonValue) -> CustomEntry:
    return CustomEntry(id=EntryId("x"), parent=None, at_ms=AT_MS, custom_type=kind, data=data)


def test_an_empty_session_has_nothing_to_restore() -> None:
    assert recover_state(()) == RecoveredState()


def test_a_run_that_ended_is_known_by_its_message_and_not_interrupted() -> None:
    path = written(*prompt("r1", message_id="m1"), run_ended_entry(RunId("r1"), "completed"))
    assert recover_state(path) == RecoveredState(runs={MessageId("m1"): RunId("r1")})


def test_a_run_that_never_ended_was_interrupted() -> None:
    path = written(
        *prompt("r1"), run_ended_entry(RunId("r1"), "failed"), run_started_entry(RunId("r2"))
    )
    assert recover_state(path) == RecoveredState(interrupted=RunId("r2"))


def test_the_end_of_another_run_ends_nothing() -> None:
    path = written(*prompt("r1"), run_ended_entry(RunId("r0"), "completed"))
    assert recover_state(path).interrupted == "r1"


def test_calls_of_the_last_answer_without_a_result_are_unanswered() -> None:
    first, second, third = (call("read", call_id=one) for one in ("c1", "c2", "c3"))
    path = written(
        message_entry(assistant(call("read", call_id="c0"), stop_reason="tool_use")),
        message_entry(assistant(first, second, third, stop_reason="tool_use")),
        message_entry(result("x", call_id="c2")),
    )
    assert recover_state(path).unanswered == [first, third]


@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
def test_a_broken_answer_expects_no_results(stop_reason: StopReason) -> None:
    path = written(message_entry(assistant(call("read"), stop_reason=stop_reason)))
    assert recover_state(path).unanswered == []


def test_words_wait_until_they_are_said_given_back_or_dropped() -> None:
    said, back, still = queued("a", "m1"), queued("b"), queued("c", "m3", delivery="followUp")
    words = UserInput(content=said.item.content, delivery="steer", queue_id=said.item.queue_id)
    path = written(
        put(said),
        put(back),
        put(still),
        *input_entries(words),
        *unqueued_entries([back.item], "returned"),
    )
    restored = recover_state(path)
    assert restored.waiting == [still]
    assert restored.runs == {MessageId("m1"): None, MessageId("m3"): None}


def test_whose_words_wait_is_kept() -> None:
    waiting = queued("q1")
    ours = UndeliveredInput(item=replace(waiting.item, source="program"), message_id=None)
    restored = recover_state(written(put(waiting), put(ours)))
    assert [one.item.source for one in restored.waiting] == ["person", "program"]


def test_usage_adds_up_and_the_context_is_as_the_last_answer_said() -> None:
    path = written(
        message_entry(assistant("a", usage=Usage(input=10, output=5))),
        message_entry(assistant("b", usage=Usage(input=20, output=5))),
        message_entry(assistant("no count")),
    )
    restored = recover_state(path)
    assert (restored.usage, restored.context_used) == (Usage(input=30, output=10), 25)


def test_after_a_compaction_nobody_knows_the_context_yet_and_the_summary_was_paid() -> None:
    paid = CompactionEntry(
        id=EntryId("c"),
        parent=None,
        at_ms=AT_MS,
        summary="s",
        first_kept=EntryId("e0"),
        tokens_before=9,
        usage=Usage(input=3),
    )
    path = written(message_entry(assistant("a", usage=Usage(input=10, output=5))), paid)
    restored = recover_state(path)
    assert (restored.usage, restored.context_used) == (Usage(input=13, output=5), None)
    free = compaction("c", parent="e0", first_kept="e0")
    assert recover_state([*path, free]).usage == restored.usage


@pytest.mark.parametrize(
    "entry",
    [
        note("tiller.run", None),
        note("tiller.run", "started"),
        note("tiller.run", {"status": "started"}),
        note("tiller.run", {"run": 7, "status": "started"}),
        note("tiller.queue", {"op": "put"}),
        note("tiller.queue", {"op": "take", "queueId": None}),
        note("tiller.queue", {"op": "take", "queueId": "never-put"}),
        note("somebody.else", {"run": "r1", "status": "started"}),
    ],
)
def test_an_entry_that_makes_no_sense_changes_nothing(entry: CustomEntry) -> None:
    path = written(*prompt("r1", message_id="m1"), message_entry(user("x")))
    assert recover_state([*path, entry]) == recover_state(path)


@pytest.mark.parametrize(
    "odd",
    [{"at": "soon"}, {"delivery": "shout"}, {"content": None}, {"messageId": 7}],
    ids=["time", "delivery", "content", "message-id"],
)
def test_waiting_words_survive_an_odd_field(odd: Mapping[str, JsonValue]) -> None:
    sound: dict[str, JsonValue] = {
        "op": "put",
        "queueId": "q1",
        "delivery": "followUp",
        "content": [{"type": "text", "text": "later"}],
        "messageId": None,
        "at": 7,
    }
    (waiting,) = recover_state([note("tiller.queue", sound | dict(odd))]).waiting
    assert waiting == UndeliveredInput(
        item=QueueItem(
            queue_id=QueueId("q1"),
            delivery="followUp",
            content=() if "content" in odd else (Text(text="later"),),
            at_ms=0 if "at" in odd else 7,
        ),
        message_id=None,
    )
