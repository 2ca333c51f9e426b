"""One server: started when it is first needed, again when it ended, and asked for its tools each time."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

import anyio
from msgspec import Struct

from agent_core.kernel import JsonObject, ToolCallId
from agent_core.kernel.values import Value
from agent_core.mcp.approvals import Declared, believed
from agent_core.mcp.definitions import Server
from agent_core.mcp.port import (
    McpConnection,
    McpProgress,
    McpRequest,
    McpToolResponse,
    McpTracer,
    Opens,
    ServerFailed,
    ServerGone,
    ServerSlow,
    no_trace,
)

McpServerState = Literal["idle", "starting", "ready", "down"]
BACKOFF_S: Final = 1.0
LONGEST_BACKOFF_S: Final = 60.0
WORTH_WAITING_S: Final = 4.0
"""A call waits so long for a server that just failed to be started again."""
STEADY_S: Final = 60.0
"""A server that ran longer than this has its earlier failures forgotten."""
MINUTE_S: Final = 60.0
LEAVE_S: Final = 2.0
"""So long a connection that is over may take to say why."""
LISTED_AT_MOST: Final = 20
"""So often in a minute a server is asked for its tools; one that says all the time that they change is not followed."""

log = logging.getLogger(__name__)


class Limits(Value, frozen=True, kw_only=True):
    """How long things may take."""

    start_s: float = 30.0
    call_s: float = 120.0


class _Record(Struct, kw_only=True):
    """Failure history of a server."""

    failures: int = 0
    failed_at_s: float = -math.inf
    why: str = ""


class McpServerDeps(Value, frozen=True, kw_only=True):
    """Dependencies of a server."""

    opens: Opens
    limits: Callable[[], Limits]
    """How long things may take, asked each time."""
    tools_changed: Callable[["McpServer"], None]
    """Told whenever the tools were listed."""
    report: Callable[[str], None]
    """Reports failures to people, one sentence each."""
    traces: McpTracer = no_trace


class McpServer:
    """A server and its connection. `keep` runs as a task; everyone else calls."""

    def __init__(self, server: Server, around: McpServerDeps) -> None:
        self.server = server
        self.state: McpServerState = "idle"
        self.tools: tuple[Declared, ...] = ()
        """Tools of the last listing; kept while the server is down."""
        self._around = around
        self._record = _Record()
        self._connection: McpConnection | None = None
        self._news = anyio.Condition()
        self._dropping: anyio.CancelScope | None = None
        """Ends the connection of the moment."""
        self._scope = anyio.CancelScope()

    @property
    def has_failed(self) -> bool:
        """Whether it ended, or never began, since it last ran well."""
        return self._record.failures > 0

    @property
    def problem(self) -> str:
        """Why it is not there; empty when it is, or was never asked for."""
        return self._record.why

    async def keep(self) -> None:
        """Connect whenever somebody wants the server, until cancelled or `stop` is called."""
        with self._scope:
            while True:
                async with self._news:
                    while self.state != "starting":
                        await self._news.wait()
                await self._connect()
        self._record.why = "it was ended"
        async with self._news:
            self.state = "down"
            self._news.notify_all()

    def stop(self) -> None:
        """End it for good."""
        self._scope.cancel()

    async def want(self) -> None:
        """Have it started, if it is not there and has not just failed. Does not wait."""
        if self.state in {"starting", "ready"} or self.wait_s() > 0:
            return
        async with self._news:
            if self.state in {"idle", "down"}:
                self.state = "starting"
                self._news.notify_all()

    async def settled(self) -> None:
        """Wait until it is ready or down."""
        async with self._news:
            while self.state == "starting":
                await self._news.wait()

    def wait_s(self) -> float:
        """Return how long it is left alone after it failed."""
        record = self._record
        if record.failures <= 1:
            return 0.0
        pause_s = min(BACKOFF_S * 2.0 ** (record.failures - 2), LONGEST_BACKOFF_S)
        return max(0.0, record.failed_at_s + pause_s - anyio.current_time())

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        call: ToolCallId,
        progress: Callable[[McpProgress], None],
    ) -> McpToolResponse:
        """Call a tool for a tool call of the session; a server that is down is started first.

        Raises:
            ServerFailed: It could not be done; the text tells the model why.
        """
        connection = await self.ready()
        limit_s = self.server.call_timeout_s or self._around.limits().call_s
        try:
            request = McpRequest(
                call=call, server=self.server.name, tool=name, protocol=connection.protocol
            )
            with self._around.traces(request) as meta:
                return await connection.call(
                    name, arguments, timeout_s=limit_s, progress=progress, meta=meta
                )
        except ServerGone as error:
            await self._left(connection)
            raise self._gone_text(error) from error
        except ServerSlow as error:
            stuck = not await connection.is_alive()
            if stuck:
                await self._drop(connection)
            raise ServerSlow(self._slow_text(limit_s, stuck=stuck)) from error
        except ServerFailed as error:
            message = f"the MCP server {self.server.name!r} failed: {error}"
            raise ServerFailed(message) from error

    async def ready(self) -> McpConnection:
        """Have it started and wait until it is there.

        Raises:
            ServerFailed: It is not; the text tells the model why.
        """
        pause_s = self.wait_s()
        if 0 < pause_s <= WORTH_WAITING_S:
            await anyio.sleep(pause_s)
        await self.want()
        await self.settled()
        connection = self._connection
        if connection is None:
            again_s = math.ceil(self.wait_s())
            when = f" It is not started again for {again_s} s." if again_s else ""
            message = f"the MCP server {self.server.name!r} is not there: {self.problem}.{when}"
            raise ServerFailed(message)
        return connection

    async def _left(self, connection: McpConnection) -> None:
        """Wait until a connection that is over counts as such: the next call must not meet it again."""
        with anyio.move_on_after(LEAVE_S):
            async with self._news:
                while self._connection is connection and self.state == "ready":
                    await self._news.wait()
        await self._drop(connection)

    async def _drop(self, connection: McpConnection) -> None:
        """Close a connection that is stuck; the next call opens a new one."""
        if self._connection is connection and self._dropping is not None:
            self._connection = None
            self._dropping.cancel()
            async with self._news:
                while self.state == "ready":
                    await self._news.wait()

    async def _connect(self) -> None:
        limit_s = self.server.start_timeout_s or self._around.limits().start_s
        begun_s = anyio.current_time()
        why = "it did not answer any more"
        self._dropping = scope = anyio.CancelScope(deadline=begun_s + limit_s)
        try:
            with scope:
                async with self._around.opens(self.server) as connection:
                    await self._list(connection)
                    scope.deadline = math.inf
                    await self._be_ready(connection)
                    why = await self._serve(connection)
            if scope.cancelled_caught and self.state == "starting":
                why = f"it was not ready after {limit_s:g} s"
        except Exception as error:  # noqa: BLE001 - the fence around a server: it must not end the session
            why = failure_reason(error)
        finally:
            self._connection = None
        await self._be_down(why, ran_s=anyio.current_time() - begun_s)

    async def _be_ready(self, connection: McpConnection) -> None:
        async with self._news:
            self._connection = connection
            self.state = "ready"
            self._record.why = ""
            self._news.notify_all()

    async def _be_down(self, why: str, *, ran_s: float) -> None:
        record = self._record
        was_ready = self.state == "ready"
        record.failures = 1 if was_ready and ran_s > STEADY_S else record.failures + 1
        record.failed_at_s = anyio.current_time()
        last_why, record.why = record.why, why
        async with self._news:
            self.state = "down"
            self._news.notify_all()
        if why != last_why:
            verb = "ended" if was_ready else "is not there"
            self._around.report(f"the MCP server {self.server.name!r} {verb}: {why}")

    async def _serve(self, connection: McpConnection) -> str:
        """Stay until the end; list the tools again when they change."""
        times: list[float] = []
        while await connection.next_event() == "changed":
            now_s = anyio.current_time()
            times = [one for one in times if one > now_s - MINUTE_S]
            if len(times) >= LISTED_AT_MOST and await self._ends_untrusted(
                connection, times[0] + MINUTE_S - now_s
            ):
                break
            times.append(anyio.current_time())
            await self._list(connection)
        return connection.why_over

    async def _ends_untrusted(self, connection: McpConnection, pause_s: float) -> bool:
        """Do without the tools for a while, since nobody can say what they are; tells whether the server ended then."""
        self.tools = ()
        self._around.tools_changed(self)
        self._around.report(
            f"the MCP server {self.server.name!r} says all the time that its tools change; they are not used for a while"
        )
        with anyio.move_on_after(pause_s):
            while await connection.next_event() == "changed":  # noqa: ASYNC110 - it is not to be followed at its pace
                await anyio.sleep(1)
            return True
        return False

    async def _list(self, connection: McpConnection) -> None:
        listed = await connection.list_tools()
        found = believed(listed.tools)
        for problem in (*listed.problems, *found.problems):
            self._around.report(f"the MCP server {self.server.name!r}: {problem}")
        self.tools = found.tools
        self._around.tools_changed(self)

    def _gone_text(self, error: ServerGone) -> ServerGone:
        return ServerGone(
            f"the MCP server {self.server.name!r} ended while it did this ({error}); how much of it was done is not known. It is started again with the next call; look at what is there before you repeat it."
        )

    def _slow_text(self, limit_s: float, *, stuck: bool) -> str:
        then = " It did not answer anything else either, so it is started anew." if stuck else ""
        return f'the MCP server {self.server.name!r} did not finish within {limit_s:g} s and was told to stop.{then} How much of it was done is not known. The user can give it longer with "timeoutS" in mcp.json.'


def failure_reason(error: BaseException) -> str:
    """Return the reason of a failure for people, from an exception or a group of them."""
    leaves: Sequence[BaseException] = tuple(_leaves(error))
    failure = next((one for one in leaves if isinstance(one, ServerFailed)), None)
    if failure is not None:
        return str(failure)
    log.error("an MCP server failed unexpectedly", exc_info=error)
    first = leaves[0]
    return f"{type(first).__name__}: {first}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
