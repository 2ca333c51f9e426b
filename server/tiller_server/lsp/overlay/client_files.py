"""Files of clients without document sync: read and written through the client, as documents that are pulled on demand."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
from lsprotocol import types
from msgspec.structs import replace
from typing_extensions import override

from agent_core.kernel import SessionId
from agent_core.kernel.errors import (
    EditRefused,
    EditUnverified,
    FileMissing,
    WorkspaceError,
)
from agent_core.kernel.threads import uncancelled
from agent_core.workspace import FileBytes, Files, FileText, WriteResult
from agent_core.workspace.files.disk.disk_files import PathLocks
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.editors.capabilities import EditorCapabilities
from tiller_server.lsp.editors.edit_verification import (
    ApplyResponse,
    edit_error,
    match_edit,
    without_ends,
)
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.editors.requests import DocumentEdit, EditClient, EditorRequests, Timing
from tiller_server.lsp.edits.document_writer import NEW
from tiller_server.lsp.edits.overlays import Overlays
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_object

FILE_READ: Final = "agent/file/read"
FILE_WRITE: Final = "agent/file/write"
MOST_BYTES: Final = 8 * 1024 * 1024
"""Larger files are not read through a client: an answer has to fit into a frame."""
MOST_DOCUMENTS: Final = 64
"""So many files of a client are remembered; another one replaces the one that was used least recently."""
MOST_FAILURES: Final = 3
"""So often in a row a client may fail to answer; then it is not asked again."""
LOOK_S: Final = 0.2
"""After it, a file that was not as written is read once more: some clients answer first and write then."""
NOT_AS_WRITTEN: Final = "the editor reported success, but the file is not as written"
_QUIRKS: Final[Mapping[str, bool]] = {"lateUndoSteps": False}

_log = logging.getLogger(__name__)


class _FileRequests(EditorRequests):
    """Writes whole files through a client, and reads them again."""

    def __init__(
        self,
        client: EditClient,
        capabilities: EditorCapabilities,
        timing: Timing,
        *,
        owner: "FileClient",
    ) -> None:
        super().__init__(client, capabilities, timing)
        self._owner = owner

    @override
    async def edit(self, one: DocumentEdit, *, label: str) -> ApplyResponse:
        _ = label
        before, uri = one.document.text, one.document.uri
        answer = await self._owner.send(uri, one.target)
        if await self._owner.has(uri, before, one.target) or not answer.applied:
            return answer
        await anyio.sleep(LOOK_S)
        if await self._owner.has(uri, before, one.target):
            return answer
        # The whole text was replaced: to try again would only change what the client made of it.
        return ApplyResponse(applied=None, reason=NOT_AS_WRITTEN)

    @override
    async def read(self, document: Document) -> tuple[str, int] | None:
        if document.path is not None:
            await self._owner.reread(document.path)
        return None


class FileClient:
    """One attached client that reads or writes files on request.

    Its documents are in a mirror of their own. They are read again whenever one of them is looked for, so the edits of
    open documents serve it too: with their preconditions, merges, verification and undo tracking.
    """

    def __init__(
        self,
        attached: Editor,
        disk: Files,
        *,
        session: Callable[[], SessionId | None],
    ) -> None:
        """Begin without documents.

        Args:
            attached: The editor of the client's connection.
            disk: Files below it.
            session: Returns the session that asks.
        """
        # Nobody reports typing, and no change arrives by itself: what is waited for is one more look at the file.
        timing = replace(attached.requests.timing, pause_s=0.0, verify_s=LOOK_S, refused_s=0.0)
        declared = attached.capabilities
        self.attached: Final = attached
        self._client = attached.requests.client
        self._disk = disk
        self._session = session
        self._locks = PathLocks()
        self._failures = 0
        requests = _FileRequests(self._client, _abilities(declared), timing, owner=self)
        self.editor: Final = Editor(
            self._client, Mirror(), name=attached.name, quirks=_QUIRKS, requests=requests
        )
        self._reads = declared.reads_files
        self.writes: Final = declared.writes_files

    @property
    def is_given_up(self) -> bool:
        """Whether it failed too often to be asked again."""
        return self._failures >= MOST_FAILURES

    async def refresh(self, path: Path) -> None:
        """Read a file through the client; without an answer it counts as closed there, and the disk's text is used."""
        await self._refresh(path, is_open=False)

    async def reread(self, path: Path) -> None:
        """Read a file that was written; without an answer the disk's text is what it has."""
        await self._refresh(path, is_open=True)

    async def has(self, uri: str, before: str, target: str) -> bool:
        """Read a file that was written; return whether the edit that makes `target` of `before` is in it."""
        if (path := path_of(uri)) is not None:
            await self.reread(path)
        now = self.editor.mirror.get(uri)
        return now is not None and match_edit(before, target, now.text).is_whole

    async def send(self, uri: str, text: str) -> ApplyResponse:
        """Ask the client to write a file; its answer does not prove the outcome."""
        limit_s = self.editor.requests.timing.answer_s
        try:
            result = await self._client.request(
                FILE_WRITE, self._params(uri, text=text), timeout_s=limit_s
            )
        except RpcError as error:
            return ApplyResponse(applied=False, reason=error.message)
        except (TimeoutError, ConnectionError) as error:
            self._failed(str(error))
            return ApplyResponse(applied=None, reason=str(error))
        return ApplyResponse(applied=as_object(result) is not None)

    async def _refresh(self, path: Path, *, is_open: bool) -> None:
        uri = path.as_uri()
        async with self._locks.hold(path):
            try:
                disk = await self._disk.read(path, limit_bytes=MOST_BYTES)
            except FileMissing:
                disk = None
            except WorkspaceError:
                self._close(uri)  # the disk says why it may not be used
                return
            text = None
            if not isinstance(disk, FileBytes):
                text = await self._text(uri, disk)
                if text is None and disk is not None and (is_open or not self._reads):
                    text = disk.text
            self._take(uri, text)

    async def _text(self, uri: str, disk: FileText | None) -> str | None:
        """Return the client's text; None: it has none, or did not answer."""
        if not self._reads or self.is_given_up:
            return None
        limit_s = self.editor.requests.timing.read_s
        try:
            result = await self._client.request(FILE_READ, self._params(uri), timeout_s=limit_s)
        except (RpcError, TimeoutError, ConnectionError) as error:
            self._failed(str(error))
            return None
        reply = as_object(result) or {}
        text = reply.get("text")
        if isinstance(text, str):
            self._failures = 0
            return text if disk is None else _with_ends_of(disk.text, text)
        if reply.get("missing") is True:
            self._failures = 0
        else:
            self._failed(f"its answer to {FILE_READ} cannot be read")
        return None

    def _params(self, uri: str, **more: str) -> Mapping[str, object]:
        session = self._session()
        return {"uri": uri, **more} if session is None else {"session": session, "uri": uri, **more}

    def _take(self, uri: str, text: str | None) -> None:
        """Record the client's text as if it had sent notifications; None: it has the file no longer."""
        mirror = self.editor.mirror
        now = mirror.get(uri)
        if text is None:
            self._close(uri)
        elif now is None:
            self._forget_oldest()
            item = types.TextDocumentItem(uri=uri, language_id="", version=0, text=text)
            mirror.did_open(types.DidOpenTextDocumentParams(text_document=item), version=None)
        elif now.text != text:
            identity = types.VersionedTextDocumentIdentifier(uri=uri, version=0)
            change = types.TextDocumentContentChangeWholeDocument(text=text)
            params = types.DidChangeTextDocumentParams(
                text_document=identity, content_changes=[change]
            )
            mirror.did_change(params, version=None)
        else:
            mirror.focused(uri)

    def _close(self, uri: str) -> None:
        if self.editor.mirror.get(uri) is not None:
            identity = types.TextDocumentIdentifier(uri=uri)
            self.editor.mirror.did_close(types.DidCloseTextDocumentParams(text_document=identity))

    def _forget_oldest(self) -> None:
        documents = self.editor.mirror.documents()
        if len(documents) >= MOST_DOCUMENTS:
            self._close(min(documents, key=lambda one: one.touched_at).uri)

    def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failures == MOST_FAILURES:
            name = self.editor.name
            _log.warning(
                "The client %r is not asked for files any more in this session: %s", name, why
            )


