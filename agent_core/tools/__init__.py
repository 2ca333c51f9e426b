"""Tools: their declaration, the check of their arguments, the execution of calls."""

from agent_core.tools.port import (
    CheckedCall,
    Tool,
    ToolContext,
    ToolResult,
    ToolSpec,
    error_result,
    text_result,
)

__all__ = [
    "CheckedCall",
    "Tool",
    "ToolContext",
    "ToolResult",
    "ToolSpec",
    "error_result",
    "text_result",
]
