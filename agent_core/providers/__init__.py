"""Models: the port, what is known of them, and how to find one."""

from agent_core.kernel.package_names import deprecated_names
from agent_core.providers.model import (
    CacheRetention,
    Model,
    ModelInfo,
    ModelRequest,
    Prices,
    StreamEvent,
    StreamFinished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolDeclaration,
    UsageUpdate,
    WireApi,
)

__all__ = [
    "CacheRetention",
    "Model",
    "ModelInfo",
    "ModelRequest",
    "Prices",
    "StreamEvent",
    "StreamFinished",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolDeclaration",
    "UsageUpdate",
    "WireApi",
]

__getattr__ = deprecated_names(
    __name__,
    {
        "Answer": "StreamFinished",
        "Api": "WireApi",
        "ModelFacts": "ModelInfo",
        "Part": "StreamEvent",
    },
)
