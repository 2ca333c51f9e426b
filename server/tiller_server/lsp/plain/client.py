"""State of one client without an extension, and its code actions and code lenses."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tiller_server.lsp.changes.diff_document import has_capability
from tiller_server.lsp.clients.options import is_plain
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.operations import proposal_commands
from tiller_server.lsp.plain.chat.editor_chat import EditorChat
from tiller_server.lsp.plain.code_actions import (
    CodeActionRequest,
    CodeActionState,
    PlainCodeAction,
    in_chat,
    in_file,
    mergeable,
    read_code_action_request,
)
from tiller_server.lsp.plain.code_lenses import Lens, chat_lenses, file_lenses
from tiller_server.lsp.plain.comment_requests import MOST_LINES, CommentRequest, requests_in
from tiller_server.lsp.plain.last_location import LastLocation
from tiller_server.lsp.sessions.client import ConnectedClient

LINES: Final = 2_000
"""So many lines of a selection are looked through for comments that ask for something."""
_ENDS: Final = re.compile(r"\r\n|\n|\r")


class PlainClient:
    """The plain face of one connection."""

    def __init__(self, client: ConnectedClient) -> None:
        self.client = client
        self.chat = EditorChat(client)
        client.on_detach(self.chat.close)
        self.last_location = LastLocation(
            client.editor.mirror, is_ours=self.is_ours, root=self.root
        )
        plain = client.options.plain
        self._is_plain = is_plain(client.connection.client_params, client.options)
        self._has_actions = _chosen(plain and plain.actions, self._is_plain)
        self._has_lenses = _chosen(plain and plain.lens, self._is_plain)

    def is_ours(self, uri: str) -> bool:
        """Return whether a document is one that we make: the chat file, or the diff of what waits."""
        return self.chat.is_chat(uri) or self.client.change_display.diff.is_diff(uri)

    async def code_actions(self, params: dict[str, object]) -> list[PlainCodeAction]:
        """Answer `textDocument/codeAction`; opens no session and waits for nothing."""
        hints = self.client.change_display.hints.actions(params)
        fixes = self.client.change_display.findings.actions(params)
        review = [*hints, *fixes, *await proposal_commands.actions(self.client, params)]
        asked = read_code_action_request(params)
        if asked is None or not self._has_actions:
            return review
        chat = self.chat
        if chat.is_chat(asked.uri):
            return in_chat(asked, self._now(), chat.actions(*asked.lines0))
        if self.client.change_display.diff.is_diff(asked.uri):
            return in_chat(asked, self._now(), ())
        self.last_location.record(asked.uri, asked.lines0)
        if self.last_location.place(asked.uri) is None:
            return review
        return [*review, *in_file(asked, self._now(asked))]

    async def code_lenses(self, params: dict[str, object]) -> list[Lens]:
        """Answer `textDocument/codeLens`."""
        uri = (as_object(params.get("textDocument")) or {}).get("uri")
        if not self._has_lenses or not isinstance(uri, str):
            return []
        chat, now = self.chat, self._now()
        if chat.is_chat(uri):
            return chat_lenses(now, chat.lenses())
        return file_lenses(now, self.client.change_display.hints.of(uri))

    async def content(self, params: dict[str, object]) -> dict[str, str]:
        """Answer `workspace/textDocumentContent`: the diff of what waits, which is no file then."""
        _ = params
        bound = self.client.bound
        return {"text": "" if bound is None else await self.client.change_display.diff.text(bound)}

    def show_message(self, text: str, *, kind: int = 3) -> None:
        """Show the user a sentence, unless the client is one that shows answers and events in its own way.

        Args:
            text: The sentence.
            kind: As LSP counts: 1 an error, 3 news.
        """
        if self._has_actions or not self.client.subscriptions:
            message_params = {"type": kind, "message": f"Tiller: {text}"}
            _ = self.client.connection.notify("window/showMessage", message_params)

    @property
    def can_show(self) -> bool:
        """Whether the editor opens documents and pages when it is asked to."""
        return has_capability(self.client.connection.client_params, "window", "showDocument")

    def root(self) -> Path | None:
        """Return the folder that paths are relative to; None: none is open."""
        return self.client.folders.first

    def requests(self, uri: str, lines0: tuple[int, int] | None) -> Sequence[CommentRequest]:
        """Return the comments of an open document that ask for something, on some lines or all."""
        document = self.client.editor.mirror.get(uri)
        if document is None:
            return ()
        if lines0 is None:
            rows = _ENDS.split(document.text)
            return requests_in(rows, first_line0=0, last_line0=len(rows) - 1)
        return _requests_near(document, *lines0)

    def _now(self, asked: CodeActionRequest | None = None) -> CodeActionState:
        bound = self.client.bound
        requests = () if asked is None else self.requests(asked.uri, asked.lines0)
        if bound is None:
            return CodeActionState(requests=requests)
        seen = bound.session.info.snapshot()
        return CodeActionState(
            is_running=seen.state != "idle",
            has_changes=seen.changes.unreviewed > 0,
            has_task_changes=bool(mergeable(seen.tasks)),
            lacks_model=bound.session.models.current is None,
            requests=requests,
        )


def _requests_near(document: Document, first0: int, last0: int) -> Sequence[CommentRequest]:
    """Look at some lines and those around them only: documents may be large, and this is asked at every step."""
    base0 = max(0, first0 - MOST_LINES)
    last0 = min(last0, first0 + LINES)
    start = document.lines.offset(base0, 0)
    end = document.lines.offset(last0 + MOST_LINES + 1, 0)
    rows = _ENDS.split(document.text[start:end])
    near = requests_in(rows, first_line0=first0 - base0, last_line0=last0 - base0)
    return tuple(one.moved(base0) for one in near)


def _chosen(said: bool | None, by_default: bool) -> bool:  # noqa: FBT001 - a setting and what it is without
    return by_default if said is None else said
