"""Turns what a server gave into the result of a tool call. Blocking where images are looked at."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Final

from agent_core.kernel import JsonObject
from agent_core.kernel.truncation import format_size
from agent_core.mcp.port import McpContent, McpToolResponse
from agent_core.messages import Text, UserContent
from agent_core.tools import ToolResult

MOST_IMAGES: Final = 10
Pictures = Callable[[str, bytes], tuple[UserContent, ...]]
"""Makes of an image, with a name for it, what a model may be shown; words instead when it cannot. Blocking."""


def result_of(answer: McpToolResponse, *, server: str, tool: str, pictures: Pictures) -> ToolResult:
    """Make the result. Text stays as it is; content that no model can be shown is named."""
    content: list[UserContent] = []
    images = 0
    for part in answer.parts:
        if part.kind == "image":
            images += 1
            if images > MOST_IMAGES:
                continue
            content.extend(_image(part, f"image {images} of {server}/{tool}", pictures))
        else:
            content.append(Text(text=_text_of(part)))
    if images > MOST_IMAGES:
        content.append(Text(text=f"[{images - MOST_IMAGES} more images are left out.]"))
    said = any(isinstance(part, Text) and part.text.strip() for part in content)
    if answer.structured is not None and not said:
        content.append(Text(text=json.dumps(answer.structured, indent=1, ensure_ascii=False)))
    if not content:
        content.append(Text(text="(the tool gave nothing)"))
    details: JsonObject = {
        "server": server,
        "tool": tool,
        "structured": answer.structured,
        "images": images,
    }
    return ToolResult(content=tuple(content), details=details, is_error=answer.is_error)


def _image(part: McpContent, name: str, pictures: Pictures) -> tuple[UserContent, ...]:
    try:
        data = base64.b64decode(part.data, validate=True)
    except (binascii.Error, ValueError):
        return (Text(text=f"[{name} is left out: it is no base64]"),)
    return pictures(name, data)


def _text_of(part: McpContent) -> str:
    match part.kind:
        case "link":
            about = f" ({part.mime})" if part.mime else ""
            return f"[{part.text}: {part.uri}{about}]"
        case "resource" if not part.data:
            return f"[{part.uri}]\n{part.text}"
        case "resource" | "audio" | "image":
            size = format_size(len(part.data) * 3 // 4)
            return f"[{part.uri or part.kind} ({part.mime}, {size}) is left out: it is no text]"
        case "text":
            return part.text
