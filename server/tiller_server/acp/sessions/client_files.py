"""Files of a client: requests of the agent for the text of a file become requests to the client."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object
from tiller_server.acp.errors import AcpError, PeerGone
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.sessions.session import AcpSession
from tiller_server.agent_client.connection import AgentRefused, RequestHandler

LONGEST_S: Final = 30.0
"""The agent withdraws its request before."""
READ: Final = "fs/read_text_file"
WRITE: Final = "fs/write_text_file"


class ClientFileRequests:
    """Answers of one session to requests for files. The agent verifies what the client reports."""

    def __init__(self, peer: JsonRpcPeer, session: AcpSession) -> None:
        self._peer = peer
        self._session = session

    @property
    def handlers(self) -> Mapping[str, RequestHandler]:
        """The handlers, by method of the agent."""
        return {"agent/file/read": self.read, "agent/file/write": self.write}

    async def read(self, params: JsonObject) -> JsonObject:
        """Answer `agent/file/read`."""
        path = _path(params)
        try:
            result = as_object(await self._ask(READ, {"path": str(path)}))
        except AgentRefused as error:
            # Clients report a missing file with different codes.
            if error.code is None or await asyncio.to_thread(path.exists):
                raise
            return {"missing": True}
        content = result.get("content")
        if not isinstance(content, str):
            message = f"the client's answer to {READ} has no text"
            raise AgentRefused(message)
        return {"text": content}

    async def write(self, params: JsonObject) -> JsonObject:
        """Answer `agent/file/write`."""
        text = params.get("text")
        _ = await self._ask(WRITE, {"path": str(_path(params)), "content": text})
        return {}

    async def _ask(self, method: str, params: JsonObject) -> JsonValue:
        await self._session.begun()
        asked: JsonObject = {"sessionId": self._session.id, **params}
        try:
            return await self._peer.request(method, asked, within_s=LONGEST_S)
        except PeerGone as error:
            raise AgentRefused(str(error)) from error
        except AcpError as error:
            raise AgentRefused(str(error), code=error.code) from error


def _path(params: JsonObject) -> Path:
    """Return the path of a file URI that the agent has made."""
    return Path(unquote(urlsplit(str(params.get("uri"))).path))
