"""Language server of one connection; its handlers are registered before any heavy module is loaded."""

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Any, cast
from urllib.parse import quote

from lsprotocol import types

from tiller_server import VERSION
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.workspace_folders import Folders
from tiller_server.lsp.jsonrpc.document_params import changed_params, opened_params
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.methods import (
    ACTION_KINDS,
    CHAT_FILE,
    COMMANDS,
    DIFF_SCHEME,
    METHODS,
    NOTIFICATIONS,
    server_capability,
)
from tiller_server.lsp.runtime import Runtime

_log = logging.getLogger(__name__)


def chat_name(params: Mapping[str, Any]) -> str:
    """Return how the URI of the chat file ends."""
    options: Mapping[str, Any] = params
    for name in ("initializationOptions", "agent", "plain"):
        options = as_object(options.get(name)) or {}
    chosen = options.get("chatFile")
    return quote(PurePath(chosen if isinstance(chosen, str) and chosen else CHAT_FILE).name)


class App:
    """Answers one client. Documents are mirrored from the first message on, whether or not the agent is loaded."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        origin: ClientEnvironment | None = None,
        connection: LspConnection | None = None,
    ) -> None:
        self.origin = origin or runtime.origin
        self.connection = connection or LspConnection("tiller", VERSION)
        self.mirror = Mirror()
        self.folders = Folders()
        self._runtime = runtime
        self._client: Any = None
        self._plain: Any = None
        self._register()

    async def client(self) -> Any:
        """Return the loaded half of this connection."""
        host = await self._runtime.host()
        if self._client is None:
            self._client = host.connect(
                self.connection, self.mirror, self.folders, origin=self.origin
            )
            self.connection.on_close(self._client.detach)
        return self._client

    def _register(self) -> None:
        connection = self.connection
        for method in METHODS:
            connection.add_agent_method(method, partial(self._call, method))
        # Raw: a text in the place of the list of arguments would be taken for a list of characters.
        connection.add_agent_method(types.WORKSPACE_EXECUTE_COMMAND, self._execute)
        connection.add_agent_method(types.TEXT_DOCUMENT_CODE_ACTION, self._code_actions)
        connection.add_agent_method(types.TEXT_DOCUMENT_CODE_LENS, self._code_lenses)
        connection.add_agent_method(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, self._content)
        connection.amend_capabilities(self._amend)
        mirror = self.mirror

        @connection.feature(types.TEXT_DOCUMENT_DID_OPEN)
        def did_open(params: types.DidOpenTextDocumentParams) -> None:
            mirror.did_open(params, version=params.text_document.version)

        @connection.feature(types.TEXT_DOCUMENT_DID_CHANGE)
        def did_change(params: types.DidChangeTextDocumentParams) -> None:
            mirror.did_change(params, version=params.text_document.version)

        # Raw wins over typed: some clients send null where they mean "left out", or versions that are none.
        connection.add_agent_notification(types.TEXT_DOCUMENT_DID_OPEN, self._did_open)
        connection.add_agent_notification(types.TEXT_DOCUMENT_DID_CHANGE, self._did_change)

        connection.add_agent_notification(
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._did_change_folders
        )
        connection.add_agent_notification(
            types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._did_change_configuration
        )
        for method in NOTIFICATIONS:
            connection.add_agent_notification(method, partial(self._notify, method))

        connection.add_agent_notification(
            types.NOTEBOOK_DOCUMENT_DID_OPEN, partial(self._notebook, mirror.notebooks.add)
        )
        connection.add_agent_notification(
            types.NOTEBOOK_DOCUMENT_DID_CLOSE, partial(self._notebook, mirror.notebooks.discard)
        )

        @connection.feature(types.TEXT_DOCUMENT_DID_SAVE)
        async def did_save(params: types.DidSaveTextDocumentParams) -> None:
            mirror.did_save(params)
            await self._chat("saved", mirror.get(params.text_document.uri))

        @connection.feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def did_close(params: types.DidCloseTextDocumentParams) -> None:
            mirror.did_close(params)

        @connection.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
        def cancelled(params: types.WorkDoneProgressCancelParams) -> None:
            connection.protocol.work_done.cancel(params.token)

    def _amend(self, result: types.InitializeResult) -> None:
        """Report what the agent can do, and start loading it: this answer goes out first."""
        given: object = result.capabilities.experimental
        experimental = cast("dict[str, object]", given) if isinstance(given, dict) else {}
        agent = server_capability()
        if self.origin.pid is not None:
            # Served by a process that outlives the client: what it starts goes on without it.
            agent["durable"] = {}
        result.capabilities.experimental = {**experimental, "agent": agent}
        result.capabilities.notebook_document_sync = types.NotebookDocumentSyncOptions(
            notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
        )
        result.capabilities.code_action_provider = types.CodeActionOptions(
            code_action_kinds=list(ACTION_KINDS)
        )
        result.capabilities.execute_command_provider = types.ExecuteCommandOptions(
            commands=list(COMMANDS)
        )
        self._amend_for_plain(result.capabilities)
        encoding: object = result.capabilities.position_encoding
        named = encoding.value if isinstance(encoding, Enum) else encoding
        self.mirror.use_encoding(str(named or "utf-16"))
        self.folders.began(self.connection.client_params)
        self._runtime.warm_up()

    async def _did_open(self, params: dict[str, Any]) -> None:
        repaired, version = opened_params(params)
        read = self.connection.protocol.read(types.TEXT_DOCUMENT_DID_OPEN, repaired)
        self.mirror.did_open(read, version=version)
        await self._chat("opened", self.mirror.get(read.text_document.uri))

    def _amend_for_plain(self, capabilities: types.ServerCapabilities) -> None:
        """Offer what only some editors know, to those."""
        declared = as_object(self.connection.client_params.get("capabilities")) or {}
        document = as_object(declared.get("textDocument")) or {}
        workspace = as_object(declared.get("workspace")) or {}
        if "codeLens" in document:
            capabilities.code_lens_provider = types.CodeLensOptions()
        if "textDocumentContent" in workspace:
            offered = capabilities.workspace or types.WorkspaceOptions()
            offered.text_document_content = types.TextDocumentContentOptions(schemes=[DIFF_SCHEME])
            capabilities.workspace = offered

    async def _did_change(self, params: dict[str, Any]) -> None:
        repaired, version = changed_params(params)
        read = self.connection.protocol.read(types.TEXT_DOCUMENT_DID_CHANGE, repaired)
        self.mirror.did_change(read, version=version)

    async def _chat(self, what: str, document: Document | None) -> None:
        """Report the chat file that something was done to it; of other documents nothing is loaded."""
        if document is None or not document.uri.endswith(chat_name(self.connection.client_params)):
            return
        chat = (await self._plain_client()).chat
        if chat.is_chat(document.uri):
            await (chat.opened if what == "opened" else chat.saved)(document)

    async def _notebook(self, take: Callable[[str], None], params: dict[str, Any]) -> None:
        """Note which notebooks are open; their cells are nobody's business."""
        uri = (as_object(params.get("notebookDocument")) or {}).get("uri")
        if isinstance(uri, str):
            take(uri)

    async def _did_change_folders(self, params: dict[str, Any]) -> None:
        if self.folders.changed(params) and self._client is not None:
            await self._client.host.follow_roots(self._client)

    async def _did_change_configuration(self, params: dict[str, Any]) -> None:
        client = await self.client()
        await client.host.configure(client, params)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        client = await self.client()
        _ = await self._runtime.notification(method).run(client, params)

    async def _call(self, method: str, params: dict[str, Any]) -> object:
        client = await self.client()
        return await self._runtime.feature(method).run(client, params)

    async def _plain_client(self) -> Any:
        client = await self.client()
        if self._plain is None:
            from tiller_server.lsp.plain.client import PlainClient  # noqa: PLC0415 - when it is used

            self._plain = PlainClient(client)
        return self._plain

    async def _code_actions(self, params: dict[str, Any]) -> object:
        return await (await self._plain_client()).code_actions(params)

    async def _code_lenses(self, params: dict[str, Any]) -> object:
        return await (await self._plain_client()).code_lenses(params)

    async def _content(self, params: dict[str, Any]) -> object:
        return await (await self._plain_client()).content(params)

    async def _execute(self, params: dict[str, Any]) -> object:
        from tiller_server.lsp.plain.commands.table import execute  # noqa: PLC0415 - when it is used

        return await execute(await self._plain_client(), params)
