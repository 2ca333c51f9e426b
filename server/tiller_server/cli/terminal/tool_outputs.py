"""Keeps what tool calls put out, shows the end of it, and all of it in a pager."""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.events import ToolEnded
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


class ToolOutputs(Struct):
    """The outputs of the last tool calls, the newest last."""

    can_page: bool = False
    """A key opens the pager; it is named beside what is left out."""
    _kept: deque[tuple[str, str]] = msgspec.field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def keep(self, event: ToolEnded, title: str) -> Iterator[tuple[str, str]]:
        """Keep the output of a call; yield the lines of it to show, each with its style.

        Of other tools than commands no line is shown: their results are for the model.
        """
        text = text_of(event.content).strip("\n")
        if not text or event.status == "blocked":
            return
        self._kept.append((title, text[-MOST_CHARS:]))
        if event.name != COMMAND:
            return
        lines = [line for line in text.split("\n") if line.strip()]
        room = SHOWN_LINES if event.status == "ok" else FAILED_LINES
        # One line more takes the place of the note about it.
        end = lines if len(lines) <= room + 1 else lines[-room:]
        if len(end) < len(lines):
            hint = " (Ctrl-O shows all)" if self.can_page else ""
            yield f"… {len(lines) - len(end)} earlier lines{hint}", DIM
        yield from ((line, DIM) for line in end)

    def page(self, env: Mapping[str, str], root: Path) -> None:
        """Show all outputs in `less`, or on the screen where there is none. Blocks until the user leaves it.

        Args:
            env: Environment of the pager.
            root: The workspace, in which no pager is looked for.
        """
        text = "\n\n".join(f"── {title}\n{output}" for title, output in self._kept)
        text = shown(text) or "No output of tool calls yet."
        pager = find_outside_program(PAGER[0], env_path=env.get("PATH", os.defpath), roots=(root,))
        if pager is None:
            _ = sys.__stdout__ and sys.__stdout__.write(f"{text}\n")
            return
        # What the pager can start is not what reading an output is for.
        argv = [pager, *PAGER[1:]]
        _ = subprocess.run(argv, input=text.encode(), env={**env, "LESSSECURE": "1"}, check=False)  # noqa: S603 - a fixed program
