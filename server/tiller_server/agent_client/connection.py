"""A connection to a server of the methods `agent/*`: requests in both directions, notifications, and the end."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import as_object, decode, encode, is_object
from tiller_server.lsp.transport.framing import FrameError, FrameReader, frame
from tiller_server.lsp.transport.outbox import Sink
from tiller_server.lsp.transport.stdio import InputStream

__all__ = [
    "ASKED",
    "READ_BYTES",
    "AgentClient",
    "AgentRefused",
    "InputStream",
    "RequestHandler",
    "Sink",
]

READ_BYTES: Final = 1 << 16
BLOB_READ: Final = "agent/blob/read"
BLOB_MARK: Final = b'"blob"'
"""Part of every message that names a stored image."""
NOT_FOUND: Final = -32601
CANCELLED: Final = -32800
ASKED: Final = frozenset({"agent/permission", "agent/question"})
"""Requests of the server that its events show too, and that are answered by a request of ours."""

RequestHandler = Callable[[JsonObject], Awaitable[JsonValue]]
"""Answers a request of the server: from its parameters to its result; an AgentRefused is the error of the answer."""


class AgentRefused(TillerError):
    """The server refused a request, or has gone.

    Attributes:
        code: Code of the JSON-RPC error; None when the connection has ended.
        data: Data of the error, `{}` when it has none.
    """

    def __init__(
        self, message: str, *, code: int | None = None, data: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data: JsonObject = data or {}


class AgentClient:
    """One connection; used in one event loop."""

    def __init__(self, sink: Sink, *, handlers: Mapping[str, RequestHandler] | None = None) -> None:
        """Prepare it; `read` has to run for answers to arrive.

        Args:
            sink: The stream to the server, after the first line.
            handlers: Answers of requests of the server, by method; any other but `ASKED` is refused.
        """
        self._sink = sink
        self._handlers = handlers or {}
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[JsonValue]] = {}
        self._asked: list[JsonValue] = []
        self._handling: dict[JsonValue, asyncio.Task[None]] = {}
        self._held: deque[JsonObject] = deque()
        """Messages that wait for the bytes of an image, or for one that does."""
        self._reading: set[JsonValue] = set()
        """Requests for these bytes."""
        self.fills_images = False
        """Whether messages of the server get the bytes of the stored images that they name."""
        self.ended = asyncio.Event()
        """Set when the connection has ended."""
        self.on_notification: Callable[[str, JsonObject], None] = lambda _name, _params: None
        """Function that is called with each notification of the server, in order; it must not raise."""

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request and wait for its result; when the wait is cancelled, so is the request.

        Raises:
            AgentRefused: The server answered with an error, or the connection ended before.
        """
        if self.ended.is_set():
            message = "the daemon has ended"
            raise AgentRefused(message)
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        if method == BLOB_READ:
            self._reading.add(number)
        self._send({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            _ = self._answers.pop(number, None)
            self._reading.discard(number)

    async def introduce(
        self, client: JsonObject, folders: Sequence[Path] = (), **agent: JsonValue
    ) -> None:
        """Send the handshake, which comes before any other request.

        Args:
            client: Name, version and role of this client.
            folders: Folders of the workspace, the primary one first.
            agent: More of `initializationOptions.agent`.

        Raises:
            AgentRefused: The server does not accept this client.
        """
        listed: list[JsonValue] = [{"uri": one.as_uri(), "name": one.name} for one in folders]
        options: JsonObject = {"client": client, "session": {"open": "none"}, **agent}
        params: JsonObject = {
            "processId": None,
            "clientInfo": {"name": client.get("name"), "version": client.get("version")},
            "rootUri": folders[0].as_uri() if folders else None,
            "workspaceFolders": listed,
            "capabilities": {},
            "initializationOptions": {"agent": options},
        }
        _ = await self.request("initialize", params)
        self.notify("initialized", {})

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def read(self, reader: InputStream) -> None:
        """Pass on what the server sends, until the connection ends; every open request fails then."""
        frames = FrameReader()
        try:
            with suppress(OSError, FrameError):
                while data := await reader.read(READ_BYTES):
                    frames.feed(data)
                    while (body := frames.take()) is not None:
                        message = as_object(decode(body.decode()))
                        if self._must_wait(body, message):
                            self._hold(message)
                        else:
                            self._take(message)
        finally:
            self.ended.set()
            self._sink.close()
            for task in self._handling.values():
                _ = task.cancel()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(AgentRefused("the daemon has ended"))

    def _must_wait(self, body: bytes, message: JsonObject) -> bool:
        if not self.fills_images or message.get("id") in self._reading:
            return False
        return bool(self._held) or BLOB_MARK in body

    def _hold(self, message: JsonObject) -> None:
        self._held.append(message)
        if len(self._held) == 1:
            self._handling[BLOB_READ] = asyncio.get_running_loop().create_task(self._fill_held())

    async def _fill_held(self) -> None:
        from tiller_server.agent_client.images import fill_images  # noqa: PLC0415 - at first use

        while self._held:
            with suppress(AgentRefused):
                await fill_images(self._held[0], self.request)
            self._take(self._held.popleft())

    def _take(self, message: JsonObject) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        given = as_object(params)
        if isinstance(method, str) and number is None:
            if method == "$/cancelRequest":
                self._cancelled(given.get("id"))
            else:
                self.on_notification(method, given)
        elif isinstance(method, str):
            self._asked_for(number, method, given)
        elif isinstance(number, int) and (answer := self._answers.get(number)) is not None:
            self._settle(answer, message)

    def _asked_for(self, number: JsonValue, method: str, params: JsonObject) -> None:
        if (handler := self._handlers.get(method)) is not None:
            task = asyncio.get_running_loop().create_task(self._handle(number, handler, params))
            self._handling[number] = task
            task.add_done_callback(lambda _: self._handling.pop(number, None))
        elif method in ASKED:
            self._asked.append(number)
        else:
            self._refuse(number, NOT_FOUND, f"this client does not answer {method}")

    async def _handle(self, number: JsonValue, handler: RequestHandler, params: JsonObject) -> None:
        try:
            result = await handler(params)
        except AgentRefused as error:
            self._refuse(number, error.code or NOT_FOUND, str(error))
        except asyncio.CancelledError:
            self._refuse(number, CANCELLED, "the request was cancelled")
            raise
        else:
            self._send({"id": number, "result": result})

    def _refuse(self, number: JsonValue, code: int, message: str) -> None:
        self._send({"id": number, "error": {"code": code, "message": message}})

    def _cancelled(self, number: JsonValue) -> None:
        """End a request of the server; a question was answered elsewhere, and its event says so too."""
        if (task := self._handling.get(number)) is not None:
            _ = task.cancel()
        elif number in self._asked:
            self._asked.remove(number)
            self._refuse(number, CANCELLED, "answered elsewhere")

    def _settle(self, answer: asyncio.Future[JsonValue], message: JsonObject) -> None:
        if answer.done():
            return
        error = message.get("error")
        if is_object(error):
            code = error.get("code")
            refused = AgentRefused(
                str(error.get("message")),
                code=code if isinstance(code, int) else None,
                data=as_object(error.get("data")),
            )
            answer.set_exception(refused)
        else:
            answer.set_result(message.get("result"))

    def _send(self, message: JsonObject) -> None:
        if not self.ended.is_set():
            self._sink.write(frame(encode({"jsonrpc": "2.0", **message})))
