"""A connection of a terminal to the daemon: requests and their answers, notifications, and the end."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from socket import socket
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import as_object, decode, encode, is_object
from tiller_server.lsp.transport.framing import FrameError, FrameReader, frame

READ_BYTES: Final = 1 << 16
NOT_FOUND: Final = -32601
CANCELLED: Final = -32800
ASKED: Final = frozenset({"agent/permission", "agent/question"})
"""Requests of the daemon that its events show too, and that are answered by a request of ours."""


class DaemonRefused(TillerError):
    """The daemon refused a request, or has gone."""


class DaemonConnection:
    """One connection; used in one event loop."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        """Prepare it; `read` has to run for answers to arrive.

        Args:
            writer: The stream to the daemon, after the first line.
        """
        self._writer = writer
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[JsonValue]] = {}
        self._asked: list[JsonValue] = []
        self.on_notification: Callable[[str, JsonObject], None] = lambda _name, _params: None
        """Function that is called with each notification of the daemon; it must not raise."""

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request and wait for its result.

        Raises:
            DaemonRefused: The daemon answered with an error, or the connection ended before.
        """
        if self._writer.is_closing():
            message = "the daemon has ended"
            raise DaemonRefused(message)
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        try:
            return await answer
        finally:
            _ = self._answers.pop(number, None)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Pass on what the daemon sends, until the connection ends; every open request fails then."""
        frames = FrameReader()
        try:
            with suppress(OSError, FrameError):
                while data := await reader.read(READ_BYTES):
                    frames.feed(data)
                    while (body := frames.take()) is not None:
                        self._take(as_object(decode(body.decode())))
        finally:
            self._writer.close()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(DaemonRefused("the daemon has ended"))

    def _take(self, message: JsonObject) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        given = as_object(params)
        if isinstance(method, str) and number is None:
            if method == "$/cancelRequest":
                self._cancelled(given.get("id"))
            else:
                self.on_notification(method, given)
        elif isinstance(method, str):
            if method in ASKED:
                self._asked.append(number)
            else:
                text = f"a terminal does not answer {method}"
                self._send({"id": number, "error": {"code": NOT_FOUND, "message": text}})
        elif isinstance(number, int) and (answer := self._answers.get(number)) is not None:
            self._settle(answer, message)

    def _cancelled(self, number: JsonValue) -> None:
        """Answer a question that was answered elsewhere: its event says so too."""
        if number in self._asked:
            self._asked.remove(number)
            error: JsonObject = {"code": CANCELLED, "message": "answered elsewhere"}
            self._send({"id": number, "error": error})

    def _settle(self, answer: asyncio.Future[JsonValue], message: JsonObject) -> None:
        if answer.done():
            return
        error = message.get("error")
        if is_object(error):
            answer.set_exception(DaemonRefused(str(error.get("message"))))
        else:
            answer.set_result(message.get("result"))

    def _send(self, message: JsonObject) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame(encode({"jsonrpc": "2.0", **message})))


@asynccontextmanager
async def connected(
    env: Mapping[str, str], root: Path
) -> AsyncGenerator[DaemonConnection | None, None]:
    """Connect to the running daemon; None: there is none, or it cannot be used.

    Args:
        env: Environment of this process, which goes to the daemon as that of an editor does.
        root: The workspace.
    """
    found = _called(env, root)
    if found is None:
        yield None
        return
    reader, writer = await asyncio.open_unix_connection(sock=found[0])
    writer.write(found[1])
    connection = DaemonConnection(writer)
    reading = asyncio.get_running_loop().create_task(connection.read(reader))
    try:
        yield connection
    finally:
        _ = reading.cancel()
        writer.close()


def _called(env: Mapping[str, str], root: Path) -> tuple[socket, bytes] | None:
    """Return a socket to the daemon and the first line for it; None: there is no daemon to be used."""
    if sys.platform == "win32":
        return None
    from tiller_server.daemon.shim.connection import (  # noqa: PLC0415 - needs sockets that Windows lacks
        Unreachable,
        call,
        handshake_line,
    )

    try:
        found = call(env)
    except Unreachable:
        return None
    if found is None:
        return None
    raw, token = found
    line = handshake_line(env, token=token, cwd=str(root), pid=os.getpid())
    return socket(fileno=raw.detach()), line
