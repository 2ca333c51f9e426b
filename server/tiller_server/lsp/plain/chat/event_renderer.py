"""Events of a session as pieces of the chat file."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from agent_core.events import (
    BashEnded,
    BashStarted,
    CheckpointRestored,
    CompactionEnded,
    ErrorRaised,
    Event,
    LeafMoved,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    ModelChanged,
    Notice,
    PermissionRequest,
    PermissionRequested,
    PermissionResolved,
    Question,
    QuestionRequested,
    QuestionResolved,
    RetryStarted,
    RunEnded,
    TaskCreated,
    TaskEnded,
    ToolEnded,
    ToolRunning,
    UiEvent,
)
from agent_core.kernel import ItemId, JsonObject, MessageId
from agent_core.messages import Text
from tiller_server.lsp.events.run_progress import outcome
from tiller_server.lsp.plain.chat.extension_output import ExtensionOutputRenderer
from tiller_server.lsp.plain.chat.format import ChatPiece, escaped
from tiller_server.lsp.plain.chat.pieces import (
    SUMMED_UP,
    StreamedText,
    call_pieces,
    line,
    permission_pieces,
    question_pieces,
    short,
    task_end,
    task_line,
    text_of,
)

URGENT: Final = (RunEnded, PermissionRequested, QuestionRequested, MessageEnded)
"""Events that the reader should see at once."""
KILO: Final = 1000


class ChatEventRenderer:
    """Follows the events of one session."""

    def __init__(self, shown_entries: Iterable[str] = ()) -> None:
        """Begin to follow.

        Args:
            shown_entries: Entries of the log that are shown already.
        """
        self._shown_entries = frozenset(shown_entries)
        self._streams: dict[ItemId, StreamedText] = {}
        self._inputs: dict[ItemId, JsonObject] = {}
        self._asked: dict[str, PermissionRequest | Question] = {}
        self._own: set[MessageId] = set()
        self._task_calls: set[ItemId] = set()
        """Calls whose line is that of the task which they started."""
        self._command = ""
        self._views = ExtensionOutputRenderer()

    def expect(self, message: MessageId) -> None:
        """Pass over a turn of the user's that is in the file already."""
        self._own.add(message)

    def render(self, event: Event) -> Iterator[ChatPiece]:
        """Return what an event brings into the file."""
        match event:
            case MessageStarted(item=item, role="assistant"):
                self._streams[item] = StreamedText()
            case MessageDelta(item=item, text=text):
                yield from self._stream(item, text)
            case MessageEnded():
                yield from self._said(event)
            case ToolRunning() | ToolEnded():
                yield from self._called(event)
            case TaskCreated() | TaskEnded():
                yield self._task(event)
            case PermissionRequested() | QuestionRequested():
                yield from self._is_asked(event)
            case PermissionResolved() | QuestionResolved():
                yield from self._answered(event)
            case BashStarted() | BashEnded():
                yield from self._run_by_user(event)
            case RunEnded():
                self._streams.clear()
                self._inputs.clear()
                self._task_calls.clear()
                yield line(outcome(event))
            case _:
                yield from self._seldom(event)

    def _seldom(self, event: Event) -> Iterator[ChatPiece]:
        if isinstance(event, UiEvent):
            yield from self._views.render(event)
        text = _NOTES.get(type(event), lambda _: None)(event)
        if text is not None:
            yield line(text)

    def _stream(self, item: ItemId, text: str) -> Iterator[ChatPiece]:
        # Of a message that began before anybody followed, the whole is shown when it is over.
        stream = self._streams.get(item)
        if stream is None:
            return
        kind = "more" if stream.has_begun else "block"
        if shown := stream.feed(text):
            yield ChatPiece(kind=kind, text=shown)

    def _said(self, event: MessageEnded) -> Iterator[ChatPiece]:
        text = text_of(event.content)
        if event.entry is not None and event.entry in self._shown_entries:
            return
        if event.role == "user":
            if event.message_id in self._own:
                self._own.discard(event.message_id)
            elif text:
                yield ChatPiece(kind="you", text=text)
            return
        stream = self._streams.pop(event.item, None)
        if stream is None or not stream.has_begun:
            if text:
                yield ChatPiece(kind="block", text=escaped(text))
            return
        rest = stream.rest("".join(part.text for part in event.content if isinstance(part, Text)))
        if rest is None:
            yield ChatPiece(kind="block", text=escaped(text))
        elif rest:
            yield ChatPiece(kind="more", text=rest)

    def _called(self, event: ToolRunning | ToolEnded) -> Iterator[ChatPiece]:
        if isinstance(event, ToolRunning):
            self._inputs[event.item] = event.input
        elif event.item not in self._task_calls:
            yield from call_pieces(event.name, self._inputs.pop(event.item, None), event.status)

    def _task(self, event: TaskCreated | TaskEnded) -> ChatPiece:
        task = event.task
        if isinstance(event, TaskEnded):
            report = task.error or event.text
            return task_end(
                task.id,
                task.description,
                task.state,
                report=report,
                has_changes=task.worktree is not None,
            )
        if task.item is not None:
            self._task_calls.add(task.item)
        return task_line(task.id, task.description)

    def _run_by_user(self, event: BashStarted | BashEnded) -> Iterator[ChatPiece]:
        if isinstance(event, BashStarted):
            self._command = event.command
            return
        how = "cancelled" if event.cancelled else f"exit {event.exit_code}"
        yield line(f"! {short(self._command)} · {how}")

    def _is_asked(self, event: PermissionRequested | QuestionRequested) -> Iterator[ChatPiece]:
        asked = self._asked[event.request.request] = event.request
        yield from (
            question_pieces(asked) if isinstance(asked, Question) else permission_pieces(asked)
        )

    def _answered(self, event: PermissionResolved | QuestionResolved) -> Iterator[ChatPiece]:
        asked = self._asked.pop(event.request, None)
        if isinstance(event, PermissionResolved):
            option = event.option
            if isinstance(asked, PermissionRequest) and option is not None:
                chosen = asked.option(option)
                option = option if chosen is None else chosen.label
            yield line(f"{option or 'Withdrawn'} ({event.by})")
        else:
            answers = ", ".join(str(one) for one in (event.answers or {}).values())
            yield line(f"{answers or 'No answer'} ({event.by})")


def _summed_up(event: CompactionEnded) -> str | None:
    if event.error is not None:
        return f"The summary failed: {event.error.message}"
    return None if event.aborted else SUMMED_UP


_NOTES: Final[Mapping[type, Callable[[Any], str | None]]] = {
    RetryStarted: lambda event: (
        f"retry {event.attempt} in {event.delay_ms / KILO:.0f} s: {event.error.message}"
    ),
    CompactionEnded: _summed_up,
    Notice: lambda event: event.text,
    ErrorRaised: lambda event: f"error: {event.error.message}",
    ModelChanged: lambda event: None if event.source == "restore" else f"model: {event.model}",
    LeafMoved: lambda _: "The conversation goes on from an earlier place.",
    CheckpointRestored: lambda _: "Files were taken back.",
}
"""Line for each rare event."""
