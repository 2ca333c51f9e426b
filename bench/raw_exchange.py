"""The floor of a model request: the same bytes over a plain socket, nothing decoded."""

import json
import socket
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

LAST_CHUNK = b"0\r\n\r\n"
READ_BYTES = 256 * 1024
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """When the request was sent, and when its answer was whole."""

    sent: float
    answered: float


class RawSocket:
    """One connection that is kept open."""

    def __init__(self, origin: str) -> None:
        host, _, port = origin.removeprefix("http://").partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def post(self, path: str, body: Any) -> Exchange:
        """Send a request and read its whole streamed answer."""
        return self.exchange(encoded(path, body))

    def exchange(self, raw: bytes) -> Exchange:
        """Send an encoded request and read its whole streamed answer."""
        sent = time.monotonic()
        self._socket.sendall(raw)
        tail = b""
        while not tail.endswith(LAST_CHUNK):
            piece = self._socket.recv(READ_BYTES)
            if not piece:
                raise ConnectionError("the provider closed the connection in the middle")
            tail = (tail + piece)[-len(LAST_CHUNK) :]
        return Exchange(sent, time.monotonic())


def encoded(path: str, body: Any) -> bytes:
    """Encode a request for the loopback provider."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: loopback\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text
