"""Records a program in a terminal of its own, with the keys of a script, as an asciicast (version 2)."""

import codecs
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyte

COLUMNS: Final = 80
ROWS: Final = 24
KEY_S: Final = 0.05
"""Time between two keys."""
MOST_IDLE_S: Final = 1.5
"""A longer pause is shortened to this in the recording."""
END_S: Final = 3.0
"""How long the last picture is shown."""
WAIT_S: Final = 60.0
READ_BYTES: Final = 65_536


class Recording:
    """A program in a terminal, and what it has shown so far."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._screen = pyte.Screen(COLUMNS, ROWS)
        # Where the cursor is, for example: answered as keys are.
        self._screen.write_process_input = self._press
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._events: list[tuple[float, str]] = []
        self._is_over = False

    def type(self, text: str) -> None:
        """Press keys, one after another."""
        for key in text:
            self._press(key)
            self._read_for(KEY_S)

    def line(self, text: str) -> None:
        """Press keys, and Enter."""
        self.type(text)
        self._read_for(6 * KEY_S)
        self._press("\r")

    def shows(self, text: str) -> bool:
        """Return whether a text is shown now."""
        return text in "\n".join(self._screen.display)

    def until(self, text: str) -> None:
        """Wait until a text is shown.

        Raises:
            TimeoutError: It was not shown in time, or the program ended before.
        """
        end_s = time.monotonic() + WAIT_S
        while not self.shows(text):
            if self._is_over or time.monotonic() > end_s:
                shown = "\n".join(self._screen.display)
                message = f"{text!r} was not shown:\n{shown}"
                raise TimeoutError(message)
            self._read_for(KEY_S)

    def pause(self, seconds: float) -> None:
        """Let a reader look."""
        self._read_for(seconds)

    def finish(self) -> None:
        """Read to the end of the program."""
        end_s = time.monotonic() + WAIT_S
        while not self._is_over and time.monotonic() < end_s:
            self._read_for(KEY_S)

    def cast(self) -> str:
        """Return the recording."""
        lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
        at_s, before_s = 0.0, self._events[0][0]
        for time_s, text in self._events:
            at_s += min(time_s - before_s, MOST_IDLE_S)
            before_s = time_s
            lines.append(json.dumps([round(at_s, 3), "o", text]))
        lines.append(json.dumps([round(at_s + END_S, 3), "o", ""]))
        return "".join(f"{line}\n" for line in lines)

    def _press(self, data: str) -> None:
        _ = os.write(self._terminal, data.encode())

    def _read_for(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while not self._is_over and (left_s := end_s - time.monotonic()) > 0:
            if not select.select([self._terminal], [], [], left_s)[0]:
                return
            try:
                data = os.read(self._terminal, READ_BYTES)
            except OSError:  # how Linux says that the other side is closed
                data = b""
            self._is_over = not data
            text = self._decoder.decode(data)
            self._stream.feed(text)
            self._events.append((time.monotonic(), text))


@contextmanager
def recorded(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> Generator[Recording, None, None]:
    """Start a program as the leader of a terminal; it is killed if it outlives the block."""
    ours, theirs = pty.openpty()
    _ = fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(  # noqa: S603 - the command of the scene
        argv,
        cwd=cwd,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_lead,  # noqa: PLW1509 - started from the only thread
    )
    os.close(theirs)
    with process:
        try:
            yield Recording(ours)
        finally:
            process.kill()
            os.close(ours)


def _lead() -> None:
    _ = fcntl.ioctl(0, termios.TIOCSCTTY, 0)
