"""The port to servers that speak the Model Context Protocol, and their tools and results as ours."""

import base64
import binascii
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Final, Literal, Protocol

from agent_core.kernel import JsonObject, JsonValue, ToolCallId
from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import format_size
from agent_core.kernel.values import Value
from agent_core.mcp.approvals import Declared
from agent_core.mcp.definitions import Server
from agent_core.messages import Text, UserContent
from agent_core.tools import ToolResult


class ServerFailed(ToolError):
    """A server did not do what it was asked; the text tells why."""


class ServerGone(ServerFailed):
    """The connection to a server is over; whether it still did what it was asked, nobody knows."""


class ServerSlow(ServerFailed):
    """A server did not answer in time."""


class McpContent(Value, frozen=True, kw_only=True):
    """A part of what a tool gave."""

    kind: Literal["text", "image", "audio", "resource", "link"]
    text: str = ""
    """Words; of a resource its text, of a link its name."""
    data: str = ""
    """Base64, where it is no text."""
    mime: str = ""
    uri: str = ""


class McpToolResponse(Value, frozen=True, kw_only=True):
    """Result of a tool call."""

    parts: tuple[McpContent, ...] = ()
    structured: JsonValue = None
    is_error: bool = False


class McpProgress(Value, frozen=True, kw_only=True):
    """How far a call is, as its server says."""

    done: float
    total: float | None = None
    message: str | None = None


class Listed(Value, frozen=True, kw_only=True):
    """The tools of a server as it lists them."""

    tools: tuple[Declared, ...]
    problems: tuple[str, ...] = ()


class McpConnection(Protocol):
    """A server that is ready. It belongs to the task that opened it; anyone may call."""

    @property
    def about(self) -> str:
        """The name and version that the server gives itself."""
        ...

    @property
    def protocol(self) -> str:
        """The version of the protocol that both sides agreed on."""
        ...

    async def list_tools(self) -> Listed:
        """Ask which tools there are.

        Raises:
            ServerFailed: It gave no list that can be read.
        """
        ...

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        progress: Callable[[McpProgress], None],
        meta: JsonObject,
    ) -> McpToolResponse:
        """Call a tool. Cancelled, the server is told so.

        Args:
            name: Name of the tool.
            arguments: Its arguments.
            timeout_s: How long it may take.
            progress: Called with the progress that the server reports.
            meta: Members of `_meta` of the request.

        Raises:
            ServerFailed: It refused, gave an answer that cannot be read, is gone, or did not answer in time.
        """
        ...

    async def is_alive(self) -> bool:
        """Ask whether it still answers; waits a few seconds at most."""
        ...

    async def next_event(self) -> Literal["changed", "over"]:
        """Wait until it says that its tools changed, or the connection is over."""
        ...

    @property
    def why_over(self) -> str:
        """Why the connection is over."""
        ...


Opens = Callable[[Server], AbstractAsyncContextManager[McpConnection]]
"""Opens a connection. Entering raises ServerFailed; leaving ends what was started for it."""


MOST_IMAGES: Final = 10


class McpRequest(Value, frozen=True, kw_only=True):
    """A request to a server, made for a tool call of the session."""

    call: ToolCallId
    server: str
    tool: str
    """As the server names it."""
    protocol: str
    """Version of the protocol that both sides agreed on."""


McpTracer = Callable[[McpRequest], AbstractContextManager[JsonObject]]
"""Records a request; entering gives what `_meta` of the request gets."""


def no_trace(request: McpRequest) -> AbstractContextManager[JsonObject]:
    """Record nothing."""
    _ = request
    return nullcontext({})


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
