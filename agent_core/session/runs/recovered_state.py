"""State of a session before it was opened, read from the entries of its file: pure."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import Delivery, InjectedBy, QueueItem, TaskState
from agent_core.kernel import (
    JsonObject,
    JsonValue,
    MessageId,
    QueueId,
    RunId,
    SessionId,
    ToolCallId,
)
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value, threadsafe
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    CustomMessage,
    ToolCall,
    ToolResultMessage,
    Usage,
)
from agent_core.messages.codec import decode_message, decode_user_content
from agent_core.messages.values import total_usage
from agent_core.session.history.entries import BACKGROUND, DEFERRED, LEAF, QUEUE, RUN, TASK, TOOLS
from agent_core.session.input.deferred_messages import DeferredMessage, FlushPoint
from agent_core.session.input.queue import retry_id
from agent_core.tools.port import TaskOrder
from agent_core.transcript.codec import MessageLine, StoredEntry
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    MessageEntry,
    UsageEntry,
)
from agent_core.transcript.tree import Transcript, newest_first, usages_of


class UndeliveredInput(Value, frozen=True, kw_only=True):
    """Words that were acknowledged and never said."""

    item: QueueItem
    message_id: MessageId | None


class RecoveredTask(Value, frozen=True, kw_only=True):
    """A task, as the session file has it."""

    id: str
    session: SessionId
    call: ToolCallId
    order: TaskOrder
    background: bool
    started_ms: int
    attempt: int
    worktree: str | None
    state: TaskState | None = None
    """None: its end is not in the file."""
    has_message: bool = False
    """Whether a message with its report was written with its end."""
    is_unchanged: bool = False
    """Whether its worktree was removed at its end because nothing was changed in it."""


class RecoveredState(Struct, kw_only=True):
    """The state that outlives a process."""

    interrupted: RunId | None = None
    """A run that started and never ended."""
    unanswered: list[ToolCall] = msgspec.field(default_factory=list)
    """Calls of the last answer without a result."""
    waiting: list[UndeliveredInput] = msgspec.field(default_factory=list)
    deferred: list[DeferredMessage] = msgspec.field(default_factory=list)
    """Deferred messages that are not in the conversation yet."""
    background: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Background commands whose end is not in the file: command by id."""
    background_count: int = 0
    """How many background commands there were."""
    tasks: dict[str, RecoveredTask] = msgspec.field(default_factory=dict[str, RecoveredTask])
    """All tasks, by id."""
    task_calls: dict[ToolCallId, str] = msgspec.field(default_factory=dict["ToolCallId", str])
    """Tasks that calls of the last answer started."""
    runs: dict[MessageId, RunId | None] = msgspec.field(default_factory=dict)
    """Which run each message of a client began; None: it was queued."""
    usage: Usage = msgspec.field(default_factory=Usage)
    """Everything the session has cost so far, on all branches."""
    context_used: int | None = 0
    """Tokens in the context after the last answer; None after a compaction or context edit: not known yet."""


def recover_state(
    entries: Sequence[AnyEntry], *, path: Sequence[AnyEntry] | None = None
) -> RecoveredState:
    """Read a session's entries in order.

    Runs, waiting words and costs are the session's, on whatever branch they were written; the context and the calls
    that wait for their results are those of one branch.

    Args:
        entries: All of them.
        path: Root to leaf; None: all entries are one branch.
    """
    restored = RecoveredState()
    for entry in entries:
        match entry:
            case MessageEntry(message=AssistantMessage(usage=usage)) | UsageEntry(usage=usage):
                restored.usage = restored.usage.plus(usage)
            case CompactionEntry() | BranchSummaryEntry() | ColdEntry():
                restored.usage = restored.usage.plus(entry.usage or Usage())
            case CustomEntry(custom_type=kind, data=data) if kind == RUN:
                _run(restored, as_object(data))
            case CustomEntry(custom_type=kind, data=data) if kind == QUEUE:
                _queue(restored, as_object(data))
            case CustomEntry(custom_type=kind, data=data) if kind == BACKGROUND:
                _background(restored, as_object(data))
            case CustomEntry(custom_type=kind, data=data, at_ms=at_ms) if kind == TASK:
                _task(restored, as_object(data), at_ms)
            case CustomEntry(custom_type=kind, data=data, at_ms=at_ms) if kind == DEFERRED:
                _deferred(restored, as_object(data), at_ms)
            case _:
                pass
    for entry in entries if path is None else path:
        _follow(restored, entry)
    return restored


