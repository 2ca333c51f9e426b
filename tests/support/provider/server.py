"""The provider itself: answers model requests from the script and lets a test look in and steer."""

import asyncio
import json
import time
from collections.abc import Sequence

from tests.support.provider import delivery
from tests.support.provider.asked import Asked, api_of, read_request
from tests.support.provider.http import (
    LAST_CHUNK,
    HttpRequest,
    chunked,
    head,
    read_http_request,
    whole,
)
from tests.support.provider.journal import Entry, Journal
from tests.support.provider.script import Json, Script, ScriptError, Turn, read_script
from tests.support.provider.shapes import default_error, render

HEAD_LIMIT_BYTES = 1 << 20
WAIT_LIMIT_S = 60.0


class ClientGoneError(Exception):
    """The client closed the connection before its answer was whole."""


class ConnectionCutError(Exception):
    """The script wanted the connection dropped here."""


class Provider:
    """One scripted provider, many connections."""

    def __init__(self, turns: Sequence[Turn], *, models: Sequence[str] = ("m",)) -> None:
        self._script = Script(turns)
        self._models = models
        self._journal = Journal()
        self._asked = 0

    async def listen(self, port: int) -> asyncio.Server:
        """Open the loopback port; 0 takes a free one."""
        return await asyncio.start_server(
            self._serve, host="127.0.0.1", port=port, limit=HEAD_LIMIT_BYTES
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_http_request(reader)) is not None:
                if request.path.startswith("/_ctl/"):
                    writer.write(await self._control(request))
                    await writer.drain()
                else:
                    await self._answer(request, reader=reader, writer=writer)
                if not request.keeps_alive():
                    break
        except (ConnectionError, ClientGoneError):
            pass
        except ConnectionCutError:
            await _flush(writer)
        finally:
            writer.close()

    async def _answer(
        self, request: HttpRequest, *, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        entry = Entry(request=request, body=_decoded(request.body))
        self._journal.add(entry)
        try:
            await self._respond(entry, reader=reader, writer=writer)
            entry.finished = True
        except ConnectionCutError:
            entry.finished = True
            raise
        except (ConnectionError, ClientGoneError):
            entry.client_gone = True
            raise
        finally:
            entry.ended_at = time.monotonic()
            self._journal.touch()

    async def _respond(
        self, entry: Entry, *, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request = entry.request
        api = api_of(request.path)
        if request.method == "GET" and request.path.endswith("/models"):
            models = [{"id": name, "object": "model"} for name in self._models]
            listed = {"object": "list", "data": models}
            await _send(writer, whole(200, listed), entry)
            return
        if api is None or request.method != "POST" or not isinstance(entry.body, dict):
            refusal = {"error": {"message": f"no API at {request.method} {request.path}"}}
            await _send(writer, whole(404, refusal), entry)
            return
        self._asked += 1
        asked = read_request(entry.body, api=api, number=self._asked, size=len(request.body))
        turn = self._choose(entry.body, asked)
        await _pause(reader, turn.delay_s)
        if turn.status != 200 or turn.body is not None:
            body = default_error(turn.status, asked) if turn.body is None else turn.body
            await _send(writer, whole(turn.status, body, turn.headers), entry)
            return
        await _stream(turn, asked, reader=reader, writer=writer, entry=entry)

    def _choose(self, body: Json, asked: Asked) -> Turn:
        """Give the turn to serve; what cannot be served is a refusal that no client retries."""
        if body.get("stream") is not True:
            return _refusal('this provider only streams: send "stream": true', asked)
        turn = self._script.take(asked.heard)
        if turn is None:
            return _refusal(f"the script has no turn for request {asked.number}", asked)
        return turn

    async def _control(self, request: HttpRequest) -> bytes:
        match request.method, request.path:
            case "GET", "/_ctl/log":
                since = int(request.query.get("since", "0"))
                with_body = request.query.get("bodies") != "0"
                entries = self._journal.entries[since:]
                return whole(200, [entry.as_json(with_body=with_body) for entry in entries])
            case "GET", "/_ctl/wait":
                return await self._wait(request)
            case "POST", "/_ctl/script":
                try:
                    self._script = Script(read_script(_decoded(request.body)))
                except (ScriptError, TypeError, ValueError) as error:
                    return whole(400, {"error": str(error)})
                return whole(200, {})
            case _:
                return whole(404, {"error": f"no control at {request.method} {request.path}"})

    async def _wait(self, request: HttpRequest) -> bytes:
        wanted = {
            name: int(request.query[name])
            for name in ("requests", "finished", "gone")
            if name in request.query
        }
        reached = await self._journal.until(
            lambda counts: all(counts[name] >= least for name, least in wanted.items()),
            timeout_s=min(float(request.query.get("timeout", "10")), WAIT_LIMIT_S),
        )
        return whole(200, {"reached": reached, **self._journal.counts()})


def _refusal(message: str, asked: Asked) -> Turn:
    return Turn(status=400, body=default_error(400, asked, message))


def _decoded(body: bytes) -> object:
    """Give the body as JSON, or as text when it is none."""
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode("utf-8", "replace")


async def _stream(
    turn: Turn,
    asked: Asked,
    *,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    entry: Entry,
) -> None:
    kind = "application/x-ndjson" if asked.api == "ollama" else "text/event-stream; charset=utf-8"
    own = {"content-type": kind, "transfer-encoding": "chunked"}
    writer.write(head(200, {**own, **turn.headers}))
    for step in delivery.plan(turn, render(turn, asked)):
        match step:
            case delivery.Send(chunks):
                await _send(writer, chunked(chunks), entry)
            case delivery.Pause(seconds):
                await _flush(writer)
                await _pause(reader, seconds)
            case delivery.Cut():
                raise ConnectionCutError
    await _send(writer, LAST_CHUNK, entry)


async def _send(writer: asyncio.StreamWriter, raw: bytes, entry: Entry) -> None:
    writer.write(raw)
    entry.sent_bytes += len(raw)
    await writer.drain()


async def _flush(writer: asyncio.StreamWriter) -> None:
    """Wait until the kernel has all that was written."""
    transport = writer.transport
    low, high = transport.get_write_buffer_limits()
    transport.set_write_buffer_limits(0)
    try:
        await writer.drain()
    finally:
        transport.set_write_buffer_limits(high, low)


async def _pause(reader: asyncio.StreamReader, seconds: float | None) -> None:
    """Wait, but notice at once when the client goes away.

    Raises:
        ClientGoneError: The client closed its end; it sends nothing else before its answer is whole.
    """
    if seconds == 0:
        return
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return
    raise ClientGoneError