class ClientFiles:
    """The attached clients that read or write files on request."""

    def __init__(
        self, disk: Files, buffers: Overlays, *, session: Callable[[], SessionId | None]
    ) -> None:
        """Begin without clients.

        Args:
            disk: Files below the clients.
            buffers: Takes the documents of the clients beside those of editors.
            session: Returns the session that asks.
        """
        self._disk = disk
        self._buffers = buffers
        self._session = session
        self._clients: Sequence[FileClient] = ()

    def attach(self, attached: Editor) -> None:
        """Ask a client for files from now on."""
        if all(one.attached is not attached for one in self._clients):
            client = FileClient(attached, self._disk, session=self._session)
            self._clients = (*self._clients, client)
            self._buffers.attach(client.editor)

    def detach(self, attached: Editor) -> None:
        """Ask a client no longer."""
        for one in self._clients:
            if one.attached is attached:
                self._remove(one)

    async def refresh(self, path: Path) -> None:
        """Read a file through every client."""
        async with anyio.create_task_group() as group:
            for one in self._clients:
                group.start_soon(one.refresh, path)
        for one in self._clients:
            if one.is_given_up:
                self._remove(one)

    async def refresh_unsaved(self, folder: Path) -> None:
        """Read again what clients had unsaved at or below a folder."""
        for one in self._clients:
            for document in one.editor.mirror.documents():
                path = document.path
                if (
                    path is not None
                    and path.is_relative_to(folder)
                    and await self._differs(path, document)
                ):
                    await self.refresh(path)

    async def create(self, path: Path, text: str) -> WriteResult | None:
        """Have a client write a file that is not there yet; None: no client does, and nothing was done.

        Raises:
            WorkspaceError: Under the conditions of `Files.write`.
        """
        client = next((one for one in self._clients if one.writes), None)
        # Not every client makes folders.
        if client is None or not await self._is_folder(path.parent):
            return None
        if await self._disk_text(path) is not None:
            return None
        _ = await self._disk.resolve(str(path), "write")
        return await uncancelled(self._create(client, path, text))

    async def _create(self, client: FileClient, path: Path, text: str) -> WriteResult:
        uri = path.as_uri()
        answer = await client.send(uri, text)
        await client.reread(path)
        document = client.editor.mirror.get(uri)
        if document is None:
            raise _not_created(path, answer, client.editor.name)
        found = match_edit("", text, document.text)
        if (trouble := edit_error(found, answer, path=path)) is not None:
            raise trouble
        saved = await self._disk_text(path) == document.text
        return WriteResult(
            path=path,
            sha256=document.sha256,
            source="buffer",
            saved=saved,
            created=True,
            text=None if document.text == text else document.text,
            note=None if saved else NEW,
        )

    def _remove(self, client: FileClient) -> None:
        self._clients = tuple(one for one in self._clients if one is not client)
        self._buffers.detach(client.editor)

    async def _differs(self, path: Path, document: Document) -> bool:
        return await self._disk_text(path) != document.text

    async def _disk_text(self, path: Path) -> str | None:
        try:
            content = await self._disk.read(path, limit_bytes=MOST_BYTES)
        except WorkspaceError:
            return None
        return content.text if isinstance(content, FileText) else None

    async def _is_folder(self, path: Path) -> bool:
        try:
            return (await self._disk.stat(path)).kind == "folder"
        except WorkspaceError:
            return False