def recover_session(transcript: Transcript) -> RecoveredState:
    """Return what `recover_state` reads of a session and its present branch, decoding only the newest messages."""
    restored = recover_state(transcript.records, path=_since_last_answer(transcript))
    restored.usage = total_usage(usages_of(transcript.stored))
    restored.context_used = _context_used(transcript.stored_path)
    return restored


def _since_last_answer(transcript: Transcript) -> Sequence[AnyEntry]:
    """Return the end of the branch that decides which calls wait for results."""
    found: list[AnyEntry] = []
    for entry in newest_first(transcript):
        found.append(entry)
        match entry:
            case MessageEntry(message=AssistantMessage()) | BranchSummaryEntry():
                break
            case CustomEntry(custom_type=kind) if kind == LEAF:
                break
            case _:
                pass
    found.reverse()
    return found


def _context_used(path: Sequence[StoredEntry]) -> int | None:
    """Return how full the context of a branch is, as `_follow` finds it, from the end and without decoding messages."""
    for entry in reversed(path):
        used = None
        if isinstance(entry, MessageLine):
            used = entry.usage
        elif isinstance(entry, CompactionEntry | ContextEditEntry | BranchSummaryEntry):
            return None
        elif isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            used = entry.message.usage
        if used is not None and used.total:
            return used.total
    return 0


def tools_of(path: Sequence[AnyEntry]) -> tuple[str, ...] | None:
    """Return the active tools that were chosen last on a branch, by name; None: they were never chosen.

    Tools that the opener of a session requests are no choice of the session: they are active until it is closed.
    """
    for entry in reversed(path):
        if isinstance(entry, CustomEntry) and entry.custom_type == TOOLS:
            names = as_object(entry.data).get("tools")
            if isinstance(names, Sequence) and not isinstance(names, str):
                return tuple(name for name in names if isinstance(name, str))
    return None


def _follow(restored: RecoveredState, entry: AnyEntry) -> None:
    match entry:
        case MessageEntry(message=message):
            _message(restored, message)
        case CompactionEntry() | ContextEditEntry():
            restored.context_used = None
        case BranchSummaryEntry():
            restored.context_used = None
            restored.unanswered = []
        case CustomEntry(custom_type=kind) if kind == LEAF:
            # Nothing goes on while the leaf is moved: what is open before it was closed on another branch.
            restored.unanswered = []
        case CustomEntry(custom_type=kind, data=data) if kind == TASK:
            task = as_object(data)
            if task.get("op") == "started":
                restored.task_calls[ToolCallId(str(task.get("call")))] = str(task.get("id"))
        case _:
            pass


def _message(restored: RecoveredState, message: object) -> None:
    match message:
        case AssistantMessage(usage=usage):
            restored.unanswered = list(message.tool_calls) if _expects_results(message) else []
            restored.task_calls = {}
            restored.context_used = usage.total or restored.context_used
        case ToolResultMessage(call_id=call):
            restored.unanswered = [one for one in restored.unanswered if one.id != call]
        case _:
            pass


def _expects_results(message: AssistantMessage) -> bool:
    return message.stop_reason not in {"error", "aborted"}


def _run(restored: RecoveredState, data: JsonObject) -> None:
    run = data.get("run")
    if not isinstance(run, str):
        return
    if data.get("status") == "started":
        restored.interrupted = RunId(run)
        message_id, of = data.get("messageId"), data.get("retryOf")
        if isinstance(message_id, str):
            restored.runs[MessageId(message_id)] = RunId(run)
        if isinstance(of, str):
            restored.runs[retry_id(RunId(of))] = RunId(run)
    elif restored.interrupted == run:
        restored.interrupted = None


def _queue(restored: RecoveredState, data: JsonObject) -> None:
    if data.get("op") == "edit":
        _edit(restored, data)
        return
    queue_id, run = data.get("queueId"), data.get("run")
    if not isinstance(queue_id, str):
        return
    if data.get("op") == "take":
        _take(restored, QueueId(queue_id), data)
        return
    message_id = data.get("messageId")
    client_id = MessageId(message_id) if isinstance(message_id, str) else None
    content, _ = decode_user_content(data.get("content"))
    at_ms = data.get("at")
    item = QueueItem(
        queue_id=QueueId(queue_id),
        delivery=_delivery(data.get("delivery")),
        content=content,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
        custom=_mark(data.get("custom")),
        source="program" if data.get("source") == "program" else "person",
    )
    restored.waiting.append(UndeliveredInput(item=item, message_id=client_id))
    if client_id is not None:
        _ = restored.runs.setdefault(client_id, RunId(run) if isinstance(run, str) else None)


