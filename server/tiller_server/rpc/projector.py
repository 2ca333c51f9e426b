"""From the events of a session to the records of pi's protocol."""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never
from uuid import uuid4

from agent_core.events import (
    BashOutput,
    CompactionEnded,
    CompactionStarted,
    ErrorRaised,
    Event,
    EventEnvelope,
    ExtensionError,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    Notice,
    QueueChanged,
    QueueItem,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    SessionConfigured,
    SessionTitle,
    ThoughtDelta,
    ThoughtStarted,
    ToolEnded,
    ToolInputDelta,
    ToolOutputDelta,
    ToolRunning,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UiEditorText,
    UiNotify,
    UiStatus,
    UiTitle,
    UiWidget,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from agent_core.messages import text_of
from tiller_server.rpc.assistant_draft import FAILED, AssistantDraft, JsonRecord
from tiller_server.rpc.records import PiRelease, content_record, result_record, user_record

STOPS: Final[Mapping[str, str]] = {
    "failed": "error",
    "interrupted": "error",
    "cancelled": "aborted",
}
"""Stop reasons of the last message, by the status of the run."""
OUTPUT_CHARS: Final = 51_200
"""End of a tool's output that an update repeats."""
COMPACTION_REASONS: Final[Mapping[str, str]] = {"length": "threshold"}
"""Reasons of a compaction that pi has no word for."""
NOTICE_TYPES: Final[Mapping[str, str]] = {"warning": "warning", "error": "error"}
ToolEvent = ToolStarted | ToolInputDelta | ToolRunning | ToolOutputDelta | ToolEnded
ExtensionView = UiNotify | UiStatus | UiWidget | UiTitle | UiEditorText


class ToolCallState:
    """A tool call of the turn."""

    def __init__(self, call: str, name: str) -> None:
        self.call = call
        self.name = name
        self.input: JsonObject = {}
        self.output = ""
        self.is_running = False
        self.result: JsonObject | None = None


class RecordProjector:
    """Reader of the events of one session, in order, that returns the records of each."""

    def __init__(self, compat: PiRelease) -> None:
        self._compat: PiRelease = compat
        self._messages: list[JsonValue] = []
        """Messages of the run."""
        self._has_turn = False
        self._answer: AssistantDraft | None = None
        self._is_held = False
        """The end of the answer waits: for its tool calls, or for the reason of its failure."""
        self._failed: str | None = None
        """How the turn has failed; it is ended when its reason comes."""
        self._model: str | None = None
        """Model of the run."""
        self._calls: dict[str, ToolCallState] = {}
        self._queue: tuple[list[JsonValue], list[JsonValue]] = ([], [])
        self._thinking: str | None = None
        self.bash_id: JsonValue = None
        """Id of the command `bash` that runs; None: it has none."""

    def start(self, *, thinking: str, queue: Sequence[QueueItem]) -> None:
        """Set the state from which events follow."""
        self._thinking = thinking
        self._queue = _texts(queue)

    def project(self, stamped: EventEnvelope) -> Sequence[JsonObject]:
        """Return the records of an event; none for what pi does not show."""
        event, at_ms = stamped.event, stamped.at_ms
        match event:
            case RunStarted() | TurnStarted() | TurnEnded() | RunEnded():
                return self._bound(event, at_ms=at_ms)
            case MessageStarted() | MessageDelta() | MessageEnded():
                return self._message(event, at_ms=at_ms)
            case ThoughtStarted() | ThoughtDelta():
                return self._thought(event, at_ms=at_ms)
            case ToolStarted() | ToolInputDelta() | ToolRunning() | ToolOutputDelta() | ToolEnded():
                return self._tool(event, at_ms=at_ms)
            case CompactionStarted() | CompactionEnded() | RetryStarted() | RetryEnded():
                return [*self._close_failed(_why(event), at_ms), _recovery(event)]
            case _:
                return self._session(event)

    def _bound(
        self, event: RunStarted | TurnStarted | TurnEnded | RunEnded, *, at_ms: int
    ) -> Sequence[JsonObject]:
        match event:
            case RunStarted(model=model):
                self._messages, self._model = [], model
                return [{"type": "agent_start"}]
            case TurnStarted():
                # The words of the user that begin a run come before its first turn.
                is_open = self._has_turn and self._answer is None
                return [] if is_open else [*self._close_failed(None, at_ms), *self._opened()]
            case TurnEnded(stop_reason=stop) if stop in FAILED:
                self._failed = stop
                return []
            case TurnEnded():
                return self._close()
            case RunEnded():
                return self._run_ended(event, at_ms=at_ms)

    def _run_ended(self, event: RunEnded, *, at_ms: int) -> Sequence[JsonObject]:
        out: list[JsonObject] = []
        why = event.error.message if event.error else None
        stop = STOPS.get(event.status)
        if stop is not None:
            # A client finds the failure in the last message, also where the model had said nothing.
            if self._answer is not None and self._answer.stop not in {None, *FAILED}:
                out += self._close()
            self._failed = stop
            why = why or ("The run was cancelled." if stop == "aborted" else "The run failed.")
        out += self._close_failed(why, at_ms)
        out += self._close()
        if stop is None and why is not None:
            out.append(_shown("notify", message=why, notifyType="warning"))
        ended: JsonRecord = {"type": "agent_end", "messages": list(self._messages)}
        if self._compat != "1.5":
            return [*out, ended]  # clients of that time may refuse an event that they do not know
        settled: JsonRecord = {"type": "agent_settled", "aborted": event.status == "cancelled"}
        return [*out, {**ended, "willRetry": False}, settled]

    def _opened(self) -> Sequence[JsonObject]:
        if self._has_turn:
            return []
        self._has_turn = True
        return [{"type": "turn_start"}]

    def _close_failed(self, why: str | None, at_ms: int) -> Sequence[JsonObject]:
        """End a turn that has failed, with a message that says so.

        Args:
            why: Reason; None: unknown.
            at_ms: Time of a message that the model had not begun.
        """
        if self._failed is None:
            return []
        stop, self._failed = self._failed, None
        out = list(self._begun(None, at_ms=at_ms))
        answer = self._answer
        if answer is not None and answer.stop is None:
            answer.stop = stop
            self._is_held = True
        return [*out, *self._release(why), *self._close()]

    def _close(self) -> Sequence[JsonObject]:
        """End the turn, with the results of its tools in the order of its calls."""
        if not self._has_turn:
            return []
        out = list(self._release(None))
        results: list[JsonValue] = []
        for call in self._calls.values():
            if call.result is not None:
                results.append(call.result)
                out += self._whole(call.result)
        if self._answer is not None:
            message = self._answer.record()
            out.append({"type": "turn_end", "message": message, "toolResults": results})
        self._has_turn, self._failed = False, None
        self._answer = None
        self._calls = {}
        return out

    def _message(
        self, event: MessageStarted | MessageDelta | MessageEnded, *, at_ms: int
    ) -> Sequence[JsonObject]:
        match event:
            case MessageStarted(role="assistant", model=model):
                return self._begun(model, at_ms=at_ms)
            case MessageStarted():
                return []
            case MessageDelta(item=item, text=text):
                begun = self._begun(None, at_ms=at_ms)
                return [*begun, *(self._answer.append("text", item, text) if self._answer else ())]
            case MessageEnded(role="assistant"):
                return self._answered(event, at_ms=at_ms)
            case MessageEnded(content=content, custom_type=kind):
                record = user_record(content, at_ms=at_ms, custom_type=kind)
                opened = (
                    [] if event.run is None else [*self._close_failed(None, at_ms), *self._opened()]
                )
                return [*opened, *self._whole(record)]

    def _answered(self, event: MessageEnded, *, at_ms: int) -> Sequence[JsonObject]:
        out = list(self._begun(event.model, at_ms=at_ms))
        answer = self._answer
        if answer is None:
            return out
        out += answer.end(event)
        self._is_held = True
        if answer.stop != "tool_use" and answer.stop not in FAILED:
            out += self._release(None)
        return out

    def _begun(self, model: str | None, *, at_ms: int) -> Sequence[JsonObject]:
        """Begin an answer where there is none."""
        if self._answer is not None:
            return []
        out = [*self._close_failed(None, at_ms), *self._opened()]
        self._answer = AssistantDraft(model or self._model, at_ms=at_ms, compat=self._compat)
        return [*out, {"type": "message_start", "message": self._answer.record()}]

    def _thought(self, event: ThoughtStarted | ThoughtDelta, *, at_ms: int) -> Sequence[JsonObject]:
        text = event.text if isinstance(event, ThoughtDelta) else ""
        begun = self._begun(None, at_ms=at_ms)
        answer = self._answer
        return [*begun, *(answer.append("thinking", event.item, text) if answer else ())]

    def _release(self, why: str | None) -> Sequence[JsonObject]:
        """End the message that was held back.

        Args:
            why: Reason of its failure.
        """
        answer = self._answer
        if answer is None or not self._is_held:
            return []
        self._is_held = False
        if answer.stop in FAILED:
            answer.error = why
        message = answer.record()
        self._messages.append(message)
        return [{"type": "message_end", "message": message}]

    def _whole(self, message: JsonObject) -> Sequence[JsonObject]:
        self._messages.append(message)
        return [
            {"type": "message_start", "message": message},
            {"type": "message_end", "message": message},
        ]

    def _tool(self, event: ToolEvent, *, at_ms: int) -> Sequence[JsonObject]:
        match event:
            case ToolStarted(item=item, call=call, name=name):
                self._calls[item] = ToolCallState(call, name)
                out = list(self._begun(None, at_ms=at_ms))
                return [*out, *(self._answer.begin_call(item, call, name) if self._answer else ())]
            case ToolInputDelta(item=item, text=text):
                return self._answer.append_input(item, text) if self._answer else []
            case ToolRunning(item=item, input=given):
                return self._running(item, given)
            case ToolOutputDelta(item=item, text=text):
                return self._output(item, text)
            case ToolEnded():
                return self._tool_ended(event, at_ms=at_ms)

    def _running(self, item: str, given: JsonObject) -> Sequence[JsonObject]:
        call = self._calls.get(item)
        if call is None:
            return []
        call.input, call.is_running = given, True
        block = self._answer.call_of(item) if self._answer else None
        if block is not None:
            block.arguments = given
        started: JsonRecord = {"type": "tool_execution_start", **_call(call)}
        return [*self._release(None), started]

    def _output(self, item: str, text: str) -> Sequence[JsonObject]:
        call = self._calls.get(item)
        if call is None:
            return []
        call.output = (call.output + text)[-OUTPUT_CHARS:]
        partial: JsonRecord = {"content": [{"type": "text", "text": call.output}], "details": {}}
        return [{"type": "tool_execution_update", **_call(call), "partialResult": partial}]

    def _tool_ended(self, event: ToolEnded, *, at_ms: int) -> Sequence[JsonObject]:
        call = self._calls.setdefault(event.item, ToolCallState(event.call, event.name))
        if (
            not call.is_running
            and self._answer is not None
            and self._answer.stop in {None, *FAILED}
        ):
            return []  # the call of an answer that was cut off: pi does not report one either
        out: list[JsonObject] = []
        if not call.is_running:
            block = self._answer.call_of(event.item) if self._answer else None
            out += self._running(event.item, {} if block is None else block.input())
        result: JsonRecord = {"content": content_record(event.content)}
        if event.details is not None:
            result["details"] = event.details
        is_error = event.status != "ok"
        ended: JsonRecord = {"type": "tool_execution_end", "toolCallId": call.call}
        ended |= {"toolName": call.name, "result": result, "isError": is_error}
        is_timed = self._compat == "1.5" and event.duration_ms is not None
        if is_timed:
            ended["durationMs"] = event.duration_ms
        call.result = result_record(
            call=call.call,
            name=call.name,
            content=event.content,
            details=event.details,
            is_error=is_error,
            duration_ms=event.duration_ms if is_timed else None,
            at_ms=at_ms,
        )
        return [*out, ended]

    def _session(self, event: Event) -> Sequence[JsonObject]:
        match event:
            case QueueChanged(queue=queue):
                return self._queued(queue)
            case SessionConfigured(config=config):
                before, self._thinking = self._thinking, config.thinking
                is_same = before in {None, config.thinking}
                level = config.thinking
                return [] if is_same else [{"type": "thinking_level_changed", "level": level}]
            case BashOutput(text=text):
                return self._printed(text)
            case UiNotify() | UiStatus() | UiWidget() | UiTitle() | UiEditorText():
                return [_view(event)]
            case _:
                record = _plain(event)
                return [] if record is None else [record]

    def _printed(self, text: str) -> Sequence[JsonObject]:
        if self._compat != "1.5":
            return []
        named: JsonRecord = {} if self.bash_id is None else {"id": self.bash_id}
        return [{"type": "bash_execution_update", **named, "delta": text}]

    def _queued(self, queue: Sequence[QueueItem]) -> Sequence[JsonObject]:
        texts = _texts(queue)
        if texts == self._queue:
            return []
        self._queue = texts
        return [{"type": "queue_update", "steering": texts[0], "followUp": texts[1]}]


def _plain(event: Event) -> JsonObject | None:
    """Return the record of an event that needs no state; None: pi does not show it."""
    match event:
        case SessionTitle(title=title):
            named: JsonRecord = {"name": title} if title else {}
            return {"type": "session_info_changed", **named}
        case Notice(level=level, text=text):
            return _shown("notify", message=text, notifyType=level)
        case ErrorRaised(error=error):
            return _shown("notify", message=error.message, notifyType="error")
        case ExtensionError(extension=extension, event=name, error=why):
            where: JsonRecord = {"extensionPath": extension, "event": name, "error": why}
            return {"type": "extension_error", **where}
        case _:
            return None


def _call(call: ToolCallState) -> JsonRecord:
    return {"toolCallId": call.call, "toolName": call.name, "args": call.input}


def _texts(queue: Sequence[QueueItem]) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the waiting texts: steering, and the rest. Those of programs are not the user's to see."""
    mine = [one for one in queue if one.custom is None]
    steering: list[JsonValue] = [text_of(one.content) for one in mine if one.delivery == "steer"]
    rest: list[JsonValue] = [text_of(one.content) for one in mine if one.delivery != "steer"]
    return steering, rest


def _why(
    event: CompactionStarted | CompactionEnded | RetryStarted | RetryEnded,
) -> str | None:
    return event.error.message if isinstance(event, RetryStarted) else None


def _recovery(
    event: CompactionStarted | CompactionEnded | RetryStarted | RetryEnded,
) -> JsonObject:
    match event:
        case CompactionStarted(reason=reason):
            return {"type": "compaction_start", "reason": COMPACTION_REASONS.get(reason, reason)}
        case CompactionEnded():
            return _compacted(event)
        case RetryStarted():
            return {
                "type": "auto_retry_start",
                "attempt": event.attempt,
                "maxAttempts": event.max_attempts,
                "delayMs": event.delay_ms,
                "errorMessage": event.error.message,
            }
        case RetryEnded(success=success, attempt=attempt, error=error):
            final: JsonRecord = {} if error is None else {"finalError": error.message}
            return {"type": "auto_retry_end", "success": success, "attempt": attempt, **final}
        case _:
            assert_never(event)


def _compacted(event: CompactionEnded) -> JsonObject:
    out: JsonRecord = {
        "type": "compaction_end",
        "reason": COMPACTION_REASONS.get(event.reason, event.reason),
    }
    if event.summary is not None:
        result: JsonRecord = {"summary": event.summary, "tokensBefore": event.tokens_before}
        if event.tokens_after is not None:
            result["estimatedTokensAfter"] = event.tokens_after
        out["result"] = result
    out |= {"aborted": event.aborted, "willRetry": event.will_retry}
    if event.error is not None:
        out["errorMessage"] = event.error.message
    return out


def _shown(method: str, **fields: JsonValue) -> JsonObject:
    """Return a record for the client's user that needs no answer."""
    return {"type": "extension_ui_request", "id": str(uuid4()), "method": method, **fields}


def _view(event: ExtensionView) -> JsonObject:
    view = event.view
    match event:
        case UiNotify():
            level = NOTICE_TYPES.get(as_text(view.get("level")), "info")
            return _shown("notify", message=view.get("text"), notifyType=level)
        case UiStatus():
            text: JsonRecord = {} if view.get("text") is None else {"statusText": view.get("text")}
            return _shown("setStatus", statusKey=view.get("key"), **text)
        case UiWidget():
            return _widget(view)
        case UiTitle():
            return _shown("setTitle", title=view.get("text"))
        case UiEditorText():
            return _shown("set_editor_text", text=view.get("text"))


def _widget(view: JsonObject) -> JsonObject:
    inner = view.get("view")
    lines: JsonRecord = {} if inner is None else {"widgetLines": list(_lines(as_object(inner)))}
    where: JsonRecord = {"widgetPlacement": view["placement"]} if "placement" in view else {}
    return _shown("setWidget", widgetKey=view.get("key"), **lines, **where)


def _lines(view: JsonObject) -> Sequence[str]:
    """Return a view of an extension as lines of text."""
    rows = view.get("rows")
    listed = rows if isinstance(rows, Sequence) else ()
    match view.get("kind"):
        case "text":
            lines = as_text(view.get("text")).split("\n")
        case "list":
            lines = [_row(as_object(one)) for one in listed]
        case "table":
            lines = [_cells(view.get("head")), *map(_cells, listed)]
        case _:
            lines = []
    title = as_text(view.get("title"))
    return [title, *lines] if title else lines


def _row(row: JsonObject) -> str:
    done = row.get("done")
    box = "" if not isinstance(done, bool) else "[x] " if done else "[ ] "
    return "  ".join(filter(None, (box + as_text(row.get("text")), as_text(row.get("detail")))))


def _cells(row: JsonValue) -> str:
    return "  ".join(map(as_text, row if isinstance(row, Sequence) else ()))
