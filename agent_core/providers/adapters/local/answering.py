"""One request to the model of this machine and its answer, over one connection."""

import math
from contextlib import suppress

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread

from agent_core.kernel import JsonObject, json
from agent_core.providers.adapters.local.facts import MODEL_ID
from agent_core.providers.adapters.local.grammar import local_body
from agent_core.providers.adapters.local.rewriting import DONE, Rewriter
from agent_core.providers.adapters.local.runtime import Runtime, Stop

PATH = "/v1/chat/completions"
HEAD_BYTES = 64 * 1024
BODY_BYTES = 32 * 1024 * 1024
SIGN_OF_LIFE = b": \n\n"
PROGRESS = "prompt_progress"
BAD_REQUEST = 400
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class NotARequest(Exception):
    """What came is nothing to answer."""


async def read_request(stream: anyio.abc.ByteStream) -> JsonObject:
    """Read the body of a request; refuses every other address.

    Raises:
        NotARequest: It is none, or the connection broke.
    """
    raw = bytearray()
    try:
        while (end := raw.find(b"\r\n\r\n")) < 0:
            raw += await stream.receive()
            if len(raw) > HEAD_BYTES:
                raise NotARequest
        head = raw[:end].decode("latin-1").lower().split("\r\n")
        lengths = [line.partition(":")[2] for line in head if line.startswith("content-length:")]
        length = int(lengths[0]) if lengths else 0
        if not head[0].startswith(f"post {PATH} ") or length > BODY_BYTES:
            await stream.send(_head(404, "text/plain"))
            raise NotARequest
        while len(raw) < end + 4 + length:
            raw += await stream.receive()
        return json.as_object(json.decode(bytes(raw[end + 4 :])))
    except (*GONE, ValueError):
        raise NotARequest from None


async def answer_request(
    stream: anyio.abc.ByteStream, body: JsonObject, *, runtime: Runtime, turns: anyio.Lock
) -> None:
    """Answer one request when its turn comes; a client that leaves ends the work on it.

    Returns when the runtime is free for the next.
    """
    stop = Stop()
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            with suppress(*GONE):
                while True:
                    _ = await stream.receive()
            stop.ask()
            group.cancel_scope.cancel()

        group.start_soon(watch)
        try:
            async with turns:
                await _told(stream, body, runtime=runtime, stop=stop)
        finally:
            stop.obeyed()
        group.cancel_scope.cancel()


async def _told(
    stream: anyio.abc.ByteStream, body: JsonObject, *, runtime: Runtime, stop: Stop
) -> None:
    # Never full: an answer has at most as many pieces as the window has tokens.
    told, pieces = anyio.create_memory_object_stream[JsonObject](math.inf)
    asked = {**local_body(body), "stream": True, "return_progress": True}

    def tell(piece: JsonObject) -> bool:
        try:
            anyio.from_thread.run_sync(told.send_nowait, piece)
        except anyio.BrokenResourceError:
            # Nobody listens any more.
            return True
        return stop.is_asked

    async def work() -> None:
        with told:
            # Not abandoned when the client leaves: it has to come back before the next may begin.
            await anyio.to_thread.run_sync(runtime.handle_chat_completions, asked, tell)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        relay = _Relay(stream, with_tools=bool(body.get("tools")))
        with pieces:
            async for piece in pieces:
                with suppress(*GONE):
                    # Who has gone is noticed by the watch, which ends the work too.
                    await relay.send(piece)
        with suppress(*GONE):
            await relay.end()


class _Relay:
    """Sends the pieces of one answer on."""

    def __init__(self, stream: anyio.abc.ByteStream, *, with_tools: bool) -> None:
        self._stream = stream
        self._rewriter = Rewriter() if with_tools else None
        self._begun = False
        self._failed = False

    async def send(self, piece: JsonObject) -> None:
        error = json.as_object(piece.get("error"))
        if error and not self._begun:
            status = error.get("code")
            head = _head(status if isinstance(status, int) else BAD_REQUEST, "application/json")
            self._failed = True
            await self._stream.send(head + json.encode(piece))
            return
        head = b"" if self._begun else _head(200, "text/event-stream")
        self._begun = True
        await self._stream.send(head + self._events(piece))

    async def end(self) -> None:
        # An answer that never began is none: the connection just closes, which is an error.
        if self._begun and not self._failed:
            await self._stream.send(f"data: {DONE}\n\n".encode())

    def _events(self, piece: JsonObject) -> bytes:
        if PROGRESS in piece:
            return SIGN_OF_LIFE
        named: JsonObject = {**piece, "model": MODEL_ID} if "model" in piece else piece
        made = [named] if self._rewriter is None else self._rewriter.chunks(named)
        # What gives nothing to tell is still a sign of life.
        return b"".join(b"data: " + json.encode(one) + b"\n\n" for one in made) or SIGN_OF_LIFE


def _head(status: int, kind: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode()
