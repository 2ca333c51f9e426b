"""Models: the port, what is known of them, and how to find one."""

from agent_core.providers.model import (
    Answer,
    Api,
    CacheRetention,
    Model,
    ModelFacts,
    ModelRequest,
    Part,
    Prices,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolDeclaration,
    UsageUpdate,
)

__all__ = [
    "Answer",
    "Api",
    "CacheRetention",
    "Model",
    "ModelFacts",
    "ModelRequest",
    "Part",
    "Prices",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolCallStart",
    "ToolDeclaration",
    "UsageUpdate",
]
