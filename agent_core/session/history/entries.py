"""Entries before they have an id: pure functions from what happened to what is written."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from agent_core.changes import Checkpoint
from agent_core.changes.checkpoint_codec import encode_checkpoint
from agent_core.compaction import Compacted
from agent_core.compaction.branch_summary import BranchSummary
from agent_core.events import QueueItem
from agent_core.kernel import EntryId, JsonValue, MessageId, QueueId, RunId
from agent_core.loop import UserInput
from agent_core.messages import (
    BashMessage,
    CustomMessage,
    Text,
    Usage,
    UserContent,
    UserMessage,
)
from agent_core.messages.block_codec import encode_blocks
from agent_core.messages.codec import encode_message
from agent_core.providers import ModelInfo
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    StoredMessage,
    ThinkingChange,
    UsageEntry,
)

RUN = "tiller.run"
QUEUE = "tiller.queue"
LEAF = "tiller.leaf"  # decision 0015
ROOT = "root"
"""Stands for the leaf that was left when there was none."""
DEFERRED = "tiller.aside"
PERMISSION = "tiller.permission"
QUESTION = "tiller.question"
TOOLS = "tiller.tools"
CHANGE = "tiller.change"
REVIEW = "tiller.review"
CHECKPOINT = "tiller.checkpoint"
INTERRUPTION = "tiller.interruption"
INTERRUPTED_BY_USER = (
    "[The user interrupted you here. What you were about to say or do was not done.]"
)
DAEMON_RESTART: Literal["daemonRestart"] = "daemonRestart"
"""Why a run was interrupted: the process that carried it is gone."""

EntryFactory = Callable[[EntryId, EntryId | None, int], AnyEntry]
"""Makes an entry from its id, its parent and its time in Unix milliseconds."""


def message_entry(stored: StoredMessage) -> EntryFactory:
    """Write a message."""
    return lambda entry, parent, at_ms: MessageEntry(
        id=entry, parent=parent, at_ms=at_ms, message=stored
    )


def prompt_entries(user_input: UserInput, run: RunId) -> tuple[EntryFactory, ...]:
    """Write the words that a run begins with; the message is the first entry."""
    return (_input_entry(user_input), _run_state(run, "started", user_input.message_id))


def queued_entry(
    item: QueueItem, message_id: MessageId | None, run: RunId | None = None
) -> EntryFactory:
    """Write words that wait, and the run that they joined."""
    data: dict[str, JsonValue] = {
        "op": "put",
        "queueId": item.queue_id,
        "delivery": item.delivery,
        "content": encode_blocks(item.content),
        "messageId": message_id,
        "at": item.at_ms,
    }
    if run is not None:
        data["run"] = run
    if item.source != "person":
        data["source"] = item.source
    if item.custom is not None:
        data["custom"] = {
            "customType": item.custom.custom_type,
            "display": item.custom.display,
            "details": item.custom.details,
        }
    return _custom(QUEUE, data)


def unqueued_entries(items: Sequence[QueueItem], why: str) -> tuple[EntryFactory, ...]:
    """Write that waiting words were given back or dropped."""
    return tuple(
        _custom(QUEUE, {"op": "take", "queueId": one.queue_id, "why": why}) for one in items
    )


def edited_queue_entry(
    items: Sequence[QueueItem], *, replaced: Collection[QueueId], removed: Sequence[QueueId]
) -> EntryFactory:
    """Write how words wait after a client changed the queue: in this order, some of them in other words."""
    queue: list[JsonValue] = []
    for item in items:
        one: dict[str, JsonValue] = {"queueId": item.queue_id, "delivery": item.delivery}
        if item.queue_id in replaced:
            one["content"] = encode_blocks(item.content)
        queue.append(one)
    return _custom(QUEUE, {"op": "edit", "queue": queue, "removed": list(removed)})


def input_entries(user_input: UserInput, run: RunId | None = None) -> tuple[EntryFactory, ...]:
    """Write words that enter the conversation, and strike them from the queue; the message comes first."""
    if user_input.queue_id is None:
        return (_input_entry(user_input),)
    taken: dict[str, JsonValue] = {"op": "take", "queueId": user_input.queue_id, "why": "delivered"}
    if run is not None:
        taken["run"] = run
    return (_input_entry(user_input), _custom(QUEUE, taken))


def deferred_entry(
    deferred_id: str, flush_at: str, message: BashMessage | CustomMessage
) -> EntryFactory:
    """Write what enters the conversation later."""
    return _custom(
        DEFERRED,
        {"op": "put", "id": deferred_id, "until": flush_at, "message": encode_message(message)},
    )


def flushed_entry(deferred_id: str) -> EntryFactory:
    """Write that what was laid aside is in the conversation now."""
    return _custom(DEFERRED, {"op": "take", "id": deferred_id})


def run_started_entry(run: RunId) -> EntryFactory:
    """Write that a run begins with words that had waited."""
    return _run_state(run, "started", None)


def run_retried_entry(run: RunId, *, of: RunId) -> EntryFactory:
    """Write that a run goes on with what another left undone."""
    return _custom(RUN, {"run": run, "status": "started", "retryOf": of})


def run_ended_entry(run: RunId, status: str) -> EntryFactory:
    """Write how a run ended."""
    return _run_state(run, status, None)


def interruption_entry(entry: EntryId, parent: EntryId | None, at_ms: int) -> AnyEntry:
    """Create the model's note about an interruption by the user: its unfinished answer or call is in no transcript."""
    return CustomMessageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        custom_type=INTERRUPTION,
        content=(Text(text=INTERRUPTED_BY_USER),),
        display=False,
        details=None,
    )


