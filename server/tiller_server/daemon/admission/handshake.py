"""The first line of a client, with its identity and its environment.

`{"v":1,"token":"…","cwd":"…","pid":123,"version":"0.1.0","env":{…}}` and a newline; LSP follows at once.
With `"ask"` it is a query to the daemon itself, answered with one line; `"ask": "run"` is a `tiller run` (`daemon/runs.py`),
`"ask": "acp"` a client of the Agent Client Protocol (`daemon/clients.py`).
"""

import asyncio
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

from tiller_server.daemon.errors import ClientRefused, HandshakeMissing
from tiller_server.lsp.transport.stdio import InputStream

SPOKEN: Final = 1
MAX_HANDSHAKE_BYTES: Final = 1024 * 1024
"""An environment is some kilobytes; Linux lets it be a few megabytes, which nobody has."""
HANDSHAKE_S: Final = 5.0
_READ_BYTES: Final = 64 * 1024
_HTTP: Final = re.compile(rb"[A-Z]{3,10} ")

DaemonCommand = Literal["status", "metrics", "stop", "stopNow", "run", "acp"]
ASKS: Final[Mapping[str, DaemonCommand]] = {
    "status": "status",
    "metrics": "metrics",
    "stop": "stop",
    "stopNow": "stopNow",
    "run": "run",
    "acp": "acp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Handshake:
    """First line of a client."""

    v: int
    token: str = field(repr=False)
    cwd: Path = Path("/")
    pid: int = 0
    version: str = ""
    env: Mapping[str, str] | None = field(default=None, repr=False)
    """None: it did not say."""
    ask: DaemonCommand | None = None
    client: str = ""
    """Id of the client process, the same when it connects again."""
    newest: int = 1
    """Newest version of the protocol of `ask` that is served to it."""


async def read_handshake(
    reader: InputStream, *, within_s: float = HANDSHAKE_S
) -> tuple[bytes, bytes]:
    """Read the first line; gives it and what came after it.

    Raises:
        NoHello: It is no such line, too long, or did not come in time.
    """
    read = bytearray()
    try:
        async with asyncio.timeout(within_s):
            while (end := read.find(b"\n")) < 0:
                data = await reader.read(_READ_BYTES)
                if not data:
                    message = "left before its hello line"
                    raise HandshakeMissing(message)
                read += data
                check_beginning(read)
    except TimeoutError as error:
        message = f"said nothing whole for {within_s:g} s"
        raise HandshakeMissing(message) from error
    except OSError as error:
        message = f"broke off ({error.strerror or type(error).__name__})"
        raise HandshakeMissing(message) from error
    check_beginning(read[: end + 1])
    return bytes(read[:end]), bytes(read[end + 1 :])


def check_beginning(read: bytes | bytearray) -> None:
    """Refuse what cannot become a hello any more. Pure.

    Raises:
        NoHello: It speaks HTTP, something else, or far too much.
    """
    if _HTTP.match(read):
        message = "speaks HTTP, which is not served here"
        raise HandshakeMissing(message)
    if read and not read.startswith(b"{"):
        message = "does not begin with a hello line"
        raise HandshakeMissing(message)
    if len(read) > MAX_HANDSHAKE_BYTES + _READ_BYTES or (
        b"\n" in read and read.index(b"\n") > MAX_HANDSHAKE_BYTES
    ):
        message = f"sent a first line of more than {MAX_HANDSHAKE_BYTES} bytes"
        raise HandshakeMissing(message)


def parse_handshake(line: bytes) -> Handshake:
    """Read a hello line. Pure.

    Raises:
        Refused: It is no JSON object, or lacks what every client says.
    """
    try:
        given: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ClientRefused("hello", "the first line is no JSON") from error
    if not isinstance(given, dict):
        raise ClientRefused("hello", "the first line is no JSON object")
    fields = cast("dict[str, object]", given)
    v, token = fields.get("v"), fields.get("token")
    if not isinstance(v, int) or isinstance(v, bool) or not isinstance(token, str):
        raise ClientRefused("hello", "the first line has no `v` and `token`")
    return Handshake(
        v=v,
        token=token,
        cwd=Path(_text(fields.get("cwd")) or "/"),
        pid=_number(fields.get("pid")),
        version=_text(fields.get("version")),
        env=_variables(fields.get("env")),
        ask=ASKS.get(_text(fields.get("ask"))),
        client=_text(fields.get("client")),
        newest=_number(fields.get("newest")) or 1,
    )


def check_token(handshake: Handshake, *, token: str) -> None:
    """Hold the token of a client against the daemon's, in a time that tells nothing of it.

    Raises:
        Refused: It is another one.
    """
    if not hmac.compare_digest(handshake.token.strip().encode("utf-8", "replace"), token.encode()):
        raise ClientRefused(
            "token", "the token is not the one of this daemon; read daemon.token anew"
        )


def is_newer(version: str, *, than: str) -> bool:
    """Return whether one version is later than another; a text without digits is later than none. Pure."""
    return _numbers(version) > _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", version)[:4])


def _text(value: object) -> str:
    return value if isinstance(value, str) and "\0" not in value else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _variables(value: object) -> Mapping[str, str] | None:
    """Keep what can be a variable of a process: the rest would only make every command fail."""
    if not isinstance(value, dict):
        return None
    return {
        name: text
        for name, text in cast("dict[str, object]", value).items()
        if isinstance(text, str) and name and "=" not in name and "\0" not in name + text
    }
