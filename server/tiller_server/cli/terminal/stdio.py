"""Makes the standard streams safe to use, whatever the shell handed over."""

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Protocol

from agent_core.kernel.errors import TillerError


class Stream(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Write text to the stream."""
        ...

    def flush(self) -> object:
        """Write out the buffered text."""
        ...


class OutputLost(TillerError):
    """A standard stream cannot be written: its pipe was closed, or the disk is full."""


class OutputClosed(OutputLost):
    """The reader has closed the pipe."""


class StandardStream:
    """A standard stream whose failures are errors of ours, so that nobody takes them for something else's."""

    def __init__(self, stream: Stream, *, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, text: str, /) -> None:
        """Write text to the stream.

        Raises:
            OutputLost: The stream cannot be written to.
        """
        try:
            _ = self._stream.write(text)
        except OSError as error:
            raise self._lost(error) from error

    def flush(self) -> None:
        """Write out the buffered text.

        Raises:
            OutputLost: The stream cannot be written to.
        """
        try:
            _ = self._stream.flush()
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> OutputLost:
        rest = "so the run was stopped; look into its session file"
        if error.errno == errno.EPIPE:
            return OutputClosed(f"{self._name} was closed by its reader, {rest}")
        return OutputLost(f"{self._name} cannot be written to ({error.strerror}), {rest}")


def speak_json() -> None:
    """Write UTF-8 from now on: that is what JSON is in, whatever the locale says."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def abandon() -> None:
    """Forget what could not be written, so that the end of the process does not try and complain again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError), open(os.devnull, "wb") as nothing:  # noqa: PTH123 - not a Path
                _ = os.dup2(nothing.fileno(), stream.fileno())