def _abilities(declared: EditorCapabilities) -> EditorCapabilities:
    """Return what edits may expect of the pulled documents of a client."""
    return EditorCapabilities(
        applies_edits=declared.writes_files,
        deletes=False,
        renames=False,
        takes_requests=False,
        saves_edits=False,
        review="none",
        reads=True,
        takes_versions=False,
        least_version=0,
        saves=False,
        reloads=True,
        edits_together=False,
        tells_of_each=False,
        saves_refactorings=False,
        prefers_disk=False,
        is_pulled=True,
    )


def _with_ends_of(disk: str, text: str) -> str:
    """Return a client's text with the line ends and the final newline of the disk: some clients leave them out."""
    if without_ends(disk) == without_ends(text):
        return disk
    if "\r" not in text and disk.count("\n") == disk.count("\r\n") > 0:
        text = text.replace("\n", "\r\n")
    if text and disk.endswith("\n") and not text.endswith("\n"):
        text += "\r\n" if disk.endswith("\r\n") else "\n"
    return text


def _not_created(path: Path, answer: ApplyResponse, name: str) -> WorkspaceError:
    reason = answer.reason.rstrip(".")
    if answer.applied is None:
        return EditUnverified(
            f"{path} was not created so far: {reason}. It may still come: look again."
        )
    if answer.applied:
        return EditRefused(f"{path} was not created, although {name} reported success.")
    why = f" ({reason})" if reason else ""
    return EditRefused(f"{path} was not created: {name} refused{why}.")
