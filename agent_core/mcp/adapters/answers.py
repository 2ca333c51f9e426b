"""Turns what the library gives into plain values: pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from agent_core.kernel import JsonObject, JsonValue
from agent_core.mcp.declarations import Declared
from agent_core.mcp.port import McpContent, McpToolResponse

if TYPE_CHECKING:
    import mcp_types


def declared_of(tool: "mcp_types.Tool") -> Declared:
    """Return a declaration with its schemas untouched."""
    marks = tool.annotations
    return Declared(
        name=tool.name,
        description=tool.description or "",
        parameters=_json(tool.input_schema),
        title=tool.title,
        output=None if tool.output_schema is None else _json(tool.output_schema),
        annotations=None
        if marks is None
        else _json(marks.model_dump(by_alias=True, mode="json", exclude_none=True)),
    )


def answer_of(result: "mcp_types.CallToolResult") -> McpToolResponse:
    """Return what a tool gave."""
    structured = cast("JsonValue", result.structured_content)
    return McpToolResponse(
        parts=tuple(_part(block) for block in result.content),
        structured=structured,
        is_error=result.is_error,
    )


def _part(block: "mcp_types.ContentBlock") -> McpContent:
    match block.type:
        case "text":
            return McpContent(kind="text", text=block.text)
        case "image":
            return McpContent(kind="image", data=block.data, mime=block.mime_type)
        case "audio":
            return McpContent(kind="audio", data=block.data, mime=block.mime_type)
        case "resource_link":
            return McpContent(
                kind="link", uri=str(block.uri), text=block.name, mime=block.mime_type or ""
            )
        case "resource":
            inside = block.resource
            return McpContent(
                kind="resource",
                uri=str(inside.uri),
                text=getattr(inside, "text", ""),
                data=getattr(inside, "blob", ""),
                mime=inside.mime_type or "",
            )


def _json(value: Mapping[str, object]) -> JsonObject:
    # The library parsed it from JSON.
    return cast("JsonObject", value)
