"""Records a program in a terminal, with the keys of a script, as an asciicast (version 2)."""

import codecs
import json
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.programs.pty_screen import Terminal, opened

COLUMNS: Final = 80
ROWS: Final = 24
KEY_S: Final = 0.05
"""Time between two keys."""
MOST_IDLE_S: Final = 1.5
"""A longer pause is shortened to this in the recording."""
END_S: Final = 3.0
"""How long the last picture is shown."""


class Recording:
    """A program in a terminal, and what it has written so far."""

    def __init__(self, window: Terminal) -> None:
        self.window = window
        self._events: list[tuple[float, str]] = []
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        window.on_output = lambda part: self._events.append(
            (time.monotonic(), decoder.decode(part))
        )

    def type(self, text: str) -> None:
        """Press keys, one after another."""
        for key in text:
            self.window.type(key)
            self.pause(KEY_S)

    def line(self, text: str) -> None:
        """Press keys, and Enter."""
        self.type(text)
        self.pause(6 * KEY_S)
        self.window.type("\r")

    def pause(self, seconds: float) -> None:
        """Record for some time without a key."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self.window.look(left_s)

    def asciicast(self) -> str:
        """Return the recording."""
        lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
        at_s, before_s = 0.0, self._events[0][0]
        for time_s, text in self._events:
            at_s += min(time_s - before_s, MOST_IDLE_S)
            before_s = time_s
            lines.append(json.dumps([round(at_s, 3), "o", text]))
        lines.append(json.dumps([round(at_s + END_S, 3), "o", ""]))
        return "".join(f"{line}\n" for line in lines)


@contextmanager
def recorded(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> Generator[Recording, None, None]:
    """Record a program; it is killed if it outlives the block."""
    with opened(argv, cwd=cwd, env=env, columns=COLUMNS, lines=ROWS) as window:
        yield Recording(window)
