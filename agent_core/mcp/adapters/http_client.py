"""The client of HTTP that servers are reached with. It is imported only when one is: it needs a large library."""

from collections.abc import AsyncIterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from anyio import lowlevel
from httpx2 import AsyncByteStream, AsyncClient, Response, StreamError, SyncByteStream, Timeout

from agent_core.mcp.adapters.stdio import MESSAGE_BYTES
from agent_core.mcp.definitions import Http
from agent_core.mcp.port import ServerFailed

CONNECT_S: Final = 10.0
STILL_S: Final = 600.0
"""How long a stream may be silent; calls have a limit of their own."""
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSED: Final[Mapping[int, str]] = {
    401: 'it wants to know who asks (HTTP 401): give it an "Authorization" among its "headers"',
    403: "it refuses (HTTP 403): what its headers say is not enough",
}
FAULTS: Final = 400
ENCODED: Final = frozenset({"", "identity"})


class HttpFailureRecorder:
    """Recorder of the last HTTP failure, to explain it."""

    def __init__(self) -> None:
        self.why = ""

    async def check(self, response: Response) -> None:
        """Bound what comes in, and remember what the library does not tell."""
        status = response.status_code
        self.why = REFUSED.get(status, f"it answered with HTTP {status}")
        if status < FAULTS:
            self.why = ""
        if response.headers.get("content-encoding", "").lower() not in ENCODED:
            message = "it packs its answers although it was asked not to"
            raise ServerFailed(message)
        # Of a stream every event is bounded by the library.
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = Bounded(response.stream)
        await lowlevel.checkpoint()


class Bounded(AsyncByteStream):
    """A body that ends with an error when it is too long."""

    def __init__(self, stream: SyncByteStream | AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        """Return the body."""
        size = 0
        assert isinstance(self._stream, AsyncByteStream)  # noqa: S101 - the client is asynchronous
        async for chunk in self._stream:
            size += len(chunk)
            if size > MESSAGE_BYTES:
                message = f"an answer of more than {MESSAGE_BYTES} bytes"
                raise StreamError(message)
            yield chunk

    async def aclose(self) -> None:  # pyright: ignore[reportImplicitOverride] - as above
        """Close the connection."""
        if isinstance(self._stream, AsyncByteStream):
            await self._stream.aclose()


def make_client(way: Http, seen: HttpFailureRecorder) -> AsyncClient:
    """Make a client for one server. Blocking: it reads the certificates of the machine."""
    # A packed answer could be far larger than what is counted.
    headers = {"accept-encoding": "identity", **way.headers}
    # What runs on this machine is never asked through a proxy.
    here = urlsplit(way.url).hostname in LOOPBACK
    return AsyncClient(
        headers=headers,
        timeout=Timeout(CONNECT_S, read=STILL_S),
        trust_env=not here,
        event_hooks={"response": [seen.check]},
    )
