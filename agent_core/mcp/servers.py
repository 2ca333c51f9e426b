"""All servers of a session: which there are, which of their tools a person approved, and who is asked."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.kernel import Clock, RunId
from agent_core.kernel.errors import TillerError
from agent_core.kernel.values import Value
from agent_core.mcp.approvals import (
    ApprovalStore,
    ServerApproval,
    ToolListDiff,
    compare_tools,
    is_approved,
    key_of,
    new_approval,
    tool_name,
)
from agent_core.mcp.definitions import Defined, Http, Server, ServerFiles, Stdio, shown_way
from agent_core.mcp.port import McpTracer, Opens, Pictures, no_trace
from agent_core.mcp.server import Limits, McpServer, McpServerDeps
from agent_core.resources.load_result import LoadedResources, LoadProblem
from agent_core.tools import Tool

if TYPE_CHECKING:
    from agent_core.mcp.tool import McpTool


WAIT_S: Final = 10.0
"""Longest wait of a run for starting servers; a slower server is available from a later run."""

McpApprovalReply = Literal["always", "session", "no", "never"]


class Approval(Value, frozen=True, kw_only=True):
    """A question to the user about a server."""

    server: Server
    about: str
    """How it is reached, and what holds it in."""
    news: ToolListDiff
    unasked: tuple[str, ...]
    """Tools that would run without asking, since the server marks them as read-only."""
    is_first: bool


class Approves(Protocol):
    """Asks a person about a server."""

    async def __call__(self, approval: Approval, /, *, run: RunId) -> McpApprovalReply:
        """Ask and wait; silence, and nobody to ask, is a no."""
        ...


class McpToolRegistry(Protocol):
    """Where tools are put for models to see."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all tools."""
        ...

    def register(self, tool: Tool) -> None:
        """Add a tool and activate it."""
        ...


class McpDeps(Value, frozen=True, kw_only=True):
    """Dependencies of the servers of a session."""

    files: ServerFiles
    store: ApprovalStore
    opens: Opens
    limits: Callable[[], Limits]
    held: Callable[[Server], str]
    """Returns the containment of a server."""
    pictures: Pictures
    clock: Clock
    root: Path
    traces: McpTracer = no_trace


class _Kept(Struct, kw_only=True):
    """State of one server."""

    server: McpServer
    word: ServerApproval | None = None
    """The user's decision on it, permanent or for this session."""
    declined: frozenset[str] = frozenset()
    """Hashes of what somebody said no to, for as long as the session is open."""


