"""Writes Amazon's binary event stream, as a server would."""

import json
from binascii import crc32
from typing import Any


def frame(payload: Any, **headers: str) -> bytes:
    """Write one frame; underscores in the names of headers stand for dashes."""
    told = b"".join(
        bytes([len(name) + 1])
        + f":{name.replace('_', '-')}".encode()
        + b"\x07"
        + len(value.encode()).to_bytes(2, "big")
        + value.encode()
        for name, value in headers.items()
    )
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    size = 16 + len(told) + len(body)
    prelude = size.to_bytes(4, "big") + len(told).to_bytes(4, "big")
    head = prelude + crc32(prelude).to_bytes(4, "big") + told + body
    return head + crc32(head).to_bytes(4, "big")


def event(name: str, **payload: Any) -> bytes:
    """Write an event of Converse, with the padding that it always has."""
    told = {**payload, "p": "abcdef"}
    return frame(told, event_type=name, content_type="application/json", message_type="event")


def delta(index: int, **more: Any) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=more)


def called(index: int, name: str, call_id: str) -> bytes:
    start = {"toolUse": {"toolUseId": call_id, "name": name}}
    return event("contentBlockStart", contentBlockIndex=index, start=start)


def ended(reason: str, **usage: int) -> list[bytes]:
    counts = usage or {"inputTokens": 10, "outputTokens": 5}
    return [event("messageStop", stopReason=reason), event("metadata", usage=counts)]


def exception(kind: str, message: str) -> bytes:
    return frame({"message": message}, exception_type=kind, message_type="exception")
