"""Raw JSON-RPC over a link: frames, calls, and a record of everything that came, in order."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.lsp_links import Link

Json = dict[str, Any]
Handler = Callable[[Any, "Reply"], None]

USUAL_S = 10.0
METHOD_NOT_FOUND = -32601
HEAD_END = b"\r\n\r\n"


class ClientError(Exception):
    """The server answered a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message} {data if data is not None else ''}".rstrip())
        self.code = code
        self.message = message
        self.data = data


class ConnectionLostError(Exception):
    """The server went away while something was awaited from it."""


class Frames:
    """Cuts a byte stream into JSON-RPC messages; strict, because a server's framing is under test too."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None

    def feed(self, raw: bytes) -> list[bytes]:
        """Take bytes and give the bodies that are whole now.

        Raises:
            ValueError: The server wrote something that is no frame, such as a stray print.
        """
        self._buffer += raw
        bodies: list[bytes] = []
        while True:
            if self._wanted is None:
                end = self._buffer.find(HEAD_END)
                if end < 0:
                    return bodies
                self._wanted = self._length(bytes(self._buffer[:end]))
                del self._buffer[: end + len(HEAD_END)]
            if len(self._buffer) < self._wanted:
                return bodies
            bodies.append(bytes(self._buffer[: self._wanted]))
            del self._buffer[: self._wanted]
            self._wanted = None

    def _length(self, head: bytes) -> int:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name == b"Content-Length":
                return int(value)
        message = f"no Content-Length in the header {head[:200]!r}"
        raise ValueError(message)


def frame(message: object) -> bytes:
    """Encode one message with its header."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Reply:
    """The answer owed to one request of the server; keep it to answer late, drop it to never answer."""

    def __init__(self, request: Json, send: Callable[[Json], None]) -> None:
        self.request = request
        self._send = send

    def __call__(self, result: Any = None) -> None:
        """Answer with a result."""
        self._send({"jsonrpc": "2.0", "id": self.request["id"], "result": result})

    def error(self, code: int, message: str) -> None:
        """Answer with an error."""
        error = {"code": code, "message": message}
        self._send({"jsonrpc": "2.0", "id": self.request["id"], "error": error})


@dataclass(slots=True, kw_only=True)
class _Waiter:
    wanted: Callable[[Json], bool]
    found: asyncio.Future[Json | None]


class Call:
    """One request of the client, under way or answered."""

    def __init__(self, owner: "Connection", *, number: int, method: str) -> None:
        self.id = number
        self.method = method
        self.answer: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        self._owner = owner

    async def result(self, *, timeout_s: float = USUAL_S) -> Any:
        """Wait for the answer; the call stays under way when that takes too long.

        Raises:
            ClientError: The answer is an error.
            ConnectionLostError: No answer can come any more.
            TimeoutError: It has not come in time.
        """
        message = await self._owner.settled(self.answer, f"the answer to {self.method}", timeout_s)
        error = message.get("error")
        if error is not None:
            raise ClientError(error["code"], error["message"], error.get("data"))
        return message["result"]

    def cancel(self) -> None:
        """Ask the server to cancel the request; an answer still comes."""
        self._owner.notify("$/cancelRequest", {"id": self.id})


