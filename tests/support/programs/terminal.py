"""The `tiller` command as a shell sees it: words out, words beside them, an exit code, signals."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.clients.server import TILLER, Ground
from tests.support.session.folders import is_of_machine

Json = dict[str, Any]
LIMIT_S = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Json]:
        """What it wrote to stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self) -> str:
        """The only line of stderr: an error is one sentence, and never a traceback."""
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        return line


def tiller(
    ground: Ground,
    *arguments: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    prepare: Callable[[], None] | None = None,
) -> Ran:
    """Run a command to its end; without `stdin` there is nothing to read.

    Args:
        env: Variables besides those of the ground.
        prepare: Runs in the child before the command.
    """
    ended = subprocess.run(
        [*TILLER, *arguments],
        cwd=ground.root,
        env={**ground.env, **(env or {})},
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
        preexec_fn=prepare,
    )
    return Ran(code=ended.returncode, out=ended.stdout.decode(), err=_err(ended.stderr))


def _err(written: bytes) -> str:
    """Decode stderr, without the notice of what this machine lacks for containment."""
    lines = written.decode().splitlines(keepends=True)
    return "".join(line for line in lines if not is_of_machine(line))


def shell(ground: Ground, line: str) -> Ran:
    """Run a line of shell in which `$TILLER` is the command; a pipeline fails if one of its parts does."""
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=ground.root,
        env={**ground.env, "TILLER": " ".join(TILLER)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Ran(code=ended.returncode, out=ended.stdout.decode(), err=_err(ended.stderr))


def in_terminal(ground: Ground, *arguments: str, env: Mapping[str, str]) -> str:
    """Run a command in a terminal of its own and give what is shown there; it has to succeed."""
    ours, theirs = os.openpty()
    command = [*TILLER, *arguments]
    process = subprocess.Popen(
        command,
        cwd=ground.root,
        env={**quiet(ground), **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = bytearray()
    with process:
        while part := _read_terminal(ours):
            shown += part
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


class Running:
    """A command that is going on."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._lines: list[bytes] = []

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def until(self, *words: str) -> str:
        """Read stdout up to the first line that holds all the words, and give it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)
            if all(word.encode() in line for word in words):
                return line.decode()
        message = f"stdout ended without {words!r}; stderr: {self.end().err}"
        raise AssertionError(message)

    def told(self, word: str) -> str:
        """Read stderr up to the first line that holds the word, and give it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if word.encode() in line:
                return line.decode()
        message = f"stderr ended without {word!r}"
        raise AssertionError(message)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        self.process.send_signal(number)

    def end(self) -> Ran:
        """Wait for the end and give all it wrote, `until` included."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        whole = b"".join(self._lines) + out
        return Ran(code=self.process.returncode, out=whole.decode(), err=_err(err))


@contextmanager
def running(ground: Ground, arguments: Sequence[str]) -> Generator[Running, None, None]:
    """Start a command; it is killed if it outlives the block."""
    process = subprocess.Popen(
        [*TILLER, *arguments],
        cwd=ground.root,
        env=dict(ground.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_signals,  # noqa: PLW1509 - a test starts it from its only thread
    )
    with process:
        try:
            yield Running(process)
        finally:
            process.kill()


def hear_signals() -> None:
    """Take back that these are ignored: a test run in the background ignores them, and so would all that it starts."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def quiet(ground: Ground) -> dict[str, str]:
    """Return the environment of a ground, in which a run on a terminal starts no daemon that outlives the test."""
    return {**ground.env, "CI": "" if ground.runs_below else "1"}


def _read_terminal(number: int) -> bytes:
    try:
        return os.read(number, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""
