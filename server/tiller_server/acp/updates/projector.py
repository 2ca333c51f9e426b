"""Updates of ACP from events of a session: of live events and of stored ones. No I/O."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.events import (
    CompactionEnded,
    CompactionStarted,
    ErrorRaised,
    Event,
    MessageDelta,
    MessageEnded,
    Notice,
    RetryStarted,
    SessionTitle,
    SessionUsage,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskUpdated,
    ThoughtDelta,
    ThoughtEnded,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    UsageReport,
)
from agent_core.kernel import ItemId, JsonObject, JsonValue
from agent_core.kernel.json import encode
from agent_core.kernel.values import Value
from agent_core.messages import text_of
from tiller_server.acp.content import content_block, text_block
from tiller_server.acp.updates.tool_calls import (
    MAX_RAW_BYTES,
    OWN_DIFF,
    STATUSES,
    ended_content,
    locations,
    plan_entries,
    tool_kind,
)

OUTPUT_CHARS: Final = 8192
"""End of the output of a running call that is shown; an update replaces the one before."""


class ShownParts(Value, frozen=True, kw_only=True):
    """Kinds of updates that a client has declared."""

    notices: bool = False
    compaction: bool = False


class _Call:
    """A tool call that the client was told of."""

    __slots__ = ("arguments", "output")

    def __init__(self) -> None:
        self.arguments: JsonObject = {}
        self.output = ""


class Projector:
    """The updates of one session for one client."""

    def __init__(
        self,
        root: Path,
        parts: ShownParts,
        *,
        own: Sequence[str] | set[str] = (),
        shown: Mapping[str, int] | None = None,
    ) -> None:
        """Create one for a client that was told of nothing yet.

        Args:
            root: Folder of the session, for relative paths.
            parts: Kinds of updates that the client has declared.
            own: Ids of prompts that the client has sent, which it shows itself; the caller may add to them.
            shown: Characters of unfinished messages and thoughts that the client has, by item.
        """
        self._root = root
        self._parts = parts
        self._own = own
        self._shown: dict[str, int] = dict(shown or {})
        self._calls: dict[str, _Call] = {}
        self._compactions = 0

    def shown(self, item: str) -> int | None:
        """Return how many characters of an unfinished message or thought the client has; None: it is none."""
        return self._shown.get(item)

    def updates(self, event: Event) -> list[JsonObject]:
        """Return the updates for an event; none for events that ACP does not show."""
        match event:
            case MessageDelta() | ThoughtDelta() | ThoughtEnded() | MessageEnded():
                return self._text(event)
            case ToolStarted() | ToolInputDelta() | ToolRunning() | ToolOutputDelta() | ToolEnded():
                return self._tool(event)
            case TaskCreated(task=task) | TaskUpdated(task=task) | TaskEnded(task=task):
                return self._task(task)
            case CompactionStarted() | CompactionEnded():
                return self._compaction(event)
            case _:
                return self._other(event)

    # ------------------------------------------------------------------ messages

    def _text(
        self, event: MessageDelta | ThoughtDelta | ThoughtEnded | MessageEnded
    ) -> list[JsonObject]:
        match event:
            case MessageDelta(item=item, text=text):
                return self._more("agent_message_chunk", item, text)
            case ThoughtDelta(item=item, text=text):
                return self._more("agent_thought_chunk", item, text)
            case ThoughtEnded(item=item, text=text):
                return self._rest("agent_thought_chunk", item, text)
            case MessageEnded():
                return self._message(event)

    def _more(self, kind: str, item: ItemId, text: str) -> list[JsonObject]:
        if not text:
            return []
        self._shown[item] = self._shown.get(item, 0) + len(text)
        return [_chunk(kind, item, text_block(text))]

    def _rest(self, kind: str, item: ItemId, text: str) -> list[JsonObject]:
        """Return what of a whole text was not shown piece by piece."""
        rest = text[self._shown.pop(item, 0) :]
        return [_chunk(kind, item, text_block(rest))] if rest else []

    def _message(self, event: MessageEnded) -> list[JsonObject]:
        if event.role == "user":
            if event.message_id is not None and event.message_id in self._own:
                return []
            return [
                _chunk("user_message_chunk", event.entry or event.item, content_block(part))
                for part in event.content
            ]
        return self._rest("agent_message_chunk", event.item, text_of(event.content))

    # ------------------------------------------------------------------ tool calls

    def _tool(
        self, event: ToolStarted | ToolInputDelta | ToolRunning | ToolOutputDelta | ToolEnded
    ) -> list[JsonObject]:
        match event:
            case ToolStarted(item=item, name=name, title=title):
                self._calls[item] = _Call()
                return [
                    {
                        "sessionUpdate": "tool_call",
                        "toolCallId": item,
                        "title": title or name,
                        "name": name,
                        "kind": tool_kind(name),
                        "status": "pending",
                    }
                ]
            case ToolInputDelta(item=item, partial=partial):
                return [] if partial is None else [self._arguments(item, partial)]
            case ToolRunning(item=item, title=title, input=arguments):
                self._calls.setdefault(item, _Call()).arguments = arguments
                update = self._arguments(item, arguments)
                return [{**update, "status": "in_progress", **({"title": title} if title else {})}]
            case ToolOutputDelta(item=item, text=text):
                call = self._calls.setdefault(item, _Call())
                call.output = (call.output + text)[-OUTPUT_CHARS:]
                shown: JsonObject = {"type": "content", "content": text_block(call.output)}
                return [_call_update(item, content=[shown])]
            case ToolEnded():
                return self._ended(event, self._calls.pop(event.item, None))

    def _arguments(self, item: str, arguments: JsonObject) -> JsonObject:
        places = locations(arguments, self._root)
        more: dict[str, JsonValue] = {"locations": places} if places else {}
        return _call_update(item, rawInput=arguments, **more)

    def _ended(self, event: ToolEnded, call: _Call | None) -> list[JsonObject]:
        content = ended_content(event, _Call().arguments if call is None else call.arguments)
        update: dict[str, JsonValue] = {
            "sessionUpdate": "tool_call_update" if call is not None else "tool_call",
            "toolCallId": event.item,
            "status": STATUSES.get(event.status, "failed"),
            "content": content,
        }
        if call is None:
            update |= {"title": event.name, "name": event.name, "kind": tool_kind(event.name)}
        if event.details is not None and event.name not in OWN_DIFF:
            # What a difference shows already is not sent twice, nor is what nobody could read.
            raw: JsonObject = {"status": event.status, "details": event.details}
            update |= {"rawOutput": raw} if len(encode(raw)) <= MAX_RAW_BYTES else {}
        steps = plan_entries(event.details) if event.status == "ok" else None
        if steps is None:
            return [update]
        return [update, {"sessionUpdate": "plan", "entries": steps}]

    def _task(self, task: TaskInfo) -> list[JsonObject]:
        if task.item is None or task.item not in self._calls:
            return []
        line = f"{task.description}: {task.state}" + (
            f" ({task.activity})" if task.activity else ""
        )
        return [_call_update(task.item, content=[{"type": "content", "content": text_block(line)}])]

    # ------------------------------------------------------------------ the session

    def _compaction(self, event: CompactionStarted | CompactionEnded) -> list[JsonObject]:
        is_begin = isinstance(event, CompactionStarted)
        if is_begin or not self._compactions:
            self._compactions += 1
        if self._parts.compaction:
            return [_compaction(event, f"compaction-{self._compactions}")]
        if is_begin:
            return self._tell("info", "The older part of the conversation is being summarised.")
        if event.error is not None or event.aborted:
            return self._tell("warning", "The conversation was not summarised.")
        return self._tell("info", "The older part of the conversation was summarised.")

    def _other(self, event: Event) -> list[JsonObject]:
        match event:
            case SessionUsage(usage=usage):
                return _usage(usage)
            case SessionTitle(title=title):
                return [{"sessionUpdate": "session_info_update", "title": title}]
            case Notice(level=level, text=text):
                return self._tell(level, text)
            case ErrorRaised(error=error):
                return self._tell("error", error.message)
            case RetryStarted(attempt=attempt, max_attempts=most, error=error):
                return self._tell("info", f"{error.message} (attempt {attempt} of {most} follows)")
            case _:
                return []

    def _tell(self, severity: str, text: str) -> list[JsonObject]:
        """Return a notice; clients without notices are shown warnings and errors as a thought."""
        if not text.strip():
            return []
        if self._parts.notices:
            return [{"sessionUpdate": "notice", "severity": severity, "title": text}]
        if severity == "info":
            return []
        return [{"sessionUpdate": "agent_thought_chunk", "content": text_block(f"{text}\n")}]


def _chunk(kind: str, item: str, content: JsonObject) -> JsonObject:
    return {"sessionUpdate": kind, "messageId": item, "content": content}


def _call_update(item: str, **fields: JsonValue) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", "toolCallId": item, **fields}


def _usage(usage: UsageReport) -> list[JsonObject]:
    if usage.context_used is None or usage.context_size <= 0:
        return []
    update: dict[str, JsonValue] = {
        "sessionUpdate": "usage_update",
        "used": usage.context_used,
        "size": usage.context_size,
    }
    if usage.tokens.cost is not None:
        update["cost"] = {"amount": usage.tokens.cost.total, "currency": "USD"}
    return [update]


def _compaction(event: CompactionStarted | CompactionEnded, identity: str) -> JsonObject:
    update: dict[str, JsonValue] = {
        "sessionUpdate": "compaction_update",
        "compactionId": identity,
        "status": "in_progress",
    }
    if isinstance(event, CompactionEnded):
        if event.error is not None:
            update |= {"status": "failed", "error": event.error.message}
        else:
            update["status"] = "cancelled" if event.aborted else "completed"
        if event.summary:
            update["summary"] = [text_block(event.summary)]
    return update
