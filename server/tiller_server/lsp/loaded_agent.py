"""The half of the front end that is loaded after the handshake: the host of all sessions, and the handlers of methods."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

from lsprotocol import types

from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.workspace_folders import Folders
from tiller_server.lsp.feature_table import FEATURES
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import Params
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.table import execute
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.host import SessionHost
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.process.config import ServerConfig

PLAIN: Final[Mapping[str, Callable[[PlainClient, Params], Awaitable[object]]]] = {
    types.WORKSPACE_EXECUTE_COMMAND: execute,
    types.TEXT_DOCUMENT_CODE_ACTION: PlainClient.code_actions,
    types.TEXT_DOCUMENT_CODE_LENS: PlainClient.code_lenses,
    types.WORKSPACE_TEXT_DOCUMENT_CONTENT: PlainClient.content,
}


class LoadedConnection:
    """One connection, when the agent is loaded."""

    def __init__(self, host: SessionHost, client: ConnectedClient) -> None:
        self._host = host
        self._client = client
        self._plain: PlainClient | None = None

    async def call(self, method: str, params: Params) -> object:
        """Run the handler of a method; return its result as JSON.

        Raises:
            RpcError: The params do not fit the method, or the handler failed.
        """
        if (handler := PLAIN.get(method)) is not None:
            return await handler(self._plain_client(), params)
        match method:
            case types.TEXT_DOCUMENT_INLINE_COMPLETION:
                return await self._inline_completion(params)
            case types.WORKSPACE_DID_CHANGE_CONFIGURATION:
                return await self._host.configure(self._client, params)
            case _:
                return await FEATURES[method].serve(self._client, params)

    async def report_chat(self, change: Literal["opened", "saved"], document: Document) -> None:
        """Pass on that a document was opened or saved, if it is the chat file."""
        chat = self._plain_client().chat
        if chat.is_chat(document.uri):
            await (chat.opened if change == "opened" else chat.saved)(document)

    async def follow_roots(self) -> None:
        """Record that the client has opened or closed folders."""
        await self._host.follow_roots(self._client)

    async def detach(self) -> None:
        """End the subscriptions of the client, which has left; its sessions and their runs go on."""
        await self._client.detach()

    async def _inline_completion(self, params: Params) -> object:
        from tiller_server.lsp.operations.inline_completion import complete  # noqa: PLC0415 - at first use

        return await complete(self._client, params)

    def _plain_client(self) -> PlainClient:
        if self._plain is None:
            self._plain = PlainClient(self._client)
        return self._plain


class LoadedAgent:
    """The agent of a process, which all its connections share."""

    def __init__(self, config: ServerConfig, **hosting: Any) -> None:
        self._host = SessionHost(config, **hosting)

    async def run(self) -> None:
        """Hold all sessions until `close`."""
        await self._host.run()

    async def ready(self) -> None:
        """Wait until sessions can be opened."""
        await self._host.ready()

    async def close(self) -> None:
        """Settle all sessions."""
        await self._host.close()

    def sessions(self) -> Sequence[OpenSession]:
        """Return the sessions that are loaded."""
        return self._host.sessions()

    def figures(self) -> Mapping[str, float]:
        """Return figures for `tiller daemon metrics`."""
        return self._host.figures()

    def working(self) -> int:
        """Count the sessions in which something goes on: a run, a compaction, a command of the user."""
        seen = (one.session.info.snapshot() for one in self._host.sessions())
        return sum(1 for one in seen if one.state != "idle" or one.activity.bash)

    def connect(
        self,
        connection: LspConnection,
        mirror: Mirror,
        folders: Folders,
        *,
        origin: ClientEnvironment,
    ) -> LoadedConnection:
        """Create the loaded half of a connection."""
        client = self._host.connect(connection, mirror, folders, origin=origin)
        return LoadedConnection(self._host, client)
