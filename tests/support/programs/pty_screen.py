"""The `tiller` command in a terminal of its own: keys go in, and what a person would see there can be read."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

from tests.support.clients.server import TILLER, Ground
from tests.support.programs.terminal import hear_signals, quiet

WAIT_S = 30.0
LEAVE_S = 15.0


class Terminal:
    """A terminal with a command in it, and its picture."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", number: int, *, columns: int, lines: int
    ):
        self.process = process
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=0.5)
        self.raw = bytearray()
        self.on_output: Callable[[bytes], None] = lambda _: None
        """Called with each part of the output as it comes."""
        self._stream = pyte.ByteStream(self.screen)
        self._number = number
        self._ended = False
        # What is asked of a terminal, where the cursor is for one, is answered as keys are.
        self.screen.write_process_input = self._answer

    @property
    def picture(self) -> str:
        """What is shown now, without blanks at the ends."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def whole(self) -> str:
        """What was shown so far, with all that has gone out at the top."""
        above = [
            "".join(line[at].data for at in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return "\n".join((*above, self.picture))

    def until(self, seen: str | Callable[[str], bool], *, wait_s: float = WAIT_S) -> str:
        """Read until a text is shown (or until it is as asked), and give the picture."""
        is_seen = seen if callable(seen) else lambda picture: seen in picture
        end = time.monotonic() + wait_s
        while not is_seen(self.picture):
            assert time.monotonic() < end, f"{seen!r} was not shown:\n{self.picture}"
            assert self._read(0.05) or not self._ended, f"ended without {seen!r}:\n{self.whole}"
        return self.picture

    def look(self, wait_s: float) -> None:
        """Read what is shown by now, or what comes next within a time."""
        _ = self._read(wait_s)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._number, text.encode())

    def line(self, text: str) -> None:
        """Press keys, and Enter."""
        self.type(text + "\r")

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size, and tell the command."""
        _set_size(self._number, columns, lines)
        self.screen.resize(lines, columns)
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """Close the window, as a person does who has seen enough."""
        self._ended = True
        os.close(self._number)
        self._number = -1

    def drain(self) -> int:
        """Read to the end without a picture, which would take long; gives the exit code."""
        while not self._ended:
            self._read(0.05, shown=False)
        return self.process.wait(LEAVE_S)

    def close(self) -> None:
        """Let the terminal go. Idempotent."""
        if self._number >= 0:
            self.hang_up()

    def end(self) -> int:
        """Read to the end; gives the exit code."""
        end = time.monotonic() + WAIT_S
        while not self._ended:
            assert time.monotonic() < end, f"it does not end:\n{self.picture}"
            self._read(0.05)
        return self.process.wait(LEAVE_S)

    def _answer(self, data: str) -> None:
        self.type(data)

    def _read(self, wait_s: float, *, shown: bool = True) -> bool:
        if not select.select([self._number], [], [], wait_s)[0]:
            return True
        try:
            part = os.read(self._number, 65_536)
        except OSError:  # how Linux says that the other side is closed
            part = b""
        self._ended = not part
        self.raw += part
        self.on_output(part)
        if shown:
            self._stream.feed(part)
        return bool(part)


@contextmanager
def terminal(
    ground: Ground,
    arguments: Sequence[str],
    *,
    columns: int = 80,
    lines: int = 24,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = TILLER,
) -> Generator[Terminal, None, None]:
    """Start a command as the leader of a terminal; it is killed if it outlives the block."""
    variables = {**quiet(ground), "TERM": "xterm-256color", "LANG": "C.UTF-8", **(env or {})}
    argv = [*program, *arguments]
    with opened(argv, cwd=ground.root, env=variables, columns=columns, lines=lines) as window:
        yield window


@contextmanager
def opened(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int, lines: int
) -> Generator[Terminal, None, None]:
    """Start a program as the leader of a terminal; it is killed if it outlives the block."""
    ours, theirs = pty.openpty()
    _set_size(theirs, columns, lines)
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_lead,  # noqa: PLW1509 - a test starts it from its only thread
    )
    os.close(theirs)
    with process:
        window = Terminal(process, ours, columns=columns, lines=lines)
        try:
            yield window
        finally:
            process.kill()
            window.close()


def _lead() -> None:
    hear_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _set_size(number: int, columns: int, lines: int) -> None:
    fcntl.ioctl(number, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
