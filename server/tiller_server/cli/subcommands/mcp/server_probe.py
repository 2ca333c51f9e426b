"""The test of an MCP server: started as a session would start it, asked for its tools, and ended."""

from collections.abc import Sequence

import anyio
from msgspec.structs import replace

from agent_core.assembly.factory import session_deps
from agent_core.assembly.request import SessionRequest
from agent_core.kernel.errors import UsageError
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.mcp.approvals import Declared
from agent_core.mcp.definitions import DisabledServer, Server, Stdio
from agent_core.mcp.port import ServerFailed
from agent_core.mcp.server import failure_reason


class ServerAnswer(Value, frozen=True, kw_only=True):
    """Name, version and tools of a server."""

    about: str
    """Its name and version."""
    tools: Sequence[Declared]
    problems: Sequence[str]
    """Tools that cannot be used, a sentence each."""


async def probe_server(request: SessionRequest, name: str) -> ServerAnswer:
    """Start a server, list its tools and end it. Nothing is approved and no tool is called.

    Args:
        request: The session in which it would run; no session file is written.
        name: The server, as mcp.json names it.

    Raises:
        UsageError: There is no server of that name, or it is switched off.
        ServerFailed: It did not start, or did not answer in time.
        TillerError: The folder or the settings cannot be used.
    """
    async with session_deps(replace(request, store="memory", session="new")) as deps:
        try:
            around = deps.servers
            defined = None if around is None else await run_in_thread(around.files.read_now)
            entries = () if defined is None else defined.entries
            server = next((entry for entry in entries if entry.name == name), None)
            if around is None or server is None:
                there = ", ".join(entry.name for entry in entries) or "none"
                message = f"there is no MCP server {name!r} for this folder; there are: {there}"
                raise UsageError(message)
            if isinstance(server, DisabledServer):
                in_project = " --project" if server.origin == "project" else ""
                message = f"the MCP server {name!r} is off ({server.at}); to switch it on: tiller mcp enable {name}{in_project}"
                raise UsageError(message)
            limit_s = around.limits().start_s
            try:
                with anyio.fail_after(limit_s):
                    async with around.opens(server) as connection:
                        listed = await connection.list_tools()
                        return ServerAnswer(
                            about=connection.about, tools=listed.tools, problems=listed.problems
                        )
            except TimeoutError:
                message = f'it was not ready after {limit_s:g} s; set "startTimeoutS" if it needs longer, and {_advice(server)}'
                raise ServerFailed(message) from None
            except Exception as error:
                message = f"{failure_reason(error)}; {_advice(server)}"
                raise ServerFailed(message) from error
        finally:
            await deps.opened.log.close()


def _advice(server: Server) -> str:
    match server.way:
        case Stdio(contained=True, needs=needs) if "network" not in needs:
            return f'check its command in {server.at}: one that downloads something needs "needs": ["network"] there'
        case Stdio():
            return f"check its command in {server.at}"
        case _:
            return f"check its url and headers in {server.at}"
