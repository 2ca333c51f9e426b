"""Language server of one connection; its handlers are registered before any heavy module is loaded."""

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from typing import Final, Literal, cast
from urllib.parse import quote

from lsprotocol import types

from tiller_server import VERSION
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.workspace_folders import Folders
from tiller_server.lsp.jsonrpc.document_params import changed_params, opened_params
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import Params, as_object
from tiller_server.lsp.methods import (
    ACTION_KINDS,
    CHAT_FILE,
    COMMANDS,
    DIFF_SCHEME,
    METHODS,
    NOTIFICATIONS,
    server_capability,
)
from tiller_server.lsp.runtime import AgentConnection, Runtime

PLAIN_METHODS: Final = (
    types.WORKSPACE_EXECUTE_COMMAND,
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.TEXT_DOCUMENT_CODE_LENS,
    types.TEXT_DOCUMENT_INLINE_COMPLETION,
    types.WORKSPACE_TEXT_DOCUMENT_CONTENT,
)
"""Standard methods that are served raw: a text in the place of a list of arguments would be taken for characters."""

_log = logging.getLogger(__name__)


def chat_name(params: Mapping[str, object]) -> str:
    """Return how the URI of the chat file ends."""
    options: Mapping[str, object] = params
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
        self._loaded: AgentConnection | None = None
        self._register()

    async def loaded(self) -> AgentConnection:
        """Return the loaded half of this connection."""
        agent = await self._runtime.agent()
        if self._loaded is None:
            self._loaded = agent.connect(
                self.connection, self.mirror, self.folders, origin=self.origin
            )
            self.connection.on_close(self._loaded.detach)
        return self._loaded

    def _register(self) -> None:
        connection = self.connection
        for method in (*METHODS, *PLAIN_METHODS):
            connection.add_agent_method(method, partial(self._call, method))
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
        for method in (*NOTIFICATIONS, types.WORKSPACE_DID_CHANGE_CONFIGURATION):
            connection.add_agent_notification(method, partial(self._call, method))

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

    async def _did_open(self, params: Params) -> None:
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
        if "inlineCompletion" in document:
            capabilities.inline_completion_provider = True
        if "textDocumentContent" in workspace:
            offered = capabilities.workspace or types.WorkspaceOptions()
            offered.text_document_content = types.TextDocumentContentOptions(schemes=[DIFF_SCHEME])
            capabilities.workspace = offered

    async def _did_change(self, params: Params) -> None:
        repaired, version = changed_params(params)
        read = self.connection.protocol.read(types.TEXT_DOCUMENT_DID_CHANGE, repaired)
        self.mirror.did_change(read, version=version)

    async def _chat(self, change: Literal["opened", "saved"], document: Document | None) -> None:
        """Report the chat file that it was opened or saved; for other documents nothing is loaded."""
        if document is None or not document.uri.endswith(chat_name(self.connection.client_params)):
            return
        await (await self.loaded()).report_chat(change, document)

    async def _notebook(self, take: Callable[[str], None], params: Params) -> None:
        """Note which notebooks are open; their cells are nobody's business."""
        uri = (as_object(params.get("notebookDocument")) or {}).get("uri")
        if isinstance(uri, str):
            take(uri)

    async def _did_change_folders(self, params: Params) -> None:
        if self.folders.changed(params) and self._loaded is not None:
            await self._loaded.follow_roots()

    async def _call(self, method: str, params: Params) -> object:
        return await (await self.loaded()).call(method, params)
