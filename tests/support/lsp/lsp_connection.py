"""Raw JSON-RPC over a link: frames, calls, and a record of everything that came, in order."""

import asyncio
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from tests.support.lsp.lsp_links import Link
from tests.support.lsp.lsp_record import USUAL_S, Json, Record

Handler = Callable[[Any, "Reply"], None]

METHOD_NOT_FOUND = -32601
HEAD_END = b"\r\n\r\n"


class ClientError(Exception):
    """The server answered a request with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code}: {message} {data if data is not None else ''}".rstrip())
        self.code = code
        self.message = message
        self.data: Any = data


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
        message = await self._owner.settled(
            self.answer, f"the answer to {self.method}", timeout_s=timeout_s
        )
        error = message.get("error")
        if error is not None:
            raise ClientError(error["code"], error["message"], error.get("data"))
        return message["result"]

    def cancel(self) -> None:
        """Ask the server to cancel the request; an answer still comes."""
        self._owner.notify("$/cancelRequest", {"id": self.id})

    @property
    def message(self) -> Json | None:
        """The message that answered, for its place in the order of arrival; None while there is none."""
        return self.answer.result() if self.answer.done() else None


class Connection(Record):
    """Speaks JSON-RPC with a server and remembers every message. Sending never waits.

    Args:
        on_request: Answers the requests of the server.
        on_notification: Takes its notifications.
    """

    def __init__(
        self,
        *,
        on_request: Callable[[Json, Reply], None],
        on_notification: Callable[[Json], None],
    ) -> None:
        super().__init__()
        self.patience_s = USUAL_S
        """How long a request waits for its answer when it does not say so itself."""
        self._on_request = on_request
        self._on_notification = on_notification
        self._link: Link | None = None
        self._frames = Frames()
        self._calls: dict[int, Call] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.kill()

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
        call = Call(self, number=len(self._calls) + 1, method=method)
        self._calls[call.id] = call
        if self.lost is not None:
            call.answer.set_result(None)
        self.send({"jsonrpc": "2.0", "id": call.id, "method": method, **_params(params)})
        return call

    async def request(
        self, method: str, params: Any = None, *, timeout_s: float | None = None
    ) -> Any:
        """Send a request and wait for its result.

        Raises:
            ClientError: The answer is an error.
            ConnectionLostError: The server went away.
            TimeoutError: The answer has not come in time.
        """
        limit = self.patience_s if timeout_s is None else timeout_s
        return await self.call(method, params).result(timeout_s=limit)

    def stop_reading(self) -> None:
        """Read nothing more, so that the pipe fills up and the server feels it."""
        self.link.stop_reading()

    def resume_reading(self) -> None:
        """Read again, first what has piled up."""
        self.link.resume_reading()

    async def kill(self) -> None:
        """End the connection at once, and with it a process that was spawned."""
        await self.link.close()

    def bytes_came(self, raw: bytes) -> None:
        """Take bytes from the link."""
        try:
            messages = [json.loads(body) for body in self._frames.feed(raw)]
        except ValueError as error:
            self.complaints.append(f"unreadable output: {error}")
            self.link_ended("the server wrote something that is no message")
            return
        for message in messages:
            if isinstance(message, dict):
                self._message_came(message)
            else:
                self.complaints.append(f"not a message: {message!r}")

    def link_ended(self, why: str) -> None:
        """Fail everything that still waits."""
        if self.lost is not None:
            return
        self._end(why)
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_result(None)

    def _message_came(self, message: Json) -> None:
        self._keep(message)
        if "method" not in message:
            self._answer_came(message)
        elif "id" in message:
            self._on_request(message, Reply(message, self.send))
        else:
            self._on_notification(message)
        self._wake(message)

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


def _params(params: Any) -> Mapping[str, Any]:
    return {} if params is None else {"params": params}
