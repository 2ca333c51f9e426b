"""Shows a run on a terminal: words as they come, a line for each tool, what it came to."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from agent_core.events import (
    BackgroundEnded,
    BackgroundListening,
    CompactionStarted,
    ErrorRaised,
    Event,
    EventEnvelope,
    ExtensionError,
    Notice,
    RetryStarted,
    RunEnded,
    RunResult,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    ToolEnded,
    ToolRunning,
    UiEditorText,
    UiNotify,
    UiStatus,
    UiWidget,
)
from agent_core.events.codec import encode
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, encode as to_json, is_object
from agent_core.kernel.text import shown
from agent_core.messages import Text
from agent_core.session.input.commands import EVENT as BY_COMMAND
from tiller_server.cli.terminal.text import excerpt, styled

DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MARKS: Final[Mapping[str, str]] = {
    "ok": "✓",
    "error": "✗",
    "skipped": "»",
    "blocked": "⊘",
    "cancelled": "■",
}
PREVIEW_CHARS: Final = 500
KILO: Final = 1000


class TextOutput(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Write text to the stream."""
        ...

    def flush(self) -> object:
        """Write out the buffered text."""
        ...


class RunRenderer(Protocol):
    """Something that shows a run."""

    @property
    def shows_partials(self) -> bool:
        """Whether it shows the arguments of calls as they grow."""
        ...

    def begin(self, header: JsonObject) -> None:
        """Show what the session is, before its first event."""
        ...

    def see(self, stamped: EventEnvelope) -> None:
        """Show an event."""
        ...

    def interim(self, text: str) -> None:
        """Show words of the model that are not its final answer."""
        ...

    def end(self, result: RunResult | None, answer: str) -> None:
        """Show what it came to, and the final answer; empty: there is none."""
        ...

    def tick(self) -> None:
        """Show what changes by itself: called some times a second while something goes on."""
        ...

    def interject(self, text: str) -> None:
        """Show a question to the person at the terminal."""
        ...

    def close(self) -> None:
        """Leave the terminal in order, whatever happened. Idempotent."""
        ...


class StaticRunRenderer(Struct):
    """Base class of views that redraw nothing and leave nothing to restore."""

    @property
    def shows_partials(self) -> bool:
        """Show arguments when they are complete."""
        return False

    def tick(self) -> None:
        """Change nothing."""

    def close(self) -> None:
        """Leave everything as it is."""


class JsonRunRenderer(StaticRunRenderer, kw_only=True):
    """One JSON object a line: the session's header, every event, what the run came to."""

    out: TextOutput
    side: TextOutput
    _ended: JsonObject = msgspec.field(default_factory=lambda: {"status": "completed"})
    """The last `run.ended`."""

    def begin(self, header: JsonObject) -> None:
        """Write the header."""
        self._line(header)

    def see(self, stamped: EventEnvelope) -> None:
        """Write an event."""
        event = encode(stamped)
        match stamped.event:
            case RunEnded():
                self._ended = event
            case ExtensionError(event=point) if point == BY_COMMAND:
                self._ended = {**self._ended, "status": "failed"}
            case _:
                pass
        self._line(event)

    def interim(self, text: str) -> None:  # pyright: ignore[reportUnusedParameter] - of the port
        """Write nothing: the events have it."""

    def end(self, result: RunResult | None, answer: str) -> None:
        """Write how it ended, the final answer and what it used."""
        _ = result  # the last event has told it
        outcome = {name: self._ended.get(name) for name in ("status", "usage", "cost", "error")}
        self._line({"type": "result", **outcome, "text": answer})

    def interject(self, text: str) -> None:
        """Write a question beside the events."""
        _ = self.side.write(text)
        _ = self.side.flush()

    def _line(self, body: JsonObject) -> None:
        _ = self.out.write(to_json(body).decode() + "\n")
        _ = self.out.flush()


class TextRunRenderer(StaticRunRenderer, kw_only=True):
    """The final answer to `out`, everything around it to `side`."""

    out: TextOutput
    side: TextOutput
    colour: bool
    location: Callable[[], str | None] = lambda: None
    verbose: bool = False
    """Every whole answer goes to `out`."""

    def begin(self, header: JsonObject) -> None:
        """Show which model answers where."""
        self._side(f"{header.get('model') or 'without a model'} in {header.get('cwd')}", DIM)

    def see(self, stamped: EventEnvelope) -> None:
        """Show an event."""
        event = stamped.event
        match event:
            case ToolRunning(title=title):
                self._side(f"▸ {title}", DIM)
            case ToolEnded(status=status, name=name):
                if status != "ok":
                    self._side(tool_line(event, title=name), YELLOW)
            case _:
                if (notice := around(event)) is not None:
                    self._side(*notice)

    def interim(self, text: str) -> None:
        """Write words of the model that are not its final answer."""
        if self.verbose:
            write_text(self.out, text)
        else:
            self._side(text.rstrip("\n"), DIM)

    def end(self, result: RunResult | None, answer: str) -> None:
        """Write the final answer, and what the run came to."""
        write_text(self.out, answer)
        if result is None:
            return
        self._side(summary(result), GREEN if result.status == "completed" else RED)
        location = self.location()
        if location is not None:
            self._side(f"session: {location}", DIM)

    def interject(self, text: str) -> None:
        """Write a question beside the words."""
        _ = self.side.write(text)
        _ = self.side.flush()

    def _side(self, text: str, style: str) -> None:
        _ = self.side.write(styled(shown(text), style, colour=self.colour) + "\n")
        _ = self.side.flush()


def write_text(out: TextOutput, text: str) -> None:
    """Write words of the model where they stand alone, with an end of line."""
    if text:
        _ = out.write(shown(text if text.endswith("\n") else f"{text}\n"))
        _ = out.flush()