def run_interrupted_entry(run: RunId) -> EntryFactory:
    """Write that a run ended because its process did."""
    return _custom(
        RUN, {"run": run, "status": "interrupted", "cause": DAEMON_RESTART, "resumable": True}
    )


def added_entry(message: CustomMessage) -> EntryFactory:
    """Write words that a hook or a program added."""
    return lambda entry, parent, at_ms: CustomMessageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        custom_type=message.custom_type,
        content=message.content,
        display=message.display,
        details=message.details,
    )


def replaced_entry(target: EntryId, content: tuple[UserContent, ...] | None) -> EntryFactory:
    """Write that the model sees other words in an entry's place, or none."""
    replacement: JsonValue = None if content is None else {"content": encode_blocks(content)}
    return lambda entry, parent, at_ms: ContextEditEntry(
        id=entry, parent=parent, at_ms=at_ms, target=target, replacement=replacement
    )


def model_entry(provider: str, model: str) -> EntryFactory:
    """Write the choice of a model."""
    return lambda entry, parent, at_ms: ModelChange(
        id=entry, parent=parent, at_ms=at_ms, provider=provider, model=model
    )


def thinking_entry(level: str) -> EntryFactory:
    """Write the choice of a thinking level."""
    return lambda entry, parent, at_ms: ThinkingChange(
        id=entry, parent=parent, at_ms=at_ms, level=level
    )


def tools_entry(names: Sequence[str]) -> EntryFactory:
    """Write the choice of the active tools."""
    return _custom(TOOLS, {"tools": list(names)})


def compaction_entry(result: Compacted) -> EntryFactory:
    """Write a summary in the place of older entries."""
    return lambda entry, parent, at_ms: CompactionEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        summary=result.summary,
        first_kept=result.first_kept,
        tokens_before=result.tokens_before,
        details=result.details,
        usage=result.usage,
        from_hook=result.from_hook,
    )


def usage_entry(kind: str, *, model: ModelInfo, usage: Usage) -> EntryFactory:
    """Write what was used beside the conversation."""
    return lambda entry, parent, at_ms: UsageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        kind=kind,
        provider=model.provider,
        model=model.id,
        usage=usage,
    )


