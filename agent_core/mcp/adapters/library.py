"""Speaks the protocol with the library `mcp`, which is loaded on first use, in a thread: it is large."""

import importlib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, cast

import anyio
import msgspec
from anyio import lowlevel, to_thread
from msgspec import Struct

from agent_core.kernel import JsonObject, JsonValue
from agent_core.mcp.approvals import Declared
from agent_core.mcp.port import (
    Listed,
    McpContent,
    McpProgress,
    McpToolResponse,
    ServerFailed,
    ServerGone,
    ServerSlow,
)

if TYPE_CHECKING:
    import mcp_types
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientSession
    from mcp_types import ListRootsResult

INSTALL: Final = (
    "the library that speaks with MCP servers is not installed: pip install 'tillerd[mcp]'"
)
LISTING_S: Final = 30.0
ALIVE_S: Final = 5.0
MOST_PAGES: Final = 64
GONE: Final = -32000
"""Error code of the library when a connection closes."""
TIMED_OUT: Final = -32001
SESSION_LOST: Final = -32600
"""Error code of the library when the server has lost our session, because it was restarted."""


class Wire(Struct, kw_only=True):
    """An open transport, and what is known of its other end."""

    streams: "TransportStreams"
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when nothing comes any more."""
    hint: Callable[[], str] = lambda: ""
    """Function that returns the details of a failure that only the transport has, not the library."""


Transport = AbstractAsyncContextManager[Wire]


async def load(*names: str) -> None:
    """Load modules of the library in a thread; where they are imported afterwards, that costs nothing.

    Raises:
        ServerFailed: It is not installed.
    """
    try:
        await to_thread.run_sync(_load, names)
    except ImportError as error:
        raise ServerFailed(INSTALL) from error


def _load(names: Iterable[str]) -> None:
    for name in names:
        _ = importlib.import_module(name)


@asynccontextmanager
async def connected(
    transport: Transport, *, version: str, roots: Sequence[str]
) -> AsyncGenerator["LibraryConnection"]:
    """Shake hands over a transport and keep the connection until the end of the context.

    Args:
        transport: How the server is reached.
        version: Ours.
        roots: The folders of the workspace as `file:` addresses, for servers that ask.

    Raises:
        ServerFailed: The server does not speak the protocol, or refuses.
    """
    await load("mcp.client.session", "jsonschema")
    from mcp.client.session import ClientSession  # noqa: PLC0415 - loaded by now
    from mcp_types import Implementation  # noqa: PLC0415 - as above

    async with transport as wire:
        heard = _News()
        session = ClientSession(
            *wire.streams,
            client_info=Implementation(name="tiller", version=version),
            message_handler=heard.hear,
            list_roots_callback=partial(_roots, tuple(roots)),
        )
        async with session:
            with Failing(wire):
                begun = await session.initialize()
            info = begun.server_info
            yield LibraryConnection(
                session,
                wire,
                heard,
                about=f"{info.name} {info.version}",
                protocol=str(begun.protocol_version),
            )


class LibraryConnection:
    """A server that is ready."""

    def __init__(
        self,
        session: "ClientSession",
        wire: Wire,
        news: "_News",
        *,
        about: str,
        protocol: str,
    ) -> None:
        self._session = session
        self._wire = wire
        self._news = news
        self.about = about
        self.protocol = protocol

    @property
    def why_over(self) -> str:
        """Why the connection is over."""
        return self._wire.hint() or "it ended"

    async def list_tools(self) -> Listed:
        """Ask which tools there are, page by page."""
        from mcp_types import (  # noqa: PLC0415 - loaded by now
            ListToolsRequest,
            ListToolsResult,
            PaginatedRequestParams,
        )

        declared: list[Declared] = []
        cursor: str | None = None
        with Failing(self._wire), anyio.fail_after(LISTING_S):
            for _ in range(MOST_PAGES):
                params = PaginatedRequestParams(cursor=cursor)
                page = await self._session.send_request(
                    ListToolsRequest(params=params), ListToolsResult
                )
                declared.extend(_declared_of(tool) for tool in page.tools)
                cursor = page.next_cursor
                if cursor is None:
                    break
            else:
                message = f"its list of tools has no end; {MOST_PAGES} pages were read"
                raise ServerFailed(message)
        return await to_thread.run_sync(_checked, declared)

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        progress: Callable[[McpProgress], None],
        meta: JsonObject,
    ) -> McpToolResponse:
        """Call a tool."""
        from mcp_types import (  # noqa: PLC0415 - loaded by now
            CallToolRequest,
            CallToolRequestParams,
            CallToolResult,
        )

        params = CallToolRequestParams.model_validate(
            {"name": name, "arguments": dict(arguments), "_meta": dict(meta) or None}
        )
        with Failing(self._wire):
            # Not `call_tool`, which runs the server's own patterns over its answer, and they may take for ever.
            result = await self._session.send_request(
                CallToolRequest(params=params),
                CallToolResult,
                request_read_timeout_seconds=timeout_s,
                progress_callback=_ProgressForwarder(progress),
            )
        return answer_of(result)

    async def is_alive(self) -> bool:
        """Ask whether it still answers."""
        try:
            with Failing(self._wire), anyio.fail_after(ALIVE_S):
                _ = await self._session.send_ping()
        except ServerGone:
            return False
        except ServerSlow:
            return False
        except ServerFailed:
            return True  # it refuses, but it does answer
        return True

    async def next_event(self) -> Literal["changed", "over"]:
        """Wait until its tools changed, or the connection is over."""
        found: list[Literal["changed", "over"]] = []
        async with anyio.create_task_group() as group:

            async def wait(event: anyio.Event, what: Literal["changed", "over"]) -> None:
                await event.wait()
                found.append(what)
                group.cancel_scope.cancel()

            group.start_soon(wait, self._wire.over, "over")
            group.start_soon(wait, self._news.changed, "changed")
        if "over" in found:
            return "over"
        self._news.changed = anyio.Event()
        return "changed"


class Failing:
    """Makes one kind of failure of all that the library and its transports raise."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise a failure in the place of an exception."""
        if isinstance(error, Exception) and not isinstance(error, ServerFailed):
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ServerFailed:
        if isinstance(error, TimeoutError):
            return ServerSlow("it did not answer in time")
        hint = self._wire.hint()
        if isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError):
            return self._gone(hint)
        code = _code(error)
        if code == TIMED_OUT:
            return ServerSlow("it did not answer in time")
        if code in {GONE, SESSION_LOST} or self._wire.over.is_set():
            return self._gone(hint or str(error))
        if code is not None:
            return ServerFailed(f"it refused: {hint or error} ({code})")
        return ServerFailed(f"its answer cannot be read: {_short(error)}")

    def _gone(self, why: str) -> ServerGone:
        self._wire.over.set()
        return ServerGone(why or "the connection is closed")


