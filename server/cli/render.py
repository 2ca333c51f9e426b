"""Shows a run on a terminal: words as they come, a line for each tool, what it came to."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Protocol

from agent_core.events import (
    CompactionStarted,
    ErrorRaised,
    Event,
    ExtensionError,
    MessageDelta,
    MessageEnded,
    Notice,
    RetryStarted,
    RunEnded,
    RunResult,
    Stamped,
    ToolEnded,
    ToolRunning,
)
from agent_core.events.codec import encode
from agent_core.kernel import JsonObject
from agent_core.kernel.json import encode as to_json
from agent_core.kernel.records import dataclass
from agent_core.kernel.visible import shown
from agent_core.messages import Text
from agent_core.session.commands import EVENT as BY_COMMAND
from server.cli.sessions_text import styled

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
PREVIEW_CHARS: Final = 120
KILO: Final = 1000


class Output(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Take text."""
        ...

    def flush(self) -> object:
        """Let it out."""
        ...


class View(Protocol):
    """Something that shows a run."""

    def begin(self, header: JsonObject) -> None:
        """Show what the session is, before its first event."""
        ...

    def see(self, stamped: Stamped) -> None:
        """Show an event."""
        ...

    def end(self, result: RunResult | None) -> None:
        """Show what it came to."""
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


class Quiet:
    """What a view does that changes nothing by itself and leaves nothing behind."""

    __slots__ = ()

    def tick(self) -> None:
        """Change nothing."""

    def close(self) -> None:
        """Leave everything as it is."""


@dataclass(slots=True, kw_only=True)
class JsonView(Quiet):
    """One JSON object a line: the session's header, then every event."""

    out: Output
    side: Output

    def begin(self, header: JsonObject) -> None:
        """Write the header."""
        self._line(to_json(header))

    def see(self, stamped: Stamped) -> None:
        """Write an event."""
        self._line(to_json(encode(stamped)))

    def end(self, result: RunResult | None) -> None:  # pyright: ignore[reportUnusedParameter] - of the port
        """Write nothing: `run.ended` has said it."""

    def interject(self, text: str) -> None:
        """Write a question beside the events."""
        _ = self.side.write(text)
        _ = self.side.flush()

    def _line(self, line: bytes) -> None:
        _ = self.out.write(line.decode() + "\n")
        _ = self.out.flush()


@dataclass(slots=True, kw_only=True)
class TextView(Quiet):
    """Words to `out`, everything around them to `side`: a pipe gets the words alone."""

    out: Output
    side: Output
    colour: bool
    location: Callable[[], str | None] = lambda: None
    quiet: bool = False
    """Only words."""
    _at_line_start: bool = True
    _said: bool = False
    _streamed: set[str] = field(default_factory=set)

    def begin(self, header: JsonObject) -> None:
        """Show which model answers where."""
        if not self.quiet:
            self._side(f"{header.get('model') or 'no model'} in {header.get('cwd')}", DIM)

    def see(self, stamped: Stamped) -> None:
        """Show an event."""
        event = stamped.event
        match event:
            case MessageDelta(text=text, item=item):
                self._streamed.add(item)
                self._words(text)
            case MessageEnded(role="assistant", content=content, item=item):
                if item not in self._streamed:
                    self._words("".join(part.text for part in content if isinstance(part, Text)))
                self._break()
            case _:
                self._around(event)

    def end(self, result: RunResult | None) -> None:
        """Show what the run came to."""
        self._break()
        if result is None or self.quiet:
            return
        self._side(summary(result), GREEN if result.status == "completed" else RED)
        location = self.location()
        if location is not None:
            self._side(f"session: {location}", DIM)

    def interject(self, text: str) -> None:
        """Write a question beside the words."""
        self._break()
        _ = self.side.write(text)
        _ = self.side.flush()

    def _around(self, event: Event) -> None:
        match event:
            case ToolRunning(title=title):
                self._side(f"▸ {title}", DIM)
            case ToolEnded(status=status, name=name):
                if status != "ok":
                    self._side(tool_line(event, title=name), YELLOW)
            case _:
                if (told := around(event)) is not None:
                    self._side(*told)

    def _words(self, text: str) -> None:
        if not text:
            return
        _ = self.out.write(shown(text))
        _ = self.out.flush()
        self._at_line_start = text.endswith("\n")

    def _break(self) -> None:
        if not self._at_line_start:
            _ = self.out.write("\n")
            _ = self.out.flush()
            self._at_line_start = True

    def _side(self, text: str, style: str) -> None:
        if self.quiet:
            return
        self._break()
        _ = self.side.write(styled(shown(text), style, colour=self.colour) + "\n")
        _ = self.side.flush()


def around(event: Event) -> tuple[str, str] | None:
    """Give what is told beside the words, and its style; None: nothing."""
    told: tuple[str, str] | None = None
    match event:
        case RetryStarted(attempt=attempt, max_attempts=most, delay_ms=ms, error=error):
            text = f"{error.message}; retry {attempt} of {most} in {ms / KILO:.0f} s"
            told = text, YELLOW
        case CompactionStarted():
            told = "compacting the conversation", DIM
        case Notice(level=level, text=text):
            told = text, YELLOW if level == "warning" else DIM
        case ErrorRaised(error=error):
            told = error.message, RED
        case ExtensionError(extension=name, event=point, error=error) if point == BY_COMMAND:
            told = f"{name} failed: {error}", RED
        case ExtensionError(extension=name, error=error):
            told = f"the hook {name} failed: {error}", YELLOW
        case RunEnded(error=error) if error is not None:
            told = f"{error.kind}: {error.message}", RED
        case _:
            pass
    return told


def tool_line(event: ToolEnded, *, title: str) -> str:
    """Say how a tool call ended: its mark, and of one that failed the last line of what it says."""
    if event.status == "ok":
        took = "" if event.duration_ms is None else f" · {event.duration_ms / KILO:.1f} s"
        return f"{MARKS[event.status]} {title}{took}"
    text = next((part.text for part in event.content if isinstance(part, Text)), "").strip()
    line = text.splitlines()[-1] if text else ""
    return f"{MARKS[event.status]} {title}: {line[:PREVIEW_CHARS]}"


def summary(result: RunResult | RunEnded) -> str:
    """Say in one line what a run came to."""
    parts = ["done" if result.status == "completed" else result.status]
    changes = result.changes
    if changes.files:
        word = "file" if changes.files == 1 else "files"
        parts.append(f"{changes.files} {word} +{changes.additions} -{changes.deletions}")
    tokens = result.usage.tokens
    if tokens.total:
        parts.append(f"{tokens.total / KILO:.1f}k tokens")
    if tokens.cost is not None:
        parts.append(f"${tokens.cost.total:.4f}")
    elif tokens.total:
        parts.append("cost unknown")
    return " · ".join(parts)
