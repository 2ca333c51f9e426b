"""Port to the MCP protocol: connections to servers, and their answers as plain values."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.values import Value
from agent_core.mcp.declarations import Declared
from agent_core.mcp.definitions import Server


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
    ) -> McpToolResponse:
        """Call a tool. Cancelled, the server is told so.

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
