"""A session with servers, the model that calls their tools, and the person who is asked about them."""

import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from agent_core.assembly import SessionRequest, open_session
from agent_core.events import (
    Notice,
    PermissionRequested,
    RunEnded,
    ServerSubject,
    TargetSubject,
    ToolOutputDelta,
)
from agent_core.messages import ToolResultMessage, text_of
from agent_core.session import AgentSession
from tests.support.provider import LoopbackProvider, write_config
from tests.support.session.folders import Folder

HERE = Path(__file__).parent
GOOD = HERE / "mcp_servers.py"
ROGUE = HERE / "mcp_rogue.py"
RUN_S = 60.0


def good(**more: Any) -> dict[str, Any]:
    """Name a real server of the library over stdio."""
    return {"command": sys.executable, "args": [str(GOOD)], **more}


def rogue(*habit: str, **more: Any) -> dict[str, Any]:
    """Name a server with a bad habit."""
    return {"command": sys.executable, "args": ["-I", str(ROGUE), *habit], **more}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Script one call of a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


class McpOffice:
    """Sessions with servers in one folder."""

    def __init__(self, folder: Folder, lab: LoopbackProvider) -> None:
        self.folder = folder
        self.lab = lab
        self.events: list[Any] = []
        self.configure()

    def configure(self, **settings: Any) -> None:
        """Write the user's settings."""
        chosen = {"sandbox": "off", "permission": {"mode": "ask"}, **settings}
        write_config(self.folder.dirs.config, self.lab, settings=chosen)

    def servers(self, **named: Any) -> None:
        """Write the user's own mcp.json."""
        self.folder.write("mcp.json", json.dumps({"mcpServers": named}))

    def project(self, name: str = ".mcp.json", **named: Any) -> None:
        """Write the project's."""
        path = self.folder.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": named}), "utf-8")

    @asynccontextmanager
    async def session(self, **more: Any) -> AsyncGenerator[AgentSession]:
        """Open a session."""
        request = SessionRequest(workspace=self.folder.root, env=self.folder.env, **more)
        async with open_session(request) as session:
            yield session

    async def run(
        self,
        session: AgentSession,
        *script: dict[str, Any],
        servers: str | None = None,
        calls: str | None = None,
        during: Any = None,
    ) -> list[str]:
        """Let the model do what the script says; gives the results of its calls.

        Args:
            session: The session.
            script: What the model answers, request by request; its last words are added.
            servers: The answer to questions about servers.
            calls: The answer to questions about calls.
            during: Called with each event.
        """
        self.lab.script([*script, {"text": "done"}])
        before = len(session.info.messages)
        reader = session.subscribe()
        await session.prompt("go")
        with anyio.fail_after(RUN_S):
            async for stamped in reader:
                event = stamped.event
                self.events.append(event)
                if during is not None:
                    during(event)
                if isinstance(event, PermissionRequested):
                    about_server = isinstance(event.request.subject, ServerSubject)
                    option = servers if about_server else calls
                    assert option is not None, f"nobody expected {event.request.title}"
                    session.permissions.answer(event.request.request, option)
                if isinstance(event, RunEnded):
                    break
        reader.close()
        said = session.info.messages[before:]
        return [text_of(one.content) for one in said if isinstance(one, ToolResultMessage)]

    def asked(self) -> list[ServerSubject]:
        """Give what was asked about servers."""
        subjects = [e.request.subject for e in self.events if isinstance(e, PermissionRequested)]
        return [one for one in subjects if isinstance(one, ServerSubject)]

    def asked_calls(self) -> list[TargetSubject]:
        """Give what was asked about calls."""
        subjects = [e.request.subject for e in self.events if isinstance(e, PermissionRequested)]
        return [one for one in subjects if isinstance(one, TargetSubject)]

    def notices(self) -> str:
        """Give all notices."""
        return "\n".join(one.text for one in self.events if isinstance(one, Notice))

    def output(self) -> str:
        """Give what tools showed while they ran."""
        return "".join(one.text for one in self.events if isinstance(one, ToolOutputDelta))

    def declared(self, request: int = 0) -> dict[str, Any]:
        """Give the tools as the provider got them, by name."""
        tools = self.lab.requests[request]["body"].get("tools", [])
        return {one["function"]["name"]: one["function"] for one in tools}


async def text_of_file(path: Path) -> str:
    """Wait until a server has left a file, and give what it says."""
    with anyio.fail_after(RUN_S):
        while not await anyio.Path(path).exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.02)
    return await anyio.Path(path).read_text("utf-8")


def free_port() -> int:
    """Find a port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def http_server(port: int) -> Generator["subprocess.Popen[bytes]"]:
    """Run a real server over HTTP until the end of the context."""
    process = subprocess.Popen(
        [sys.executable, str(GOOD), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            continue
        return
    raise AssertionError("the server ended")
