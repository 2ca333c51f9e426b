"""The servers of a session on this machine: how they are found, started, held in and approved."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from os import defpath
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly.config import WorkspaceConfig
from agent_core.assembly.request import SessionRequest
from agent_core.events import Notice
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import NotText
from agent_core.kernel.values import Value
from agent_core.mcp import McpServers
from agent_core.mcp.approvals import ApprovalStore
from agent_core.mcp.definitions import Http, Server, ServerFiles, Stdio
from agent_core.mcp.port import McpConnection, Pictures, ServerFailed
from agent_core.mcp.server import Limits
from agent_core.mcp.servers import McpDeps
from agent_core.messages import Text, UserContent
from agent_core.resources.settings.values import McpSettings
from agent_core.session.context import SessionOptions, SessionServices
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.permissions.permission_prompts import PermissionPrompts
from agent_core.session.permissions.trust import McpApprovalPrompt
from agent_core.session.tools.registry import ToolRegistry
from agent_core.tools import Tool
from agent_core.workspace import FileBytes
from agent_core.workspace.permissions.policy.commands.programs import (
    find_outside_program,
    outside_path,
)
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.processes.interactive import InteractiveProcesses
from agent_core.workspace.sandbox import Sandbox, Uncontained

VERSION: Final = "0.1"
"""Client version sent to MCP servers."""
ELSEWHERE: Final = "it runs on its own; nothing of ours holds it in"
LET_OUT: Final = "not contained: your mcp.json says so"


def server_ground(
    request: SessionRequest,
    config: WorkspaceConfig,
    *,
    sandbox: Sandbox,
    env: Mapping[str, str],
    options: SessionOptions,
) -> McpDeps | None:
    """Return the inputs for building the MCP servers of a session; None: it has none.

    The workspace of such a session is not on this machine, or it is a task, which uses the servers of the session that
    gave it.

    Args:
        request: Request of the session.
        config: Inputs read before the session opened.
        sandbox: Sandbox of the session's commands and servers.
        env: Environment of commands, without Tiller's keys.
        options: Options of the session; only those for images are used here.
    """
    if request.ports is not None or request.task is not None:
        return None
    root = config.root
    values = config.settings.values.mcp
    connector = _ServerConnector(
        inside=DiskProcesses(sandbox=sandbox, ahead="none"),
        outside=DiskProcesses(sandbox=Uncontained()),
        env=env,
        sandbox=sandbox,
        roots=lambda: (root, *request.added.trusted),
    )
    return McpDeps(
        files=ServerFiles(
            config=config.paths.config,
            root=root,
            env=request.env,
            is_trusted=lambda: config.permission_state.is_trusted(),  # noqa: PLW0108 - asked anew each time
            expected=config.expected,
            of_client=request.client_servers.servers,
        ),
        store=ApprovalStore(config.paths.data / "mcp-approved.json"),
        opens=connector.opens,
        limits=lambda: _limits(values),
        held=connector.held,
        pictures=_pictures(lambda: options.tool_options["read"]),
        clock=request.clock,
        root=root,
    )


def build_servers(
    around: McpDeps | None,
    services: SessionServices,
    *,
    permissions: PermissionState,
    prompts: PermissionPrompts,
    toolbox: ToolRegistry,
    wants: Callable[[str], bool],
) -> McpServers | None:
    """Build the MCP servers of a session; None if there are none.

    Args:
        around: Result of `server_ground`.
        services: Id, clock and publisher of the session.
        permissions: Its permissions.
        prompts: Its permission requests.
        toolbox: Its tools.
        wants: Whether a tool of a server is to be active, by its name.
    """
    if around is None:
        return None
    asking = McpApprovalPrompt(
        session=services.session,
        permissions=permissions,
        prompts=prompts,
        clock=services.clock,
        new_id=services.new_id,
    )
    return McpServers(
        around,
        toolbox=McpToolShelf(toolbox=toolbox, is_wanted=wants),
        approves=asking,
        report=lambda text: services.publish(Notice(level="warning", text=text)),
    )


class McpToolShelf(Value, frozen=True, kw_only=True):
    """Adapter that adds MCP tools to a toolbox: active when `is_wanted` accepts the name, inactive otherwise."""

    toolbox: ToolRegistry
    is_wanted: Callable[[str], bool]

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return self.toolbox.all_names

    def register(self, tool: Tool) -> None:
        """Add a tool."""
        if self.is_wanted(tool.spec.name):
            self.toolbox.register(tool)
        else:
            self.toolbox.add(tool)


class _ServerConnector(Value, frozen=True, kw_only=True):
    """Reaches servers, each in its way."""

    inside: InteractiveProcesses
    outside: InteractiveProcesses
    env: Mapping[str, str]
    sandbox: Sandbox
    roots: Callable[[], Sequence[Path]]

    @asynccontextmanager
    async def opens(self, server: Server) -> AsyncGenerator[McpConnection]:
        """Open a connection."""
        from agent_core.mcp.adapters.http import http  # noqa: PLC0415 - at first use
        from agent_core.mcp.adapters.library import connected  # noqa: PLC0415 - at first use
        from agent_core.mcp.adapters.stdio import stdio  # noqa: PLC0415 - at first use

        way = server.way
        if isinstance(way, Http):
            transport = http(way)
        else:
            talks, env = self.inside if way.contained else self.outside, self.env
            if not way.contained or self.sandbox.containing.level == "none":
                way, env = await to_thread.run_sync(self._from_outside, way)
            transport = stdio(way, talks, env=env, where=self.held(server))
        roots = tuple(root.as_uri() for root in self.roots())
        async with connected(transport, version=VERSION, roots=roots) as connection:
            yield connection

    def _from_outside(self, way: Stdio) -> tuple[Stdio, Mapping[str, str]]:
        """Find the program of a server that nothing contains, and its environment: no workspace may bring them. Blocking.

        Raises:
            ServerFailed: It is not to be found outside of the workspace.
        """
        path, roots = self.env.get("PATH", defpath), tuple(self.roots())
        env = {**self.env, "PATH": outside_path(path, roots=roots)}
        name = way.argv[0]
        if "/" in name:
            return way, env
        program = find_outside_program(name, env_path=path, roots=roots)
        if program is None:
            why = f"its program {name!r} was not found on the PATH outside of the workspace, and nothing contains it: name it by its whole path"
            raise ServerFailed(why)
        return replace(way, argv=(program, *way.argv[1:])), env

    def held(self, server: Server) -> str:
        """Return how a server is held in."""
        way = server.way
        if isinstance(way, Http):
            return ELSEWHERE
        if not way.contained:
            return LET_OUT
        containing = self.sandbox.containing
        if containing.level == "none":
            return f"not contained: {containing.why_not_full}"
        access = "with the network" if "network" in way.needs else "without the network"
        access += " and with unix sockets" if "sockets" in way.needs else ""
        partly = "" if containing.level == "full" else "partly "
        return f"{partly}contained like commands, {access}"


def _limits(values: McpSettings) -> Limits:
    return Limits(start_s=values.start_timeout_s, call_s=values.call_timeout_s)


def _pictures(options: Callable[[], Mapping[str, JsonValue]]) -> Pictures:
    def shown(name: str, data: bytes) -> tuple[UserContent, ...]:
        from agent_core.tools.builtin.read.image import image_result, image_rules  # noqa: PLC0415 - at first use
        from agent_core.tools.builtin.read.image_header import image_kind  # noqa: PLC0415 - at first use

        kind = image_kind(data)
        if kind is None:
            return (Text(text=f"[{name} is left out: it is no image that is known]"),)
        file = FileBytes(path=Path(name), data=data, sha256="")
        try:
            return image_result(name, file, kind=kind, rules=image_rules(options())).content
        except NotText as error:
            return (Text(text=f"[{error}]"),)

    return shown
