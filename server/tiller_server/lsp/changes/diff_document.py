"""Pending changes as one document: a file that is kept up to date, or a virtual document."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_core.events import ChangesUpdated, RunEnded
from agent_core.kernel.errors import TillerError
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.lsp.changes.diagnostics import DisplayedSession
from tiller_server.lsp.changes.diff_text import HEAD, diff_text
from tiller_server.lsp.changes.session_watch import DebouncedWatch
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.jsonrpc.errors import REQUEST_FAILED, RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.methods import DIFF_SCHEME
from tiller_server.lsp.overlay.scratch_file import ScratchFile, workspace_scratch_file

NAME: Final = ".tiller/changes.diff"
URI: Final = f"{DIFF_SCHEME}:/changes.diff"
PAUSE_S: Final = 0.5
"""How long changes are collected before the document is made anew."""
REFRESH: Final = "workspace/textDocumentContent/refresh"
SHOW_S: Final = 5.0

_log = logging.getLogger(__name__)


class DiffDocument:
    """The diff as one client has it. The file is made when the user first asks for it, and kept up to date from then on."""

    def __init__(self, connection: LspConnection, editor: Editor, *, redactor: Redactor) -> None:
        self._connection = connection
        self._editor = editor
        self._places: dict[Path, ScratchFile] = {}
        self._redactor = redactor
        self._is_virtual = has_capability(
            connection.client_params, "workspace", "textDocumentContent"
        )
        self._can_show = has_capability(connection.client_params, "window", "showDocument")
        self._following = DebouncedWatch(ChangesUpdated, RunEnded, pause_s=PAUSE_S)
        self._is_shown = False
        self._turn = anyio.Lock()

    def is_diff(self, uri: str) -> bool:
        """Return whether a document is the diff."""
        return uri == URI or uri.endswith(f"/{NAME}")

    async def text(self, open_session: DisplayedSession) -> str:
        """Return the diff as it is now, without secrets."""
        try:
            found = await open_session.session.changes.list()
        except TillerError as error:
            _log.warning("What waits cannot be listed: %s", error)
            return HEAD
        make = partial(diff_text, found.files, root=open_session.root)
        return await to_thread.run_sync(lambda: self._redactor.text(make()))

    async def show(self, open_session: DisplayedSession) -> str:
        """Bring the document up to date and show it where the editor can be asked to; give its URI.

        Raises:
            RpcError: The file cannot be written.
        """
        self._is_shown = True
        uri = URI
        if not self._is_virtual:
            if why := await self._write(open_session):
                message = f"{NAME} was not written: {why}"
                raise RpcError(REQUEST_FAILED, message, {"kind": "EditRefused"})
            uri = (open_session.root / NAME).as_uri()
        params = {"uri": uri, "external": False, "takeFocus": True}
        with suppress(RpcError, TimeoutError, ConnectionError):
            if self._can_show:
                await self._connection.request("window/showDocument", params, timeout_s=SHOW_S)
        return uri

    async def follow(self, open_session: DisplayedSession) -> None:
        """Keep the document up to date until the session is over or the client has left."""
        await self._following.follow(open_session.session, partial(self._renew, open_session))

    def close(self) -> None:
        """Stop; the client has left."""
        self._following.close()

    # ------------------------------------------------------------------ keeping it up to date

    async def _renew(self, open_session: DisplayedSession) -> None:
        if self._is_virtual:
            if self._is_shown:
                with suppress(RpcError, TimeoutError, ConnectionError):
                    params = {"uri": URI}
                    await self._connection.request(REFRESH, params, timeout_s=SHOW_S)
            return
        path = open_session.root / NAME
        if not self._is_shown and not await to_thread.run_sync(path.is_file):
            return
        if why := await self._write(open_session):
            _log.info("%s is left as it is: %s", NAME, why)

    async def _write(self, open_session: DisplayedSession) -> str | None:
        """Write the file, in the editor where it is open there; None when it was, else why it was left."""
        async with self._turn:
            return await self._written(open_session.root, await self.text(open_session))

    async def _written(self, root: Path, text: str) -> str | None:
        place = self._places.get(root)
        if place is None:
            place = self._places[root] = workspace_scratch_file(root, NAME)
            place.files.attach(self._editor)
        try:
            await place.resolve()
            if place.path != root / NAME:
                return "it leads somewhere else"
            seen = await place.read()
            base = seen.base
            if base is not None and base.text == text:
                return None
            if base is not None and not base.text.startswith(HEAD):
                return "somebody else wrote it"
            buffer = await place.files.opened.find(place.path)
            if buffer is not None and buffer.state == "dirty":
                return "somebody works in it"
            _ = await place.write(text, seen=seen)
        except TillerError as error:
            return str(error)
        return None


def has_capability(params: Mapping[str, object], *names: str) -> bool:
    """Return whether a client declared something, by its place in the capabilities."""
    capability: object = params.get("capabilities")
    for name in names:
        capability = (as_object(capability) or {}).get(name)
    marker = as_object(capability)
    return capability is True or (marker is not None and marker.get("support") is not False)