class McpServers:
    """The servers of one session. Nothing is started before the first run."""

    def __init__(
        self,
        around: McpDeps,
        *,
        toolbox: McpToolRegistry,
        approves: Approves,
        report: Callable[[str], None],
    ) -> None:
        self._around = around
        self._toolbox = toolbox
        self._approves = approves
        self._report = report
        self._kept: dict[str, _Kept] = {}
        self._tools: dict[tuple[str, str], McpTool] = {}
        self._reported: set[str] = set()
        self._group: TaskGroup | None = None

    def live_in(self, group: TaskGroup) -> None:
        """Set the task group of the session, in which servers run."""
        self._group = group

    @property
    def servers(self) -> Mapping[str, McpServer]:
        """The servers by name."""
        return {name: kept.server for name, kept in self._kept.items()}

    async def before_run(self, run: RunId) -> None:
        """Look at the files again, have the servers started, and ask about what nobody approved. Cancellable."""
        await self._follow(await self._around.files.of_run())
        if not self._kept:
            return
        kept = tuple(self._kept.values())
        for one in kept:
            await one.server.want()
        with anyio.move_on_after(WAIT_S):
            for one in kept:
                # One that failed before is not waited for at every run.
                if not one.server.has_failed:
                    await one.server.settled()
        for one in kept:
            if one.server.state == "starting" and not one.server.has_failed:
                self._tell(
                    f"the MCP server {one.server.server.name!r} is still starting; its tools come with a later run"
                )
            await self._approve(one, run)

    async def look(self) -> Defined:
        """Read which servers there are; those that are new or others than before are known from now on."""
        defined = await self._around.files.read()
        await self._follow(defined)
        return defined

    async def _follow(self, defined: Defined) -> None:
        for problem in defined.problems:
            self._tell(problem)
        wanted = {server.name: server for server in defined.servers}
        for name, kept in tuple(self._kept.items()):
            if wanted.get(name) != kept.server.server:
                kept.server.stop()
                del self._kept[name]
        for name, server in wanted.items():
            if name not in self._kept:
                self._kept[name] = await self._began(server)

    async def reload(self) -> LoadedResources:
        """Read the files again, and forget what failed: the next run tries it anew. Never raises."""
        self._reported.clear()
        for name, kept in tuple(self._kept.items()):
            if kept.server.has_failed and kept.server.state != "ready":
                kept.server.stop()
                del self._kept[name]
        defined = await self.look()
        return LoadedResources(problems=tuple(LoadProblem(message=one) for one in defined.problems))

    async def _began(self, server: Server) -> _Kept:
        around = self._around
        surroundings = McpServerDeps(
            opens=around.opens,
            limits=around.limits,
            tools_changed=self._take,
            report=self._tell,
            traces=around.traces,
        )
        made = McpServer(server, surroundings)
        if self._group is not None:
            self._group.start_soon(made.keep)
        kept = _Kept(server=made)
        try:
            kept.word = await to_thread.run_sync(around.store.approval, key_of(server, around.root))
        except TillerError as error:
            self._tell(str(error))
        return kept

    def _take(self, server: McpServer) -> None:
        """Register the tools that a server declares, and update those registered before."""
        from agent_core.mcp.tool import McpTool  # noqa: PLC0415 - at first use

        name = server.server.name
        for declared in server.tools:
            tool = self._tools.get((name, declared.name))
            if tool is not None:
                tool.become(declared, server=server)
                continue
            called = tool_name(name, declared.name, taken=self._toolbox.all_names)
            tool = McpTool(
                called,
                declared,
                server=server,
                is_approved=self._is_approved,
                pictures=self._around.pictures,
            )
            self._tools[name, declared.name] = tool
            self._toolbox.register(tool)

    def _is_approved(self, tool: "McpTool") -> bool:
        server = tool.server
        kept = self._kept.get(server.server.name)
        if kept is None or kept.server is not server or tool.declared not in server.tools:
            return False
        return is_approved(tool.declared, kept.word, way=_way(server.server))

    async def _approve(self, kept: _Kept, run: RunId) -> None:
        """Ask about what is there and was not approved. A refusal for ever is not asked about again."""
        server, word = kept.server.server, kept.word
        tools = kept.server.tools
        if word is not None and word.said == "refused":
            return
        way = _way(server)
        news = await to_thread.run_sync(partial(compare_tools, tools, word, way=way))
        new = frozenset(one.hash for one in tools if not is_approved(one, word, way=way))
        if not news.must_ask or new <= kept.declined:
            return
        approval = Approval(
            server=server,
            about=f"{shown_way(server)} ({self._around.held(server)})",
            news=news,
            unasked=tuple(one.name for one in tools if one.is_read_only),
            is_first=word is None,
        )
        reply = await self._approves(approval, run=run)
        if reply == "no":
            kept.declined |= new
            self._tell(
                f"the tools {', '.join((*news.added, *news.changed))} of the MCP server {server.name!r} are not used: nobody approved them"
            )
            return
        # What came while somebody thought is not what they said yes to.
        kept.word = new_approval("refused" if reply == "never" else "approved", tools, way=way)
        if reply != "session":
            await self._keep(server, kept.word)

    async def _keep(self, server: Server, word: ServerApproval) -> None:
        around = self._around
        keep = partial(
            around.store.record, key_of(server, around.root), word, at_ms=around.clock.now_ms()
        )
        try:
            await to_thread.run_sync(keep)
        except TillerError as error:
            self._tell(
                f"what you said of the MCP server {server.name!r} could not be kept: {error}"
            )

    def _tell(self, text: str) -> None:
        """Report a text once: the servers are checked before each run. `reload` reports it again."""
        if text not in self._reported:
            self._reported.add(text)
            self._report(text)


def _way(server: Server) -> str:
    """Return the hash of how a server is reached, without values of variables and headers, which may change.

    Empty for a server of a project: the trust in the project covers its definition.
    """
    if server.origin == "project":
        return ""
    match server.way:
        case Stdio() as way:
            needs = sorted(way.needs)
            identity = (way.argv, str(way.cwd), needs, way.contained, sorted(way.env))
        case Http(url=url, headers=headers):
            identity = (url, sorted(headers))
    return hashlib.sha256(repr(identity).encode("utf-8", "replace")).hexdigest()