class _ProgressForwarder:
    """Passes progress on, in the library's own words."""

    def __init__(self, tell: Callable[[McpProgress], None]) -> None:
        self._tell = tell

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._tell(McpProgress(done=progress, total=total, message=message))
        await lowlevel.checkpoint()


class _News:
    """Hears what a server says unasked; of all that only one thing counts."""

    def __init__(self) -> None:
        self.changed = anyio.Event()

    async def hear(self, message: object) -> None:
        method: object = getattr(message, "method", None)
        if method == "notifications/tools/list_changed":
            self.changed.set()
        await lowlevel.checkpoint()


def _checked(declared: Sequence[Declared]) -> Listed:
    """Leave out what is no JSON Schema: a provider would refuse every request that has it. Blocking."""
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415 - loaded by now

    kept: list[Declared] = []
    problems: list[str] = []
    for tool in declared:
        try:
            Draft202012Validator.check_schema(tool.parameters)
        except (SchemaError, RecursionError) as error:
            problems.append(
                f"its tool {tool.name[:64]!r} is left out: what it says of its arguments is no JSON Schema ({_short(error)})"
            )
        else:
            kept.append(tool)
    return Listed(tools=tuple(kept), problems=tuple(problems))


def _code(error: Exception) -> int | None:
    details: object = getattr(error, "error", None)
    code: object = getattr(details, "code", None)
    return code if isinstance(code, int) else None


def _short(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {' '.join(lines[:3])[:300]}"


async def _roots(roots: Sequence[str], context: object) -> "ListRootsResult":
    from mcp_types import ListRootsResult, Root  # noqa: PLC0415 - loaded by now
    from pydantic import FileUrl  # noqa: PLC0415 - only servers that ask need it

    _ = context
    await lowlevel.checkpoint()
    return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in roots])


def _declared_of(tool: "mcp_types.Tool") -> Declared:
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
