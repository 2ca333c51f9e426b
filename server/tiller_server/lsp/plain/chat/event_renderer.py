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
    ToolEnded,
    ToolRunning,
    UiEvent,
)
from agent_core.kernel import ItemId, JsonObject, MessageId
from agent_core.messages import Text
from tiller_server.lsp.events.run_progress import outcome
from tiller_server.lsp.plain.chat.extension_output import Views
from tiller_server.lsp.plain.chat.format import Piece, escaped
from tiller_server.lsp.plain.chat.pieces import (
    SUMMED_UP,
    Streamed,
    call_line,
    line,
    permission_pieces,
    question_pieces,
    short,
    words_of,
)

URGENT: Final = (RunEnded, PermissionRequested, QuestionRequested, MessageEnded)
"""Events that the reader should see at once."""
KILO: Final = 1000


class Told:
    """Follows the events of one session."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Begin to follow.

        Args:
            known: Entries of the log that are shown already.
        """
        self._known = frozenset(known)
        self._streams: dict[ItemId, Streamed] = {}
        self._inputs: dict[ItemId, JsonObject] = {}
        self._asked: dict[str, PermissionRequest | Question] = {}
        self._own: set[MessageId] = set()
        self._command = ""
        self._views = Views()

    def expect(self, message: MessageId) -> None:
        """Pass over a turn of the user's that is in the file already."""
        self._own.add(message)

    def see(self, event: Event) -> Iterator[Piece]:
        """Return what an event brings into the file."""
        match event:
            case MessageStarted(item=item, role="assistant"):
                self._streams[item] = Streamed()
            case MessageDelta(item=item, text=text):
                yield from self._stream(item, text)
            case MessageEnded():
                yield from self._said(event)
            case ToolRunning() | ToolEnded():
                yield from self._called(event)
            case PermissionRequested() | QuestionRequested():
                yield from self._is_asked(event)
            case PermissionResolved() | QuestionResolved():
                yield from self._answered(event)
            case BashStarted() | BashEnded():
                yield from self._run_by_user(event)
            case RunEnded():
                self._streams.clear()
                self._inputs.clear()
                yield line(outcome(event))
            case _:
                yield from self._seldom(event)

    def _seldom(self, event: Event) -> Iterator[Piece]:
        if isinstance(event, UiEvent):
            yield from self._views.see(event)
        words = _NOTES.get(type(event), lambda _: None)(event)
        if words is not None:
            yield line(words)

    def _stream(self, item: ItemId, text: str) -> Iterator[Piece]:
        # Of a message that began before anybody followed, the whole is shown when it is over.
        stream = self._streams.get(item)
        if stream is None:
            return
        kind = "more" if stream.has_begun else "block"
        if shown := stream.feed(text):
            yield Piece(kind=kind, text=shown)

    def _said(self, event: MessageEnded) -> Iterator[Piece]:
        words = words_of(event.content)
        if event.entry is not None and event.entry in self._known:
            return
        if event.role == "user":
            if event.message_id in self._own:
                self._own.discard(event.message_id)
            elif words:
                yield Piece(kind="you", text=words)
            return
        stream = self._streams.pop(event.item, None)
        if stream is None or not stream.has_begun:
            if words:
                yield Piece(kind="block", text=escaped(words))
            return
        rest = stream.rest("".join(part.text for part in event.content if isinstance(part, Text)))
        if rest is None:
            yield Piece(kind="block", text=escaped(words))
        elif rest:
            yield Piece(kind="more", text=rest)

    def _called(self, event: ToolRunning | ToolEnded) -> Iterator[Piece]:
        if isinstance(event, ToolRunning):
            self._inputs[event.item] = event.input
        else:
            yield call_line(event.name, self._inputs.pop(event.item, None), event.status)

    def _run_by_user(self, event: BashStarted | BashEnded) -> Iterator[Piece]:
        if isinstance(event, BashStarted):
            self._command = event.command
            return
        how = "cancelled" if event.cancelled else f"exit {event.exit_code}"
        yield line(f"! {short(self._command)} · {how}")

    def _is_asked(self, event: PermissionRequested | QuestionRequested) -> Iterator[Piece]:
        asked = self._asked[event.request.request] = event.request
        yield from (
            question_pieces(asked) if isinstance(asked, Question) else permission_pieces(asked)
        )

    def _answered(self, event: PermissionResolved | QuestionResolved) -> Iterator[Piece]:
        asked = self._asked.pop(event.request, None)
        if isinstance(event, PermissionResolved):
            option = event.option
            if isinstance(asked, PermissionRequest) and option is not None:
                chosen = asked.option(option)
                option = option if chosen is None else chosen.label
            yield line(f"{option or 'Withdrawn'} ({event.by})")
        else:
            told = ", ".join(str(one) for one in (event.answers or {}).values())
            yield line(f"{told or 'No answer'} ({event.by})")


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
