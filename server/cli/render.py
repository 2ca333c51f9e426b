"""Shows a run on a terminal: words as they come, a line for each tool, what it came to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from agent_core.kernel.visible import shown
from agent_core.messages import Text

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


@dataclass(slots=True)
class JsonView:
    """One JSON object a line: the session's header, then every event."""

    out: Output

    def begin(self, header: JsonObject) -> None:
        """Write the header."""
        self._line(to_json(header))

    def see(self, stamped: Stamped) -> None:
        """Write an event."""
        self._line(to_json(encode(stamped)))

    def end(self, result: RunResult | None) -> None:  # pyright: ignore[reportUnusedParameter] - of the port
        """Write nothing: `run.ended` has said it."""

    def _line(self, line: bytes) -> None:
        _ = self.out.write(line.decode() + "\n")
        _ = self.out.flush()


@dataclass(slots=True, kw_only=True)
class TextView:
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

    def _around(self, event: Event) -> None:
        match event:
            case ToolRunning(title=title):
                self._side(f"▸ {title}", DIM)
            case ToolEnded(status=status, name=name, content=content):
                if status != "ok":
                    text = next((part.text for part in content if isinstance(part, Text)), "")
                    line = text.strip().splitlines()[-1] if text.strip() else ""
                    self._side(f"{MARKS[status]} {name}: {line[:PREVIEW_CHARS]}", YELLOW)
            case RetryStarted(attempt=attempt, max_attempts=most, delay_ms=ms, error=error):
                self._side(
                    f"{error.message}; retry {attempt} of {most} in {ms / KILO:.0f} s", YELLOW
                )
            case CompactionStarted():
                self._side("compacting the conversation", DIM)
            case Notice(level=level, text=text):
                self._side(text, YELLOW if level == "warning" else DIM)
            case ErrorRaised(error=error):
                self._side(error.message, RED)
            case ExtensionError(extension=name, error=error):
                self._side(f"the hook {name} failed: {error}", YELLOW)
            case RunEnded(error=error) if error is not None:
                self._side(f"{error.kind}: {error.message}", RED)
            case _:
                pass

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
        line = shown(text)
        styled = f"\x1b[{style}m{line}\x1b[0m" if self.colour else line
        _ = self.side.write(styled + "\n")
        _ = self.side.flush()


def summary(result: RunResult) -> str:
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
