"""The two ends of the shim as descriptors: the editor on standard input and output, the daemon on a socket."""

import os
import stat
from _socket import SHUT_WR, socket

from tiller_server.daemon.shim.send_queue import Outgoing
from tiller_server.lsp.transport.framing import FrameReader, LineCutter

READ_BYTES = 64 * 1024
_MAX_REFUSAL_BYTES = 64 * 1024
_REFUSAL = b'{"tiller"'
"""So the line begins with which a daemon refuses a client."""


class EditorEnd:
    """Whole messages from the editor."""

    def __init__(
        self,
        *,
        cutter: FrameReader | LineCutter | None = None,
        stdin_fd: int = 0,
        stdout_fd: int = 1,
    ) -> None:
        """Create the end for descriptors.

        Args:
            cutter: Cuts the bytes into messages; None: LSP's frames.
            stdin_fd: Where the editor writes.
            stdout_fd: Where it reads.
        """
        self.reads, self.writes = stdin_fd, stdout_fd
        self.first_bytes: bytearray | None = bytearray()
        """All that has come, for whoever must serve it in our place; None when that is over."""
        self._cutter = FrameReader() if cutter is None else cutter
        # What a terminal or a file is, others hold too: there a write waits.
        mode = os.fstat(stdout_fd).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.set_blocking(stdout_fd, False)

    def take(self) -> list[bytes] | None:
        """Read what is there and give the messages that are whole now; None at the end.

        Raises:
            FrameError: It cannot be read.
        """
        try:
            data = os.read(self.reads, READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            return None
        if self.first_bytes is not None:
            self.first_bytes += data
        return _cut(self._cutter, data)

    def give(self, outgoing: Outgoing) -> None:
        """Write what the editor takes.

        Raises:
            OSError: It is gone.
        """
        outgoing.send(lambda piece: os.write(self.writes, piece))


class DaemonEnd:
    """Whole messages from one daemon, or its refusal."""

    def __init__(
        self, sock: socket, *, since: float, cutter: FrameReader | LineCutter | None = None
    ) -> None:
        """Create the end for a connected socket.

        Args:
            sock: Non-blocking; owned from now on.
            since: When it was connected.
            cutter: Cuts the bytes into messages; None: LSP's frames.
        """
        self.fd = sock.fileno()
        self.since = since
        self.has_spoken = False
        self._asked_at: float | None = None
        self.refusal: bytes | None = None
        """A line in the place of messages."""
        self._sock = sock
        self._cutter = FrameReader() if cutter is None else cutter
        self._is_shut = False

    def take(self) -> list[bytes] | None:
        """Read what is there and give the messages that are whole now; None at the end.

        Raises:
            FrameError: It cannot be read.
        """
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            return None
        if not self.has_spoken and (self.refusal is not None or data.startswith(_REFUSAL)):
            self.refusal = ((self.refusal or b"") + data)[:_MAX_REFUSAL_BYTES]
            return []
        self.has_spoken = True
        return _cut(self._cutter, data)

    def give(self, outgoing: Outgoing) -> None:
        """Write what the daemon takes. That it is gone shows when it is read from."""
        try:
            outgoing.send(self._sock.send)
        except OSError:
            return

    def asked(self, now: float) -> None:
        """Record that it was asked something."""
        self._asked_at = now

    def is_deaf(self, now: float, *, after_s: float) -> bool:
        """Return whether it has not said a word for so long since it was asked."""
        asked_at = self._asked_at
        return not self.has_spoken and asked_at is not None and now - asked_at > after_s

    def finish(self) -> None:
        """Report that nothing more will come; to be repeated is harmless."""
        if not self._is_shut:
            self._is_shut = True
            try:
                self._sock.shutdown(SHUT_WR)
            except OSError:
                return

    def close(self) -> None:
        """Hang up."""
        self._sock.close()


def _cut(cutter: FrameReader | LineCutter, data: bytes) -> list[bytes]:
    cutter.feed(data)
    bodies: list[bytes] = []
    while (body := cutter.take()) is not None:
        bodies.append(body)
    return bodies
