"""A client made with the Python SDK of the Agent Client Protocol."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.interfaces import Agent
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)

from tests.support.clients.server import Ground

__all__ = ["PythonClient", "python_client", "text_block"]


class PythonClient:
    """A client made with the Python SDK; it allows everything once, answers for files from the disk, and has no terminals."""

    def __init__(self) -> None:
        self.said = ""
        self.asked = 0
        self.written: list[str] = []
        self.works = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text
        if getattr(update, "status", None) == "in_progress":
            self.works.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        self.asked += 1
        option = next(one for one in options if one.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def read_text_file(
        self, session_id: str, path: str, line: Any = None, limit: Any = None, **_: Any
    ) -> ReadTextFileResponse:
        try:
            return ReadTextFileResponse(content=await asyncio.to_thread(Path(path).read_text))
        except OSError as error:
            raise RequestError.resource_not_found(path) from error

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        self.written.append(content)
        await asyncio.to_thread(Path(path).write_text, content)
        return WriteTextFileResponse()


@asynccontextmanager
async def python_client(
    ground: Ground, command: Sequence[str]
) -> AsyncGenerator[tuple[PythonClient, Agent]]:
    """Start `tiller acp` from the Python SDK and introduce the client."""
    client = PythonClient()
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with spawn_agent_process(
        cast("Client", cast("object", client)),
        *command,
        env=dict(ground.env),
        cwd=ground.root,
        use_unstable_protocol=True,
    ) as (agent, _):
        await agent.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities(fs=files)
        )
        yield client, agent
