"""JSON-RPC with one peer, a message per line: requests in both directions, cancellation, bounds."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Final, Protocol

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, decode, encode, is_object
from agent_core.kernel.values import Value
from tiller_server.acp.errors import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    AcpError,
    PeerGone,
)
from tiller_server.agent_client.lines import LINE_BYTES, JsonLines, LineTooLong

MAX_REQUESTS: Final = 1024
"""Requests of the peer at a time."""
MAX_UNSENT_BYTES: Final = 64 * 1024 * 1024
"""The connection ends when so much waits for a peer that does not read."""
ROOM_BYTES: Final = 256 * 1024
"""Below this much unsent output the peer counts as keeping up."""
READ_BYTES: Final = 1 << 16
FLUSH_S: Final = 2.0
CANCEL_REQUEST: Final = "$/cancel_request"

_log = logging.getLogger(__name__)


class Reader(Protocol):
    """Where bytes come from. An `asyncio.StreamReader` is one."""

    async def read(self, n: int, /) -> bytes:
        """Return up to n bytes as soon as there are any; b"" at the end."""
        ...


class Writer(Protocol):
    """Where bytes go. An `asyncio.StreamWriter` is one."""

    def write(self, data: bytes, /) -> None:
        """Accept bytes without waiting."""
        ...

    async def drain(self) -> None:
        """Wait until there is room for more; raises OSError when the other side is gone."""
        ...

    def close(self) -> None:
        """Close once everything taken has gone out."""
        ...


class Request:
    """A request of the peer that is being answered."""

    def __init__(self, method: str, params: JsonObject, number: JsonValue) -> None:
        self.method = method
        self.params = params
        self.id = number
        self.on_cancel: Callable[[], None] | None = None
        """Function that ends the request early and lets its handler return; None: the handler is cancelled."""


class PeerReply(Value, frozen=True, kw_only=True):
    """A result, and what is sent after it."""

    result: JsonObject
    then: Callable[[], None]


PeerHandler = Callable[[Request], Awaitable[JsonObject | PeerReply]]
PeerNotificationHandler = Callable[[JsonObject], None]


class JsonRpcPeer:
    """One connection; used in one event loop."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        *,
        requests: Mapping[str, PeerHandler],
        notifications: Mapping[str, PeerNotificationHandler],
        first_number: int = 0,
    ) -> None:
        """Prepare it; `serve` has to run.

        Args:
            reader: Bytes of the peer.
            writer: Bytes to the peer; closed at the end.
            requests: Handlers of requests, by method; any other request is refused.
            notifications: Handlers of notifications, by method; any other notification is ignored.
            first_number: Id of the first request to the peer. A later connection to the same peer begins with a higher
                one: an answer that was meant for the one before then answers nothing.
        """
        self._reader = reader
        self._writer = writer
        self.requests = requests
        """Handlers of requests, by method; another version of the protocol has others."""
        self._notifications = notifications
        self._numbers = count(first_number)
        self._answers: dict[int, asyncio.Future[JsonValue]] = {}
        self._handled: dict[JsonValue, tuple[Request, asyncio.Task[None]]] = {}
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._has_output = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_over = asyncio.Event()

    # ------------------------------------------------------------------ life

    async def serve(self, *, before_end: Callable[[], Awaitable[None]]) -> None:
        """Answer the peer until one side ends the connection.

        Args:
            before_end: Awaited when the peer has left, before the handlers of its requests are cancelled.
        """
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(self._write())
            reading = tasks.create_task(self._read(tasks))
            over = tasks.create_task(self._is_over.wait())
            try:
                _ = await asyncio.wait([reading, over], return_when=asyncio.FIRST_COMPLETED)
                # What the peer has said last begins to be handled.
                await asyncio.sleep(0)
                await before_end()
            finally:
                self._end()
                for task in (reading, over, *(task for _, task in self._handled.values())):
                    _ = task.cancel()
                _ = await asyncio.wait([writing], timeout=FLUSH_S)
                _ = writing.cancel()
                self._writer.close()

    def close(self) -> None:
        """End the connection after all output has gone out."""
        self._is_over.set()

    def _end(self) -> None:
        self._is_over.set()
        self._has_output.set()
        self._has_room.set()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(PeerGone("the client has gone"))

    # ------------------------------------------------------------------ to the peer

    async def request(self, method: str, params: JsonObject, *, within_s: float) -> JsonValue:
        """Send a request and wait for its result; when the wait ends without one, the request is withdrawn.

        Raises:
            AcpError: The peer answered with an error.
            PeerGone: It did not answer in time, or the connection ended.
        """
        if self._is_over.is_set():
            raise PeerGone("the client has gone")
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError as error:
            self.notify(CANCEL_REQUEST, {"requestId": number})
            message = f"the client has not answered {method} for {within_s:g} s"
            raise PeerGone(message) from error
        except asyncio.CancelledError:
            self.notify(CANCEL_REQUEST, {"requestId": number})
            raise
        finally:
            _ = self._answers.pop(number, None)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def flushed(self) -> None:
        """Wait until the peer keeps up with what is sent to it, or has gone."""
        _ = await self._has_room.wait()

    def _send(self, message: JsonObject) -> None:
        if self._is_over.is_set():
            return
        line = encode(message) + b"\n"
        self._unsent.append(line)
        self._unsent_bytes += len(line)
        self._has_output.set()
        if self._unsent_bytes > ROOM_BYTES:
            self._has_room.clear()
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            _log.warning("The ACP client does not read; its connection is closed.")
            self.close()

    async def _write(self) -> None:
        with suppress(OSError):
            while True:
                _ = await self._has_output.wait()
                self._has_output.clear()
                while self._unsent:
                    line = self._unsent.popleft()
                    self._writer.write(line)
                    await self._writer.drain()
                    self._unsent_bytes -= len(line)
                    if self._unsent_bytes <= ROOM_BYTES:
                        self._has_room.set()
                if self._is_over.is_set():
                    return
        self.close()

    # ------------------------------------------------------------------ from the peer

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        lines = JsonLines()
        with suppress(OSError):
            while data := await self._reader.read(READ_BYTES):
                lines.feed(data)
                while (line := self._next(lines)) is not None:
                    self._line(line, tasks)
                await asyncio.sleep(0)

    def _next(self, lines: JsonLines) -> bytes | None:
        while True:
            try:
                return lines.take()
            except LineTooLong:
                self._refuse(None, PARSE_ERROR, f"a line has over {LINE_BYTES} bytes")

    def _line(self, line: bytes, tasks: asyncio.TaskGroup) -> None:
        if not line.strip():
            return
        try:
            message = decode(line)
        except (ValueError, RecursionError):
            self._refuse(None, PARSE_ERROR, "the line is no JSON")
            return
        if not is_object(message) or message.get("jsonrpc") != "2.0":
            self._refuse(None, INVALID_REQUEST, 'a message is an object with "jsonrpc": "2.0"')
            return
        number = message.get("id")
        if not (number is None or isinstance(number, str | int)) or isinstance(number, bool):
            self._refuse(None, INVALID_REQUEST, "an id is a number without a fraction, or a text")
            return
        if "method" in message:
            self._called(message, number, tasks)
        elif "result" in message or "error" in message:
            self._answered(number, message)
        else:
            self._refuse(number, INVALID_REQUEST, "a message has a method, a result or an error")

    def _called(self, message: JsonObject, number: JsonValue, tasks: asyncio.TaskGroup) -> None:
        method, params = message["method"], message.get("params")
        is_request = "id" in message
        if not isinstance(method, str):
            self._refuse(number, INVALID_REQUEST, "a method is a text")
        elif params is not None and not is_object(params):
            if is_request:
                self._refuse(number, INVALID_PARAMS, f"{method}: params are an object")
        elif is_request:
            self._asked(Request(method, as_object(params), number), tasks)
        elif method == CANCEL_REQUEST:
            self._withdrawn(as_object(params).get("requestId"), tasks)
        elif (handler := self._notifications.get(method)) is not None:
            # A task: the handlers of the requests before it have begun by then.
            tasks.create_task(_run_notification(handler, as_object(params)))

    def _asked(self, request: Request, tasks: asyncio.TaskGroup) -> None:
        handler = self.requests.get(request.method)
        if request.id in self._handled:
            self._refuse(request.id, INVALID_REQUEST, f"the id {request.id!r} is in use")
        elif handler is None:
            self._refuse(request.id, METHOD_NOT_FOUND, f"there is no method {request.method!r:.80}")
        elif len(self._handled) >= MAX_REQUESTS:
            self._refuse(request.id, INTERNAL_ERROR, f"{MAX_REQUESTS} requests are in flight")
        else:
            task = tasks.create_task(self._handle(request, handler))
            self._handled[request.id] = request, task

    async def _handle(self, request: Request, handler: PeerHandler) -> None:
        try:
            reply = await handler(request)
        except AcpError as error:
            self._refuse(request.id, error.code, str(error), error.data)
        except asyncio.CancelledError:
            self._refuse(request.id, CANCELLED, "the request was cancelled")
        except Exception:  # noqa: BLE001 - a fault of ours: the peer is told of it, and the others are served on
            _log.exception("%s failed", request.method)
            self._refuse(request.id, INTERNAL_ERROR, "internal error; the server's log says more")
        else:
            result = reply.result if isinstance(reply, PeerReply) else reply
            self._send({"jsonrpc": "2.0", "id": request.id, "result": result})
            if isinstance(reply, PeerReply):
                reply.then()
        finally:
            _ = self._handled.pop(request.id, None)

    def _withdrawn(self, number: JsonValue, tasks: asyncio.TaskGroup) -> None:
        """End the handler of a request, once it has begun."""
        handled = self._handled.get(number) if isinstance(number, str | int) else None
        if handled is not None:
            tasks.create_task(_cancel(*handled))

    def _answered(self, number: JsonValue, message: JsonObject) -> None:
        answer = self._answers.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return  # it came too late, or was never asked for
        error = message.get("error")
        if error is None:
            answer.set_result(message.get("result"))
            return
        code = as_object(error).get("code")
        text = str(as_object(error).get("message"))
        answer.set_exception(AcpError(code if isinstance(code, int) else INTERNAL_ERROR, text))

    def _refuse(
        self, number: JsonValue, code: int, message: str, data: JsonObject | None = None
    ) -> None:
        error: dict[str, JsonValue] = {"code": code, "message": message}
        if data:
            error["data"] = data
        self._send({"jsonrpc": "2.0", "id": number, "error": error})


async def _cancel(request: Request, task: asyncio.Task[None]) -> None:
    if request.on_cancel is not None:
        request.on_cancel()
    else:
        _ = task.cancel()


async def _run_notification(handler: PeerNotificationHandler, params: JsonObject) -> None:
    try:
        handler(params)
    except AcpError as error:
        _log.info("a notification has no effect: %s", error)
