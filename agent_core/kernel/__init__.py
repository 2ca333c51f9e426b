"""Foundation of all other packages (errors, ids, the clock, JSON)."""

from agent_core.kernel.clock import Clock, SystemClock, parse_rfc3339, rfc3339
from agent_core.kernel.ids import (
    EntryId,
    ItemId,
    MessageId,
    QueueId,
    RunId,
    SessionId,
    ToolCallId,
    TurnId,
    new_entry_id,
    uuid7,
)
from agent_core.kernel.json import JsonObject, JsonScalar, JsonValue

__all__ = [
    "Clock",
    "EntryId",
    "ItemId",
    "JsonObject",
    "JsonScalar",
    "JsonValue",
    "MessageId",
    "QueueId",
    "RunId",
    "SessionId",
    "SystemClock",
    "ToolCallId",
    "TurnId",
    "new_entry_id",
    "parse_rfc3339",
    "rfc3339",
    "uuid7",
]
