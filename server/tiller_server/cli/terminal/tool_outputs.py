"""Keeps what tool calls put out, shows the end of it, and all of it in a pager, in the colours that commands wrote it in."""

import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.events import ToolEnded
from agent_core.kernel import JsonValue
from agent_core.kernel.json import is_object
from agent_core.kernel.text import shown
from agent_core.messages import text_of
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program
from tiller_server.cli.terminal.run_renderer import DIM

COMMAND: Final = "bash"
SHOWN_LINES: Final = 4
FAILED_LINES: Final = 12
"""Of a command that failed more is shown: the reason is there."""
MOST_KEPT: Final = 50
MOST_CHARS: Final = 1_000_000
PAGER: Final = ("less", "-R", "+G")
_STYLE: Final = re.compile(r"\d{1,3}(?:;\d{1,3}){0,15}")

Span = tuple[int, int, str]
"""Start and end in UTF-16 code units, and parameters of a select graphic rendition sequence."""


class ToolOutputs(Struct):
    """The outputs of the last tool calls, the newest last."""

    can_page: bool = False
    """A key opens the pager; it is named beside what is left out."""
    colour: bool = False
    """Commands keep their colours."""
    _kept: deque[tuple[str, str]] = msgspec.field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def keep(self, event: ToolEnded, title: str) -> Iterator[tuple[str, str]]:
        """Keep the output of a call; yield the lines of it to show, each with its style.

        Of other tools than commands no line is shown: their results are for the model.
        """
        text = text_of(event.content)
        if not text.strip("\n") or event.status == "blocked":
            return
        spans = color_spans(event.details) if self.colour else ()
        self._kept.append((title, painted(text, spans).strip("\n")[-MOST_CHARS:]))
        if event.name != COMMAND:
            return
        lines = [one for one in line_styles(text, spans) if one[0].strip()]
        room = SHOWN_LINES if event.status == "ok" else FAILED_LINES
        # One line more takes the place of the note about it.
        end = lines if len(lines) <= room + 1 else lines[-room:]
        if len(end) < len(lines):
            hint = " (Ctrl-O shows all)" if self.can_page else ""
            yield f"… {len(lines) - len(end)} earlier lines{hint}", DIM
        yield from ((line, style or DIM) for line, style in end)

    def page(self, env: Mapping[str, str], root: Path) -> None:
        """Show all outputs in `less`, or on the screen where there is none. Blocks until the user leaves it.

        Args:
            env: Environment of the pager.
            root: The workspace, in which no pager is looked for.
        """
        text = "\n\n".join(f"── {shown(title)}\n{output}" for title, output in self._kept)
        text = text or "No output of tool calls yet."
        pager = find_outside_program(PAGER[0], env_path=env.get("PATH", os.defpath), roots=(root,))
        if pager is None:
            _ = sys.__stdout__ and sys.__stdout__.write(f"{text}\n")
            return
        # What the pager can start is not what reading an output is for.
        argv = [pager, *PAGER[1:]]
        _ = subprocess.run(argv, input=text.encode(), env={**env, "LESSSECURE": "1"}, check=False)  # noqa: S603 - a fixed program


def color_spans(details: JsonValue) -> Sequence[Span]:
    """Return the colours that the details of a call name; none where they name none that can be used."""
    colors = details.get("colors") if is_object(details) else None
    spans: list[Span] = []
    for color in colors if isinstance(colors, list) else ():
        match color:
            case [int() as start, int() as end, str() as style] if (
                spans[-1][1] if spans else 0
            ) <= start < end and _STYLE.fullmatch(style):
                spans.append((start, end, style))
            case _:
                return []
    return spans


def painted(text: str, spans: Sequence[Span]) -> str:
    """Return a text with control sequences for its colours, and with everything else that is hidden written out."""
    if not spans:
        return shown(text)
    units = text.encode("utf-16-le", "surrogatepass")
    parts: list[str] = []
    place = 0
    for start, end, style in spans:
        # A style that goes on over lines would be lost where a pager begins in between.
        rows = _part(units, start, end).split("\n")
        parts += (
            _part(units, place, start),
            "\n".join(f"\x1b[{style}m{row}\x1b[0m" for row in rows),
        )
        place = end
    return "".join((*parts, _part(units, place, len(units))))


def line_styles(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a text, each with the style of most of it; None: most of it has none."""
    start = 0
    for line in text.split("\n"):
        end = start + len(line.encode("utf-16-le", "surrogatepass")) // 2
        lengths: dict[str, int] = {}
        for first, last, style in spans:
            if (length := min(last, end) - max(first, start)) > 0:
                lengths[style] = lengths.get(style, 0) + length
        style = max(lengths, key=lambda one: lengths[one], default=None)
        yield line, style if style and 2 * lengths[style] >= end - start else None
        start = end + 1


def _part(units: bytes, start: int, end: int) -> str:
    return shown(units[2 * start : 2 * end].decode("utf-16-le", "replace"))