class Connection:
    """Speaks JSON-RPC with a server and remembers every message. Sending never waits."""

    def __init__(self) -> None:
        self.received: list[Json] = []
        """Every message of the server, in the order in which it came."""
        self.arrived_at: list[float] = []
        """When each came, by the monotonic clock."""
        self.complaints: list[str] = []
        """What the server did against the protocol; a test ends with asserting that there is none."""
        self.lost: str | None = None
        self._link: Link | None = None
        self._frames = Frames()
        self._calls: dict[int, Call] = {}
        self._waiters: list[_Waiter] = []
        self._made = 0

    def attach(self, link: Link) -> None:
        """Speak over this link from now on."""
        self._link = link

    @property
    def link(self) -> Link:
        """The link to the server."""
        assert self._link is not None
        return self._link

    def send_raw(self, raw: bytes) -> None:
        """Send bytes as they stand, well-formed or not."""
        self.link.write(raw)

    def send(self, message: object) -> None:
        """Send one message in a frame."""
        self.link.write(frame(message))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification; `params` is left out when None."""
        self.send({"jsonrpc": "2.0", "method": method, **_params(params)})

    def call(self, method: str, params: Any = None) -> Call:
        """Send a request and give the call without waiting for it."""
        self._made += 1
        call = Call(self, number=self._made, method=method)
        self._calls[call.id] = call
        if self.lost is not None:
            call.answer.set_result(None)
        self.send({"jsonrpc": "2.0", "id": call.id, "method": method, **_params(params)})
        return call

    async def request(self, method: str, params: Any = None, *, timeout_s: float = USUAL_S) -> Any:
        """Send a request and wait for its result.

        Raises:
            ClientError: The answer is an error.
            ConnectionLostError: The server went away.
            TimeoutError: The answer has not come in time.
        """
        return await self.call(method, params).result(timeout_s=timeout_s)

    async def wait_for(
        self, wanted: Callable[[Json], bool], *, timeout_s: float = USUAL_S, after: int = -1
    ) -> Json:
        """Give the first message that fits, of those that came already or the next to come.

        Args:
            after: Pass over the messages up to this index of `received`.
        """
        for message in self.received[after + 1 :]:
            if wanted(message):
                return message
        found: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(wanted=wanted, found=found)
        if self.lost is not None:
            found.set_result(None)
        self._waiters.append(waiter)
        try:
            return await self.settled(found, "a message", timeout_s)
        finally:
            self._waiters.remove(waiter)

    async def wait_method(
        self, method: str, *, timeout_s: float = USUAL_S, after: int = -1, **params: Any
    ) -> Json:
        """Give the first request or notification of this method whose params hold these values."""

        def wanted(message: Json) -> bool:
            held = message.get("params") or {}
            return message.get("method") == method and all(
                name in held and held[name] == value for name, value in params.items()
            )

        return await self.wait_for(wanted, timeout_s=timeout_s, after=after)

    def of(self, method: str) -> list[Json]:
        """Give the params of every request and notification of a method so far."""
        return [one.get("params") for one in self.received if one.get("method") == method]

    def index_of(self, message: Json) -> int:
        """Give the place of a message in the order of arrival."""
        return next(index for index, one in enumerate(self.received) if one is message)

    def answer_to(self, call: Call) -> Json | None:
        """Give the message that answered a call, or None while there is none."""
        return call.answer.result() if call.answer.done() else None

    async def settled(
        self, future: asyncio.Future[Json | None], what: str, timeout_s: float
    ) -> Json:
        """Wait for a message that the connection will hand over, and say what happened when it does not."""
        await asyncio.wait({future}, timeout=timeout_s)
        if not future.done():
            message = f"{what} has not come within {timeout_s} s; {self._recently()}"
            raise TimeoutError(message)
        found = future.result()
        if found is None:
            message = f"{self.lost} before {what} came; {self._recently()}"
            raise ConnectionLostError(message)
        return found

    def bytes_came(self, raw: bytes) -> None:
        """Take bytes from the link."""
        try:
            for body in self._frames.feed(raw):
                self._message_came(json.loads(body))
        except ValueError as error:
            self.complaints.append(f"unreadable output: {error}")
            self.link_ended("the server wrote something that is no message")

    def link_ended(self, why: str) -> None:
        """Fail everything that still waits."""
        if self.lost is not None:
            return
        self.lost = why
        pending = [call.answer for call in self._calls.values()]
        for future in (*pending, *(waiter.found for waiter in self._waiters)):
            if not future.done():
                future.set_result(None)

    def request_came(self, message: Json, reply: Reply) -> None:
        """Answer a request of the server; a connection knows none."""
        reply.error(METHOD_NOT_FOUND, f"unknown method {message['method']}")

    def notification_came(self, message: Json) -> None:
        """Take a notification; a connection only records it."""

    def _message_came(self, message: Json) -> None:
        self.received.append(message)
        self.arrived_at.append(time.monotonic())
        if "method" not in message:
            self._answer_came(message)
        elif "id" in message:
            self.request_came(message, Reply(message, self.send))
        else:
            self.notification_came(message)
        for waiter in self._waiters:
            if not waiter.found.done() and waiter.wanted(message):
                waiter.found.set_result(message)

    def _answer_came(self, message: Json) -> None:
        number = message.get("id")
        call = self._calls.get(number) if isinstance(number, int) else None
        if call is None:
            # Answers to raw bytes have ids of the test's own making, or null.
            return
        if call.answer.done():
            self.complaints.append(f"request {number} ({call.method}) was answered twice")
            return
        call.answer.set_result(message)

    def _recently(self) -> str:
        last = [one.get("method", f"answer {one.get('id')}") for one in self.received[-8:]]
        return f"last came {last}, {len(self.received)} messages in all"


def _params(params: Any) -> Mapping[str, Any]:
    return {} if params is None else {"params": params}
