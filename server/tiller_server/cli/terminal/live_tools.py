"""Lines of a terminal that show the activity of tools and of the user's own commands."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.events import (
    BashEnded,
    BashOutput,
    BashStarted,
    ToolEnded,
    ToolOutputDelta,
    ToolRunning,
)
from agent_core.kernel.visible_text import PlainStream, one_line
from tiller_server.cli.terminal.diff_lines import changed_lines
from tiller_server.cli.terminal.run_renderer import DIM, MARKS, YELLOW, tool_line

BOLD: Final = "1"
PLAIN: Final = "0"
KEPT_CHARS: Final = 1_000
StyledLine = tuple[str, str]
"""A line, and its style."""


class _Running(Struct):
    title: str
    plain: PlainStream = msgspec.field(default_factory=PlainStream)
    end: str = ""


class LiveTools(Struct):
    """Follows what runs."""

    note: str = ""
    """The last line with words of what printed something last; empty when that is over."""
    _running: dict[str, _Running] = msgspec.field(default_factory=dict)
    _command: PlainStream = msgspec.field(default_factory=PlainStream)

    def tool(self, event: ToolRunning | ToolOutputDelta | ToolEnded) -> Iterator[StyledLine]:
        """Update the state from a tool event; yield the lines to show."""
        match event:
            case ToolRunning(item=item, title=title):
                self._running[item] = _Running(title)
                self.note = ""
            case ToolOutputDelta(item=item, text=text):
                if (running := self._running.get(item)) is not None:
                    self.note = _last_line(running, text)
            case ToolEnded(item=item):
                self.note = ""
                running = self._running.pop(item, None)
                title = running.title if running else event.name
                yield tool_line(event, title=title), DIM if event.status == "ok" else YELLOW
                for line, style in changed_lines(event.details):
                    yield f"  {line}", style

    def shell(self, event: BashStarted | BashOutput | BashEnded) -> Iterator[StyledLine]:
        """Update the state from an event of the user's own command; yield the lines to show."""
        match event:
            case BashStarted(command=command):
                self._command = PlainStream()
                yield f"$ {command}", BOLD
            case BashOutput(text=text):
                if lines := self._command.push(text).rstrip("\n"):
                    yield lines, PLAIN
            case BashEnded(cancelled=True):
                yield f"{MARKS['cancelled']} cancelled", YELLOW
            case BashEnded(exit_code=0):
                yield MARKS["ok"], DIM
            case BashEnded(exit_code=code):
                yield f"{MARKS['error']} exit code {code}", YELLOW


def _last_line(running: _Running, text: str) -> str:
    running.end = (running.end + running.plain.push(text))[-KEPT_CHARS:]
    lines = (one_line(line) for line in reversed(running.end.splitlines()))
    return next((line for line in lines if line), "")