def _input_entry(user_input: UserInput) -> EntryFactory:
    if user_input.custom is None:
        return _user(user_input.content)
    mark, content = user_input.custom, user_input.content
    return lambda entry, parent, at_ms: CustomMessageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        custom_type=mark.custom_type,
        content=content,
        display=mark.display,
        details=mark.details,
    )


def label_entry(target: EntryId, label: str | None) -> EntryFactory:
    """Write a label on an entry, or that it has none any more."""
    return lambda entry, parent, at_ms: LabelEntry(
        id=entry, parent=parent, at_ms=at_ms, target=target, label=label
    )


def label_before_entry(label: str) -> EntryFactory:
    """Write a label on the entry that is written just before."""
    return lambda entry, parent, at_ms: LabelEntry(
        id=entry, parent=parent, at_ms=at_ms, target=parent or entry, label=label
    )


def name_entry(title: str | None) -> EntryFactory:
    """Write the session's title, or that it has none any more."""
    return lambda entry, parent, at_ms: SessionNameEntry(
        id=entry, parent=parent, at_ms=at_ms, name=title or ""
    )


def branch_summary_entry(summary: BranchSummary, *, left: EntryId | None) -> EntryFactory:
    """Write what happened on a branch, from its leaf, where the conversation goes on without it."""
    return lambda entry, parent, at_ms: BranchSummaryEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        from_id=left or ROOT,
        summary=summary.summary,
        details=summary.details,
        usage=summary.usage,
    )


def permission_asked_entry(request: Mapping[str, JsonValue]) -> EntryFactory:
    """Write that a person is asked."""
    return _custom(PERMISSION, {"op": "asked", "request": request})


def permission_answered_entry(
    request: str, option: str | None, *, by: str, rule: JsonValue
) -> EntryFactory:
    """Write what a question came to."""
    data: dict[str, JsonValue] = {"op": "answered", "request": request, "option": option, "by": by}
    if rule is not None:
        data["rule"] = rule
    return _custom(PERMISSION, data)


def question_asked_entry(question: Mapping[str, JsonValue]) -> EntryFactory:
    """Write that a person is asked what is meant."""
    return _custom(QUESTION, {"op": "asked", "request": question})


def question_answered_entry(request: str, answers: JsonValue, *, by: str) -> EntryFactory:
    """Write what such a question came to."""
    return _custom(QUESTION, {"op": "answered", "request": request, "answers": answers, "by": by})


def checkpoint_entry(one: Checkpoint) -> EntryFactory:
    """Write that files and conversation can be taken back to here."""
    return _custom(CHECKPOINT, encode_checkpoint(one))


def change_entry(change: Mapping[str, JsonValue]) -> EntryFactory:
    """Write a change of a file."""
    return _custom(CHANGE, change)


def review_entry(verdict: Mapping[str, JsonValue]) -> EntryFactory:
    """Write a verdict on hunks."""
    return _custom(REVIEW, verdict)


def leaf_entry(left: EntryId | None) -> EntryFactory:
    """Write that the conversation goes on from here and not from the leaf that was left.

    Every reader takes the last entry for the leaf, so the place outlives the process in all of them.
    """
    return _custom(LEAF, {"from": left})


def _user(content: tuple[UserContent, ...]) -> EntryFactory:
    return lambda entry, parent, at_ms: MessageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        message=UserMessage(content=content, at_ms=at_ms),
    )


def data_entry(custom_type: str, data: JsonValue) -> EntryFactory:
    """Keep what a program wants kept; no model sees it."""
    return lambda entry, parent, at_ms: CustomEntry(
        id=entry, parent=parent, at_ms=at_ms, custom_type=custom_type, data=data
    )


def _custom(kind: str, data: Mapping[str, JsonValue]) -> EntryFactory:
    return data_entry(kind, data)


def _run_state(run: RunId, status: str, message_id: MessageId | None) -> EntryFactory:
    data: dict[str, JsonValue] = {"run": run, "status": status}
    if message_id is not None:
        data["messageId"] = message_id
    return _custom(RUN, data)