def _take(restored: RecoveredState, queue_id: QueueId, data: JsonObject) -> None:
    """Strike words from the queue: a run said them, somebody has them back, or they were never acknowledged."""
    run = data.get("run")
    for one in restored.waiting:
        if one.item.queue_id != queue_id or one.message_id is None:
            continue
        if isinstance(run, str):
            restored.runs[one.message_id] = RunId(run)
        elif data.get("why") == "refused":
            _ = restored.runs.pop(one.message_id, None)
    restored.waiting = [one for one in restored.waiting if one.item.queue_id != queue_id]


def _edit(restored: RecoveredState, data: JsonObject) -> None:
    """Apply a queue edit to the waiting messages; those that the entry does not name stay behind the others."""
    removed, queue_data = data.get("removed"), data.get("queue")
    gone = removed if isinstance(removed, Sequence) else ()
    left = {one.item.queue_id: one for one in restored.waiting if one.item.queue_id not in gone}
    ordered: list[UndeliveredInput] = []
    for raw in queue_data if isinstance(queue_data, Sequence) else ():
        change = as_object(raw)
        one = left.pop(QueueId(str(change.get("queueId"))), None)
        if one is None:
            continue
        content = one.item.content
        if "content" in change:
            content, _ = decode_user_content(change["content"])
        delivery = _delivery(change.get("delivery"))
        item = replace(one.item, content=content, delivery=delivery)
        ordered.append(replace(one, item=item))
    restored.waiting = [*ordered, *left.values()]


def _background(restored: RecoveredState, data: JsonObject) -> None:
    id_ = str(data.get("id"))
    if data.get("state") == "started":
        restored.background[id_] = str(data.get("command"))
        restored.background_count += 1
    else:
        _ = restored.background.pop(id_, None)


def _task(restored: RecoveredState, data: JsonObject, at_ms: int) -> None:
    id_ = str(data.get("id"))
    if data.get("op") == "ended":
        before = restored.tasks.get(id_)
        if before is not None:
            state = _TASK_STATES.get(str(data.get("state")))
            has_message = data.get("report") == "message"
            restored.tasks[id_] = replace(
                before,
                state=state,
                has_message=has_message,
                is_unchanged=data.get("unchanged") is True,
            )
        return
    attempt, worktree = data.get("attempt"), data.get("worktree")
    restored.tasks[id_] = RecoveredTask(
        id=id_,
        session=SessionId(str(data.get("session"))),
        call=ToolCallId(str(data.get("call"))),
        order=_order(data),
        background=data.get("background") is True,
        started_ms=at_ms,
        attempt=attempt if isinstance(attempt, int) else 1,
        worktree=worktree if isinstance(worktree, str) else None,
    )


def _order(data: JsonObject) -> TaskOrder:
    try:
        return msgspec.convert(data.get("order"), threadsafe(TaskOrder))
    except msgspec.ValidationError:
        id_ = str(data.get("id"))
        return TaskOrder(description=id_, prompt="", preset="general")


_TASK_STATES: Mapping[str, TaskState] = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "budget": "budget",
    "lost": "lost",
}


def _deferred(restored: RecoveredState, data: JsonObject, at_ms: int) -> None:
    laid_id = data.get("id")
    if data.get("op") == "take":
        restored.deferred = [one for one in restored.deferred if one.deferred_id != laid_id]
        return
    try:
        decoded = decode_message(as_object(data.get("message")), at_ms=at_ms)
    except ValueError:
        return
    message = None if decoded is None else decoded[0]
    if isinstance(laid_id, str) and isinstance(message, BashMessage | CustomMessage):
        until = _UNTILS.get(str(data.get("until")), "turn")
        restored.deferred.append(
            DeferredMessage(deferred_id=laid_id, flush_at=until, message=message)
        )


_UNTILS: Mapping[str, FlushPoint] = {"turn": "turn", "run": "run", "prompt": "prompt"}


def _mark(value: JsonValue) -> InjectedBy | None:
    mark = as_object(value)
    custom_type = mark.get("customType")
    if not isinstance(custom_type, str):
        return None
    display = mark.get("display") is not False
    return InjectedBy(custom_type=custom_type, display=display, details=mark.get("details"))


def _delivery(value: object) -> Delivery:
    return "steer" if value == "steer" else "followUp"
