"""Shows on a terminal how a review gets on; a pipe gets nothing of it."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from agent_core.events import EventEnvelope, Notice, RetryStarted, ToolEnded, ToolRunning
from agent_core.kernel.text import shown
from agent_core.session import AgentSession
from tiller_server.cli.environment import Environment
from tiller_server.cli.terminal.run_renderer import DIM, YELLOW
from tiller_server.cli.terminal.stdio import OutputLost, StandardStream
from tiller_server.review.model.report_tool import TOOL


class ReviewProgressView(Struct, kw_only=True):
    """Follows a review."""

    environment: Environment
    lines: dict[str, Sequence[str]] = msgspec.field(default_factory=dict[str, "Sequence[str]"])
    """By path the lines of the files in which something was found."""
    session: AgentSession | None = None
    """In which the model is asked; None: it is not asked yet."""
    is_made: bool = False
    """Whether the review is there."""

    def opened(self, session: AgentSession) -> None:
        """Learn of it."""
        self.session = session

    def part(self, number: int, count: int) -> None:
        """Show which part is looked at."""
        if number > count:
            self._write_line("writing the summary", DIM)
        elif count > 1:
            self._write_line(f"part {number} of {count}", DIM)

    def see(self, stamped: EventEnvelope) -> None:
        """Show what the model looks at, and what goes wrong."""
        match stamped.event:
            case ToolRunning(title=title):
                self._write_line(f"▸ {title}", DIM)
            case ToolEnded(name=name, status=status) if status != "ok" and name != TOOL:
                self._write_line(f"✗ {name}: {status}", YELLOW)
            case RetryStarted(attempt=attempt, max_attempts=most, error=error):
                self._write_line(
                    f"{error.message}; retry {attempt} of {most}", YELLOW, in_pipes=True
                )
            case Notice(level="warning", text=text):
                self._write_line(text, YELLOW, in_pipes=True)
            case _:
                pass

    def texts(self, lines: Mapping[str, Sequence[str]]) -> None:
        """Keep them for the report; they come last."""
        self.lines.update(lines)
        self.is_made = True

    def _write_line(self, text: str, style: str, *, in_pipes: bool = False) -> None:
        if not in_pipes and not sys.stderr.isatty():
            return
        line = shown(text)
        styled = f"\x1b[{style}m{line}\x1b[0m" if self.environment.colour(sys.stderr) else line
        # A review does not end because nobody watches it.
        with suppress(OutputLost):
            side = StandardStream(sys.stderr, name="standard error")
            side.write(f"{styled}\n")
            side.flush()
