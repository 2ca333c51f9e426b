"""Ids: opaque strings, each kind with a type of its own."""

import os
import secrets
from collections.abc import Container
from contextvars import ContextVar
from typing import Final, NewType

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)
TurnId = NewType("TurnId", str)
ItemId = NewType("ItemId", str)
"""A message, thought or tool call inside a run."""
EntryId = NewType("EntryId", str)
ToolCallId = NewType("ToolCallId", str)
"""Minted by the model's provider; unique within one assistant message only."""
MessageId = NewType("MessageId", str)
"""Minted by the client: makes a prompt idempotent."""
QueueId = NewType("QueueId", str)

ENTRY_ID_DRAWS = 100

_RUN: Final[ContextVar[tuple[RunId, str] | None]] = ContextVar("tiller_run", default=None)


def mark_run(run: RunId, trace: str = "") -> None:
    """Note for the log which run the current task works for, and in which trace; tasks that it starts inherit it."""
    _RUN.set((run, trace))


def marked_run() -> tuple[RunId, str] | None:
    """Return the run that the current task or thread works for and its trace, which may be empty; None: no run."""
    return _RUN.get()


def call_item(answer: str, number: int) -> ItemId:
    """Return the item of a tool call, live and stored.

    Args:
        answer: Item of the answer that calls the tool, which is the id of its entry.
        number: Number of the call among those of the answer, 0 for the first.
    """
    return ItemId(f"{answer}:c{number}")


def uuid7(at_ms: int) -> str:
    """Make a UUIDv7: sorts by time, 74 random bits.

    Args:
        at_ms: Unix time in milliseconds, from the caller's clock.
    """
    raw = bytearray(at_ms.to_bytes(6, "big") + os.urandom(10))
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_entry_id(taken: Container[object], *, at_ms: int) -> EntryId:
    """Draw the short id of a session entry (8 hex digits), a whole UUID when unlucky."""
    for _ in range(ENTRY_ID_DRAWS):
        drawn = secrets.token_hex(4)
        if drawn not in taken:
            return EntryId(drawn)
    return EntryId(uuid7(at_ms))
