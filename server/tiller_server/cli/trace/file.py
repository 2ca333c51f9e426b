"""The file of a trace: a header, then one JSON line for each message, in the order in which they passed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from agent_core.kernel import JsonValue
from agent_core.kernel.json import decode, encode
from agent_core.kernel.values import Value

FORMAT: Final = 1
Side = Literal["client", "server"]


class TraceInvalid(Exception):
    """The file is no trace; the text says where and why."""


class TraceMessage(Value, frozen=True, kw_only=True):
    """A message that passed."""

    at_ms: float
    """Since the beginning of the recording."""
    side: Side
    """Side that sent the message."""
    message: Mapping[str, JsonValue]

    @property
    def method(self) -> str | None:
        """The method; None: it is an answer."""
        method = self.message.get("method")
        return method if isinstance(method, str) else None

    @property
    def id(self) -> str | int | None:
        """The id of a request or an answer."""
        given = self.message.get("id")
        return given if isinstance(given, str | int) else None


def head_line(server: tuple[str, ...], *, at: str) -> bytes:
    """Write the first line."""
    return encode({"tiller": "trace", "v": FORMAT, "at": at, "server": list(server)}) + b"\n"


def line_of(said: TraceMessage) -> bytes:
    """Write a message."""
    fields: dict[str, JsonValue] = {
        "atMs": round(said.at_ms, 3),
        "from": said.side,
        "message": dict(said.message),
    }
    return encode(fields) + b"\n"


def broken_line(side: Side, why: str, *, at_ms: float) -> bytes:
    """Write that the messages of a side cannot be told apart any more."""
    return encode({"atMs": round(at_ms, 3), "from": side, "broken": why}) + b"\n"


def read_trace(file: Path) -> tuple[TraceMessage, ...]:
    """Read a trace. Reads the disk.

    Raises:
        OSError: It cannot be read.
        TraceInvalid: It is none.
    """
    lines = file.read_bytes().splitlines()
    head: Mapping[str, JsonValue] = _object(lines[0], 1) if lines else {}
    if head.get("tiller") != "trace" or head.get("v") != FORMAT:
        message = f"{file} is no trace of version {FORMAT}; `tiller trace record` makes one"
        raise TraceInvalid(message)
    found: list[TraceMessage] = []
    for number, line in enumerate(lines[1:], start=2):
        one = _object(line, number)
        message, at_ms, side = one.get("message"), one.get("atMs"), one.get("from")
        if not isinstance(message, Mapping) or not isinstance(at_ms, int | float):
            continue  # where the recording could not follow
        found.append(
            TraceMessage(
                at_ms=at_ms, side="client" if side == "client" else "server", message=message
            )
        )
    return tuple(found)


def _object(line: bytes, number: int) -> Mapping[str, JsonValue]:
    try:
        one = decode(line.decode())
    except ValueError as error:
        message = f"line {number} is no JSON: {error}"
        raise TraceInvalid(message) from error
    if not isinstance(one, Mapping):
        message = f"line {number} is no object"
        raise TraceInvalid(message)
    return one
