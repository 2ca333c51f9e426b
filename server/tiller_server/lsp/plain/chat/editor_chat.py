"""The chat file as one editor has it: how somebody talks with the agent who has plain LSP and nothing of ours."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_core.kernel import JsonObject, JsonValue, MessageId, SystemClock, uuid7
from agent_core.resources.paths import app_paths
from agent_core.transcript import AnyEntry
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.operations.transcript import full_branch
from tiller_server.lsp.overlay.scratch_file import (
    fallback_scratch_file,
    scratch_path,
    workspace_scratch_file,
)
from tiller_server.lsp.plain.chat.chat_file import ChatFile
from tiller_server.lsp.plain.chat.format import ChatPiece, draft_of, plain
from tiller_server.lsp.plain.chat.pieces import line
from tiller_server.lsp.plain.chat.question_actions import actions, lenses
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession, show_error_message
from tiller_server.lsp.sessions.prompt_submission import submit_as_client

SHOW: Final = "window/showDocument"
SHOW_S: Final = 2.0
"""How long an editor may take to show the file."""
FOUND: Final = (
    "Tiller: these words stood in the chat file when it was opened, so a save alone does not send them. "
    "Run tiller.send to send them, or change them and save."
)

_log = logging.getLogger(__name__)


class EditorChat:
    """Use of a session's chat file by one editor."""

    def __init__(self, client: ConnectedClient) -> None:
        """Begin without a file: it is made when it is first used."""
        self._client = client
        self._file: ChatFile | None = None
        self._turn = anyio.Lock()
        self._found: dict[str, str] = {}
        self.partly: Final[dict[str, dict[str, object]]] = {}
        """By question the answers of a form that is not answered whole."""

    def close(self) -> None:
        """The editor has left."""
        if self._file is not None:
            self._file.leave(self._client)

    def is_chat(self, uri: str) -> bool:
        """Return whether a document is the chat file."""
        path = path_of(uri)
        first = self._client.folders.first
        if path is None or first is None:
            return False
        paths = {scratch_path(first, self._chosen)}
        if self._file is not None:
            paths |= {
                self._file.place.path,
                scratch_path(self._file.open_session.root, self._chosen),
            }
        return path in paths

    async def open(self, *, focus: bool) -> Path:
        """Make the file if it is missing, and show it where the editor can be asked to; give where it is.

        Args:
            focus: The user is taken there.

        Raises:
            RpcError: There is no session, and none can be opened.
        """
        file = await self._joined()
        await file.flush()
        await self._show(file.place.path, focus=focus)
        return file.place.path

    async def submit(self, text: str, *, note: str | None = None) -> JsonObject:
        """Send a prompt, and write it into the chat file as the user's; the answer appears there.

        Args:
            text: The prompt.
            note: The text for the file in place of a long prompt.

        Raises:
            RpcError: The prompt was not accepted.
        """
        shown = plain(self._client.host.redactor.text(note or text)).strip()
        return await self._submit_text(text, ChatPiece(kind="you", text=shown))

    async def send(self) -> JsonObject | None:
        """Send what stands below the last `## You`, saved or not; None: nothing does that was not sent.

        Raises:
            RpcError: It was not taken.
        """
        async with self._turn:
            text = await self._waiting()
            if not text:
                return None
            return await self._submit_text(text, ChatPiece(kind="you", text=text, from_file=True))

    async def answer(self, give: Callable[[str], bool]) -> bool:
        """Return what stands below the last `## You` as an answer, to whom it is not said otherwise.

        Args:
            give: Takes the words, and tells whether they were taken; not called when there are none.
        """
        async with self._turn:
            text = await self._waiting()
            if not text or not give(text):
                return False
            (await self._joined()).note(ChatPiece(kind="you", text=text, from_file=True))
            return True

    async def opened(self, document: Document) -> None:
        """Record that the editor has opened the file; newer parts of the conversation are then written to it.

        Args:
            document: The document as it was opened.
        """
        async with self._turn:
            _ = self._found.pop(document.uri, None)
            if await to_thread.run_sync(_is_below, document):
                self._saved_as(document)
                self._found[document.uri] = await to_thread.run_sync(_draft, document.text)
            try:
                (await self._joined()).ring()
            except RpcError as error:
                _log.info("The chat file was opened, and there is no session: %s", error.message)

    async def saved(self, document: Document) -> None:
        """Send what the user wrote and saved; a save that repeats what was sent is passed over.

        Args:
            document: As it was saved.
        """
        self._saved_as(document)
        async with self._turn:
            try:
                await self._sent(document)
            except RpcError as error:
                show_error_message(self._client, f"Tiller: not sent: {error.message}")
                if self._file is not None:
                    self._file.note(line(f"Not sent: {error.message}"))

    async def _sent(self, saved: Document) -> None:
        file = await self._joined()
        file.ring()
        now = self._client.editor.mirror.get(saved.uri) or saved
        text = _to_send(
            file.unsent(await to_thread.run_sync(_draft, saved.text)),
            file.unsent(await to_thread.run_sync(_draft, now.text)),
        )
        if not text:
            return
        if self._found.get(saved.uri) == text:
            show_error_message(self._client, FOUND)
            return
        _ = self._found.pop(saved.uri, None)
        _ = await self._submit_text(text, ChatPiece(kind="you", text=text, from_file=True))

    def actions(self, first_line0: int, last_line0: int) -> list[dict[str, JsonValue]]:
        """Return the code actions for some lines of the file: answers to what is asked, and a stop."""
        document, bound = self._document(), self._client.bound
        if document is None or bound is None:
            return []
        return actions(bound.session, document.text, (first_line0, last_line0))

    def lenses(self) -> list[dict[str, JsonValue]]:
        """Return the code lenses of the file."""
        document, bound = self._document(), self._client.bound
        if document is None or bound is None:
            return []
        return lenses(bound.session, document.text)

    # ------------------------------------------------------------------ the session's file

    async def _waiting(self) -> str:
        """Return what stands below the last `## You` and was not sent."""
        file = await self._joined()
        document = self._document()
        if document is None:
            base = (await file.place.read()).base
            text = "" if base is None else base.text
        else:
            text = document.text
            _ = self._found.pop(document.uri, None)
        return file.unsent(await to_thread.run_sync(_draft, text))

    def _saved_as(self, document: Document) -> None:
        """Remember that the disk had a text: when it has another, this one is old and not unsaved."""
        self._client.editor.notes_of(document).on_disk = document.sha256

    @property
    def _chosen(self) -> str | None:
        options = self._client.options.plain
        return None if options is None else options.chat_file

    def _document(self) -> Document | None:
        documents = self._client.editor.mirror.documents()
        return next((one for one in documents if self.is_chat(one.uri)), None)

    async def _submit_text(self, text: str, turn: ChatPiece) -> JsonObject:
        file = await self._joined()
        message_id = MessageId(uuid7(SystemClock().now_ms()))
        async with file.sending(message_id, turn):
            taken = await submit_as_client(
                self._client, file.open_session, text, delivery="auto", message_id=message_id
            )
        return taken.answer()

    async def _joined(self) -> ChatFile:
        """Return the file of the session that this editor has now."""
        client = self._client
        open_session = await client.resolve_session()
        if self._file is not None and self._file.open_session is open_session:
            return self._file
        file = open_session.kept.chat
        if not isinstance(file, ChatFile):
            entries = await full_branch(client, None)
            file = open_session.kept.chat
            if not isinstance(file, ChatFile):
                file = self._made(open_session, entries)
        if self._file is not None:
            self._file.leave(client)
            file.note(line(f"Here goes on: {open_session.session.tree.title or 'another session'}"))
        self._file = file
        file.join(client)
        return file

    def _made(self, open_session: OpenSession, entries: Sequence[AnyEntry]) -> ChatFile:
        """Create the file of a session. It has no await, so that the file follows the session without a gap."""
        stored = {entry.id for entry in entries}
        latest = [entry for entry in open_session.session.info.entries if entry.id not in stored]
        file = open_session.kept.chat = ChatFile(
            open_session,
            [*entries, *latest],
            place=workspace_scratch_file(open_session.root, self._chosen),
            spare=fallback_scratch_file(open_session.root, app_paths(self._client.origin.env).data),
        )
        self._client.host.start(file.run, what="the chat file of a session")
        return file

    async def _show(self, path: Path, *, focus: bool) -> None:
        capabilities = as_object(self._client.connection.client_params.get("capabilities")) or {}
        window = as_object(capabilities.get("window")) or {}
        if (as_object(window.get("showDocument")) or {}).get("support") is not True:
            return
        params = {"uri": path.as_uri(), "external": False, "takeFocus": focus}
        try:
            _ = await self._client.connection.request(SHOW, params, timeout_s=SHOW_S)
        except (RpcError, TimeoutError, ConnectionError) as error:
            _log.info("The editor does not show the chat file: %s", error)


def _draft(text: str) -> str:
    draft = draft_of(text)
    return "" if draft is None else draft.text


def _to_send(saved: str, now: str) -> str:
    """Return the words that a save sends: those saved and still there. Newer words wait for their own save.

    Args:
        saved: The words when they were saved.
        now: The words now. Those that were sent meanwhile are gone from them; the same line may have grown.
    """
    if now == saved or now.startswith(f"{saved}\n"):
        return saved
    return now if saved.endswith(f"\n{now}") else ""


def _is_below(document: Document) -> bool:
    """Return whether the disk has the text of a document. Reads the disk."""
    try:
        below = b"" if document.path is None else document.path.read_bytes()
    except OSError:
        return False
    return plain(below.decode("utf-8", "replace")) == plain(document.text)
