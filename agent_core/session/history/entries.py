"""Entries of a session: appended to its file and its tree."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from agent_core.changes import Checkpoint
from agent_core.changes.values import encode_checkpoint
from agent_core.compaction import Compacted
from agent_core.compaction.prompts import BranchSummary
from agent_core.events import QueueItem
from agent_core.kernel import EntryId, JsonValue, MessageId, QueueId, RunId, new_entry_id
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.loop import UserInput
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    CustomMessage,
    Text,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
)
from agent_core.messages.codec import encode_blocks, encode_message
from agent_core.providers import ModelInfo
from agent_core.transcript import Transcript
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
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
BACKGROUND = "tiller.background"
TASK = "tiller.task"
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
    return used_entry(kind, provider=model.provider, model=model.id, usage=usage)


def used_entry(kind: str, *, provider: str, model: str, usage: Usage) -> EntryFactory:
    """Write what was used beside the conversation, by the names of provider and model."""
    return lambda entry, parent, at_ms: UsageEntry(
        id=entry,
        parent=parent,
        at_ms=at_ms,
        kind=kind,
        provider=provider,
        model=model,
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


def name_entry(title: str | None, *, generated: bool = False) -> EntryFactory:
    """Write the session's title, or that it has none any more."""
    return lambda entry, parent, at_ms: SessionNameEntry(
        id=entry, parent=parent, at_ms=at_ms, name=title or "", generated=generated
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


def background_entry(id_: str, state: str, command: str) -> EntryFactory:
    """Write that a background command started or ended (`state`)."""
    return _custom(BACKGROUND, {"id": id_, "state": state, "command": command})


def task_entry(data: Mapping[str, JsonValue]) -> EntryFactory:
    """Write that a task was started or ended (`op`)."""
    return _custom(TASK, data)


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


ForkWriter = Callable[[Header, Sequence[AnyEntry]], Awaitable[str | None]]
"""Keeps a new session with these entries and lets go of it; gives its file, None in memory."""


def fork_entries(
    path: Sequence[AnyEntry], *, labels: Mapping[EntryId, LabelEntry]
) -> tuple[AnyEntry, ...]:
    """Return the entries of a new session that holds a path of this one.

    They are chained anew without what belongs to this session alone: words that wait in it, what it did to files, and
    runs that the path does not hold to their end. Labels come last, with the times at which they were given.

    Args:
        path: Root to the last entry that is taken along, with bodies.
        labels: The label in force for each entry that has one, oldest first.
    """
    kept_ids = {entry.id for entry in _kept(path)}
    chained: list[AnyEntry] = []
    for place, entry in enumerate(path):
        if entry.id in kept_ids:
            parent = chained[-1].id if chained else None
            chained.append(replace(_moved(entry, place, path, kept_ids), parent=parent))
    ids = set(kept_ids)
    for label in labels.values():
        if label.target in kept_ids:
            drawn = new_entry_id(ids, at_ms=label.at_ms)
            ids.add(drawn)
            parent = chained[-1].id if chained else None
            chained.append(replace(label, id=drawn, parent=parent))
    return tuple(chained)


def labels_of(entries: Iterable[AnyEntry]) -> dict[EntryId, LabelEntry]:
    """Return the label in force for each entry that has one, oldest first: the last one of a target counts."""
    found: dict[EntryId, LabelEntry] = {}
    for entry in entries:
        if isinstance(entry, LabelEntry):
            _ = found.pop(entry.target, None)
            if entry.label:
                found[entry.target] = entry
    return found


def _kept(path: Sequence[AnyEntry]) -> Iterable[AnyEntry]:
    ended = {_run_of(entry) for entry in path if _run_status(entry) not in {None, "started"}}
    for entry in path:
        match entry:
            case LabelEntry():
                continue
            case CustomEntry(custom_type=kind) if kind in {
                QUEUE,
                DEFERRED,
                CHANGE,
                REVIEW,
                CHECKPOINT,
                BACKGROUND,
                TASK,
            }:
                continue
            case CustomEntry() if _run_status(entry) == "started" and _run_of(entry) not in ended:
                continue
            case _:
                yield entry


def _moved(
    entry: AnyEntry, place: int, path: Sequence[AnyEntry], kept_ids: set[EntryId]
) -> AnyEntry:
    """Return the entry; a compaction whose first kept entry is not copied keeps from the next copied one on."""
    if not isinstance(entry, CompactionEntry) or entry.first_kept in kept_ids:
        return entry
    first = next((at for at, one in enumerate(path[:place]) if one.id == entry.first_kept), None)
    if first is None:
        return entry
    kept = next(one.id for one in path[first : place + 1] if one.id in kept_ids)
    return replace(entry, first_kept=kept)


def _run_status(entry: AnyEntry) -> object:
    if not isinstance(entry, CustomEntry) or entry.custom_type != RUN:
        return None
    return as_object(entry.data).get("status")


def _run_of(entry: AnyEntry) -> object:
    return as_object(entry.data).get("run") if isinstance(entry, CustomEntry) else None


SHOWN = frozenset({"message", "custom_message", "compaction", "branch_summary"})
"""Types of lines with content for the user; other lines of a file are data of programs."""
ROLES: Mapping[type[StoredMessage], str] = {
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolResultMessage: "toolResult",
    BashMessage: "bashExecution",
}
KINDS: Mapping[type[AnyEntry], str] = {
    MessageEntry: "message",
    CustomMessageEntry: "custom_message",
    CompactionEntry: "compaction",
    BranchSummaryEntry: "branch_summary",
}


class TreeNode(Value, frozen=True, kw_only=True):
    """An entry as the tree shows it."""

    entry: EntryId
    parent: EntryId | None
    """The nearest entry before it that is shown; None: it begins a tree."""
    kind: str
    """`message`, `custom_message`, `compaction` or `branch_summary`."""
    role: str | None
    """Of a message: `user`, `assistant`, `toolResult` or `bashExecution`."""
    preview: str
    """How it begins, on one line; may be empty."""
    label: str | None
    label_at_ms: int | None
    at_ms: int


def tree_nodes(transcript: Transcript) -> tuple[TreeNode, ...]:
    """Return the entries that are shown, in the order of the file."""
    from agent_core.transcript.cold_entries import preview_of  # noqa: PLC0415 - at first use

    labels = labels_of(transcript.entries)
    above: dict[EntryId, EntryId | None] = {}
    nodes: list[TreeNode] = []
    for entry in transcript.entries:
        kind = kind_of(entry)
        parent = _parent(transcript, entry, above)
        above[entry.id] = parent if kind is None else entry.id
        if kind is None:
            continue
        label = labels.get(entry.id)
        nodes.append(
            TreeNode(
                entry=entry.id,
                parent=parent,
                kind=kind,
                role=role_of(entry),
                preview=preview_of(entry),
                label=None if label is None else label.label,
                label_at_ms=None if label is None else label.at_ms,
                at_ms=entry.at_ms,
            )
        )
    return tuple(nodes)


def shown_from(transcript: Transcript, entry: EntryId | None) -> EntryId | None:
    """Return an entry if it is shown, else the nearest one before it that is."""
    seen: set[EntryId] = set()
    found = None if entry is None else transcript.get(entry)
    while found is not None and found.id not in seen:
        if kind_of(found) is not None:
            return found.id
        seen.add(found.id)
        found = None if found.parent is None else transcript.get(found.parent)
    return None


def kind_of(entry: AnyEntry) -> str | None:
    """Return the type of an entry's line; None: it is not shown."""
    if isinstance(entry, ColdEntry):
        return entry.kind if entry.kind in SHOWN else None
    return KINDS.get(type(entry))


def role_of(entry: AnyEntry) -> str | None:
    """Return the role of a message; None: the entry is none."""
    if isinstance(entry, ColdEntry):
        return entry.role
    return ROLES[type(entry.message)] if isinstance(entry, MessageEntry) else None


def _parent(
    transcript: Transcript, entry: AnyEntry, above: dict[EntryId, EntryId | None]
) -> EntryId | None:
    if entry.parent is None or entry.parent == entry.id:
        return None
    if entry.parent in above:
        return above[entry.parent]
    # A file that another program put together may hold a parent behind its child.
    found = shown_from(transcript, entry.parent)
    return None if found == entry.id else found
