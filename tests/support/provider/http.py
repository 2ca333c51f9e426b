"""The little of HTTP/1.1 that the provider speaks: requests with bodies, plain and chunked responses."""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

MASKED = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request, read whole."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    head_at: float
    """When its head had arrived, by the monotonic clock."""

    def keeps_alive(self) -> bool:
        """Tell whether the client may send another request on the connection."""
        return self.headers.get("connection", "").lower() != "close"

    def masked_headers(self) -> dict[str, str]:
        """Give the headers with every credential replaced by its length."""
        return {
            name: f"<{len(value)} characters>" if name in MASKED else value
            for name, value in self.headers.items()
        }


async def read_http_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Read the next request; None when the client has gone or speaks something else."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        head_at = time.monotonic()
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None
    address = urlsplit(target)
    return HttpRequest(
        method=method,
        path=address.path,
        query={name: values[-1] for name, values in parse_qs(address.query).items()},
        headers=headers,
        body=body,
        head_at=head_at,
    )


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "chunked" not in headers.get("transfer-encoding", "").lower():
        return await reader.readexactly(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return b"".join(parts)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Encode a status line with headers."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unnamed"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunked(chunks: Iterable[bytes]) -> bytes:
    """Encode parts of a body, one HTTP chunk for each."""
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk)


LAST_CHUNK = b"0\r\n\r\n"


def whole(status: int, body: object, headers: Mapping[str, str] | None = None) -> bytes:
    """Encode a response that is not a stream: JSON, or a string as it stands."""
    is_text = isinstance(body, str)
    raw = body.encode() if is_text else json.dumps(body, ensure_ascii=False).encode("utf-8")
    kind = "text/plain; charset=utf-8" if is_text else "application/json"
    own = {"content-type": kind, "content-length": str(len(raw))}
    return head(status, {**own, **(headers or {})}) + raw
