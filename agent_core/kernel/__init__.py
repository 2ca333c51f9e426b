"""Foundation of all other packages (errors, ids, the clock, JSON)."""

from typing import TYPE_CHECKING

from agent_core.kernel.package_names import lazy_names

if TYPE_CHECKING:
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
        call_item,
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
    "call_item",
    "new_entry_id",
    "parse_rfc3339",
    "rfc3339",
    "uuid7",
]

__getattr__ = lazy_names(
    __name__,
    {
        "clock": ("Clock", "SystemClock", "parse_rfc3339", "rfc3339"),
        "json": ("JsonObject", "JsonScalar", "JsonValue"),
        "ids": (
            "EntryId",
            "ItemId",
            "MessageId",
            "QueueId",
            "RunId",
            "SessionId",
            "ToolCallId",
            "TurnId",
            "call_item",
            "new_entry_id",
            "uuid7",
        ),
    },
)
