"""Tools: what one is, how its arguments are checked, how calls run."""

from agent_core.tools.port import Tool, ToolContext, ToolResult, ToolSpec, error_result, text_result

__all__ = ["Tool", "ToolContext", "ToolResult", "ToolSpec", "error_result", "text_result"]
