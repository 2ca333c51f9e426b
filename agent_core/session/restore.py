"""What a session file says about the time before it was opened: pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_core.events import Delivery, QueueItem
from agent_core.kernel import JsonObject, MessageId, QueueId, RunId
from agent_core.kernel.json import as_object
from agent_core.messages import AssistantMessage, ToolCall, ToolResultMessage, Usage
from agent_core.messages.block_codec import decode_user_content
from agent_core.session.drafts import QUEUE, RUN
from agent_core.transcript.entries import AnyEntry, CompactionEntry, CustomEntry, MessageEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Words that were acknowledged and never said."""

    item: QueueItem
    message_id: MessageId | None


@dataclass(slots=True, kw_only=True)
class Restored:
    """The state that outlives a process."""

    interrupted: RunId | None = None
    """A run that started and never ended."""
    unanswered: list[ToolCall] = field(default_factory=list)
    """Calls of the last answer without a result."""
    waiting: list[Waiting] = field(default_factory=list)
    runs: dict[MessageId, RunId | None] = field(default_factory=dict)
    """Which run each message of a client began; None: it was queued."""
    usage: Usage = field(default_factory=Usage)
    """Everything this branch has cost so far."""
    context_used: int = 0
    """Tokens in the context after the last answer; 0 after a compaction, when nobody knows yet."""


def restore(path: Sequence[AnyEntry]) -> Restored:
    """Read the entries of a branch in order."""
    restored = Restored()
    for entry in path:
        match entry:
            case MessageEntry(message=message):
                _message(restored, message)
            case CustomEntry(custom_type=kind, data=data) if kind == RUN:
                _run(restored, as_object(data))
            case CustomEntry(custom_type=kind, data=data) if kind == QUEUE:
                _queue(restored, as_object(data))
            case CompactionEntry(usage=usage):
                restored.context_used = 0
                restored.usage = restored.usage.plus(usage or Usage())
            case _:
                pass
    return restored


def _message(restored: Restored, message: object) -> None:
    match message:
        case AssistantMessage(usage=usage):
            restored.unanswered = list(message.tool_calls) if _expects_results(message) else []
            restored.usage = restored.usage.plus(usage)
            restored.context_used = usage.total or restored.context_used
        case ToolResultMessage(call_id=call):
            restored.unanswered = [one for one in restored.unanswered if one.id != call]
        case _:
            pass


def _expects_results(message: AssistantMessage) -> bool:
    return message.stop_reason not in {"error", "aborted"}


def _run(restored: Restored, data: JsonObject) -> None:
    run = data.get("run")
    if not isinstance(run, str):
        return
    if data.get("status") == "started":
        restored.interrupted = RunId(run)
        message_id = data.get("messageId")
        if isinstance(message_id, str):
            restored.runs[MessageId(message_id)] = RunId(run)
    elif restored.interrupted == run:
        restored.interrupted = None


def _queue(restored: Restored, data: JsonObject) -> None:
    queue_id = data.get("queueId")
    if not isinstance(queue_id, str):
        return
    if data.get("op") == "take":
        restored.waiting = [one for one in restored.waiting if one.item.queue_id != queue_id]
        return
    message_id = data.get("messageId")
    known = MessageId(message_id) if isinstance(message_id, str) else None
    content, _ = decode_user_content(data.get("content"))
    at_ms = data.get("at")
    item = QueueItem(
        queue_id=QueueId(queue_id),
        delivery=_delivery(data.get("delivery")),
        content=content,
        at_ms=at_ms if isinstance(at_ms, int) else 0,
    )
    restored.waiting.append(Waiting(item=item, message_id=known))
    if known is not None:
        _ = restored.runs.setdefault(known, None)


def _delivery(value: object) -> Delivery:
    return "steer" if value == "steer" else "followUp"