def around(event: Event) -> tuple[str, str] | None:
    """Return what is told beside the words, and its style; None: nothing."""
    notice: tuple[str, str] | None = None
    match event:
        case RetryStarted(attempt=attempt, max_attempts=most, delay_ms=ms, error=error):
            text = f"{error.message}; retry {attempt} of {most} in {ms / KILO:.0f} s"
            notice = text, YELLOW
        case CompactionStarted():
            notice = "compacting the conversation", DIM
        case Notice(level=level, text=text):
            notice = text, YELLOW if level == "warning" else DIM
        case ErrorRaised(error=error):
            notice = error.message, RED
        case ExtensionError(extension=name, event=point, error=error) if point == BY_COMMAND:
            notice = f"{name} failed: {error}", RED
        case ExtensionError(extension=name, error=error):
            notice = f"the hook {name} failed: {error}", YELLOW
        case BackgroundListening() | BackgroundEnded() | TaskCreated() | TaskEnded():
            notice = _of_background(event)
        case RunEnded(error=error) if error is not None:
            notice = f"{error.kind}: {error.message}", RED
        case UiNotify() | UiStatus() | UiWidget() | UiEditorText():
            notice = _of_extension(event)
        case _:
            pass
    return notice


TASK_STYLES: Final[Mapping[str, str]] = {
    "completed": DIM, "failed": RED, "cancelled": YELLOW, "budget": YELLOW, "lost": YELLOW
}  # fmt: skip


def task_state(task: TaskInfo) -> str:
    """Return how far a task is, in a few words."""
    doing = f", {task.activity}" if task.activity else ""
    why = f": {task.error}" if task.error else ""
    return f"{task.state}{doing}{why}"


def task_usage(task: TaskInfo) -> str:
    """Return what a task has used so far."""
    answers = "1 answer" if task.turns == 1 else f"{task.turns} answers"
    calls = "1 tool call" if task.tool_calls == 1 else f"{task.tool_calls} tool calls"
    return f"{answers}, {calls}, {task.tokens:,} tokens"


def merge_hint(task: TaskInfo) -> str | None:
    """Return how the changes of a task are merged in a conversation; None: it has none that wait."""
    if task.worktree is None or not task.is_ended:
        return None
    return f"{task.id} left changes in a worktree: /tasks diff {task.id}, /tasks merge {task.id}"


def _of_background(
    event: BackgroundListening | BackgroundEnded | TaskCreated | TaskEnded,
) -> tuple[str, str] | None:
    """Return the notice about a background command or task; None: none is needed, since the user knows it already."""
    match event:
        case TaskCreated(task=task) if task.background:
            return f"{task.id} ({task.description}) works in the background", DIM
        case TaskEnded(task=task) if task.background:
            ended = f"{task.id} ({task.description}) {task_state(task)} ({task_usage(task)})"
            return ended, TASK_STYLES[task.state]
        case BackgroundListening(id=id_, ports=ports):
            places = ", ".join(f"http://localhost:{port}" for port in ports)
            return (f"{id_} listens on {places}", DIM) if ports else None
        case BackgroundEnded(id=id_, by="itself", exit_code=0):
            return f"{id_} in the background has ended", DIM
        case BackgroundEnded(id=id_, by="itself", exit_code=code, signal=signal):
            how = f"exit code {code}" if signal is None else f"signal {signal}"
            return f"{id_} in the background ended with {how}", YELLOW
        case BackgroundEnded() | TaskCreated() | TaskEnded():
            return None


def _of_extension(
    event: UiNotify | UiStatus | UiWidget | UiEditorText,
) -> tuple[str, str] | None:
    """Return what an extension shows; None: it takes something off."""
    name, view = event.extension, event.view
    match event:
        case UiNotify():
            return f"{name}: {view.get('text')}", DIM if view.get("level") == "info" else YELLOW
        case UiStatus():
            return (f"{name} · {view['text']}", DIM) if view.get("text") else None
        case UiWidget():
            from tiller_server.lsp.plain.chat.extension_output import (  # noqa: PLC0415 - few runs show one
                view_text,
            )

            text = view_text(as_object(view.get("view")))
            return (f"{name}:\n{text}", DIM) if text else None
        case UiEditorText():
            return f"{name} suggests to say: {view.get('text')}", DIM


def tool_line(event: ToolEnded, *, title: str) -> str:
    """Return how a tool call ended: its mark, and of one that failed the last line of what it says."""
    if event.status == "ok":
        took = "" if event.duration_ms is None else f" · {event.duration_ms / KILO:.1f} s"
        return f"{MARKS[event.status]} {title}{took}"
    text = next((part.text for part in event.content if isinstance(part, Text)), "").strip()
    # What is written for the model is not for the one who reads here.
    happened = event.details.get("happened") if is_object(event.details) else None
    text = happened if isinstance(happened, str) else text
    line = text.splitlines()[-1] if text else ""
    return f"{MARKS[event.status]} {title}: {excerpt(line, PREVIEW_CHARS)}"


def summary(result: RunResult | RunEnded) -> str:
    """Describe in one line what a run came to."""
    parts = ["done" if result.status == "completed" else result.status]
    changes = result.changes
    if changes.files:
        word = "file" if changes.files == 1 else "files"
        parts.append(f"{changes.files} {word} +{changes.additions} -{changes.deletions}")
    tokens = result.usage.tokens
    if tokens.total:
        few = tokens.total < KILO
        parts.append(f"{tokens.total} tokens" if few else f"{tokens.total / KILO:.1f}k tokens")
    if tokens.cost is not None:
        parts.append(f"${tokens.cost.total:.4f}")
    elif tokens.total:
        parts.append("cost unknown")
    return " · ".join(parts)
