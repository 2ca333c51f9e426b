"""Requests to one editor about its documents and files, and its answers."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from agent_core.kernel.values import Value
from agent_core.workspace.files.proxy import edit_origin
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.apply_request import EDIT_APPLY, edit_answers, edit_request
from tiller_server.lsp.editors.capabilities import EditorCapabilities
from tiller_server.lsp.editors.edit_verification import ApplyResponse
from tiller_server.lsp.jsonrpc.errors import METHOD_NOT_FOUND, RpcError
from tiller_server.lsp.jsonrpc.messages import as_array, as_object

APPLY_EDIT: Final = "workspace/applyEdit"
SAVE: Final = "agent/documents/save"
SHOW: Final = "window/showDocument"
READ: Final = "agent/documents/read"
DIAGNOSTICS: Final = "agent/diagnostics"

_NOTHING: Final[Mapping[str, object]] = {}
_log = logging.getLogger(__name__)


class EditClient(Protocol):
    """The connection, as far as edits need it."""

    @property
    def client_params(self) -> Mapping[str, object]:
        """The params of `initialize`."""
        ...

    async def request(
        self, method: str, params: object = None, *, timeout_s: float | None
    ) -> object:
        """Ask the client; raises RpcError, TimeoutError or ConnectionError."""
        ...


class DocumentEdit(Value, frozen=True, kw_only=True):
    """Edit of one document."""

    document: Document
    """As it was when the edit was made."""
    edits: list[dict[str, object]]
    """As LSP has them."""
    target: str
    """The whole text that they make."""
    was_clean: bool
    """Nothing in the document is unsaved."""


class Timing(Value, frozen=True, kw_only=True):
    """How long an editor is given, in seconds."""

    answer_s: float = 10.0
    """To answer an edit."""
    verify_s: float = 2.0
    """To tell of the change that it answered for, or to answer for the change that it told of."""
    refused_s: float = 0.25
    """To tell of a change although it refused."""
    pause_s: float = 0.4
    """Without typing, before an edit is sent."""
    patience_s: float = 2.0
    """To stop typing; then the edit is sent all the same."""
    undo_step_s: float = 10.5
    """Between two edits, where they would be one undo step otherwise; Emacs parts them every 10 s."""
    read_s: float = 2.0
    """To give the text of a document."""
    save_s: float = 5.0
    """To save."""


class _NoAnswerError(Exception):
    """An edit is out and nobody knows what became of it."""


class EditorRequests:
    """Sends requests to one editor; each takes a bounded time. An answer alone does not prove the outcome."""

    def __init__(
        self, client: EditClient, capabilities: EditorCapabilities, timing: Timing
    ) -> None:
        self.client: Final = client
        self.capabilities: Final = capabilities
        self.timing: Final = timing

    async def edit(self, one: DocumentEdit, *, label: str) -> ApplyResponse:
        """Ask for an edit of one document, for the version that it has.

        Args:
            one: The edit.
            label: Label that the editor may show in its undo menu.
        """
        if not (self.capabilities.takes_versions or self.capabilities.takes_requests):
            return await self._ask_for({"changes": {one.document.uri: one.edits}}, label)
        change = self._change([one])
        if self.capabilities.takes_requests:
            answers = await self._request_for([one], change, label)
            if answers is not None:
                return answers[0]
        return await self._ask_for(change, label)

    async def edit_all(
        self, parts: Sequence[DocumentEdit], *, label: str
    ) -> Sequence[ApplyResponse] | None:
        """Ask for one edit of several documents, of an editor whose abilities allow that.

        Returns:
            The answer for each; None: the editor has done nothing, perhaps because of one of them. The others may be
            requested again.
        """
        change = self._change(parts)
        if self.capabilities.tells_of_each:
            answers = await self._request_for(parts, change, label)
            if answers is not None:
                return answers
        if not self.capabilities.edits_together:
            return None
        is_clean = all(one.was_clean for one in parts)
        saves = self.capabilities.saves_refactorings and len(parts) > 1 and is_clean
        more = {"metadata": {"isRefactoring": True}} if saves else {}
        answer = await self._ask_for(change, label, more)
        return None if answer.is_about_versions else [answer] * len(parts)

    def _change(self, parts: Sequence[DocumentEdit]) -> Mapping[str, object]:
        changes = [
            {
                "textDocument": {
                    "uri": one.document.uri,
                    "version": self._named(one.document.version),
                },
                "edits": one.edits,
            }
            for one in parts
        ]
        return {"documentChanges": changes}

    def _named(self, version: int | None) -> int | None:
        least = self.capabilities.least_version
        return least if version is not None and 0 <= version < least else version

    async def _request_for(
        self, parts: Sequence[DocumentEdit], change: Mapping[str, object], label: str
    ) -> Sequence[ApplyResponse] | None:
        """Ask by `agent/edit/apply`; None: the editor does not know it after all."""
        documents = [one.document for one in parts]
        params = edit_request(
            documents, change, label=label, origin=edit_origin(), capabilities=self.capabilities
        )
        try:
            return edit_answers(await self._within_time(EDIT_APPLY, params), documents)
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                return None
            return [ApplyResponse(applied=False, reason=error.message)] * len(parts)
        except _NoAnswerError as error:
            return [ApplyResponse(applied=None, reason=str(error))] * len(parts)

    async def operate(self, operation: Mapping[str, object], *, label: str) -> ApplyResponse:
        """Request one operation on files and return the editor's answer; only the disk shows whether it is true.

        Args:
            operation: Operation in LSP's form, such as `{"kind": "delete", "uri": …}`.
            label: Label that the editor may show in its undo menu.
        """
        return await self._ask_for({"documentChanges": [operation]}, label)

    async def save(self, document: Document, *, reason: str) -> str | None:
        """Have a document saved, if it still is what it was; None when the editor says it is, else why not."""
        item = {"uri": document.uri, "version": document.version}
        params = {"items": [item], "reason": reason}
        try:
            result = await self.client.request(SAVE, params, timeout_s=self.timing.save_s)
        except (RpcError, TimeoutError, ConnectionError) as error:
            return str(error)
        results = as_array((as_object(result) or {}).get("results")) or ()
        # One was asked for: how its URI is spelt in the answer does not matter.
        outcome = (as_object(results[0]) or {}) if len(results) == 1 else {}
        if outcome.get("saved") is True:
            return None
        why = outcome.get("why")
        return why if isinstance(why, str) and why else "the editor did not say why"

    async def read(self, document: Document) -> tuple[str, int] | None:
        """Ask for the text of a document and its version; None when the editor cannot say."""
        if not self.capabilities.reads:
            return None
        params = {"uri": document.uri}
        try:
            result = await self.client.request(READ, params, timeout_s=self.timing.read_s)
        except (RpcError, TimeoutError, ConnectionError) as error:
            _log.info("The editor did not give the text of %r: %s", document.uri, error)
            return None
        reply = as_object(result) or {}
        text, version = reply.get("text"), reply.get("version")
        return (text, version) if isinstance(text, str) and isinstance(version, int) else None

    async def show(self, path: Path) -> bool:
        """Ask for a file to be opened, without taking the user away from where they are; tell whether it was."""
        params = {"uri": path.as_uri(), "external": False, "takeFocus": False}
        try:
            result = await self.client.request(SHOW, params, timeout_s=self.timing.verify_s)
        except (RpcError, TimeoutError, ConnectionError):
            return False
        return (as_object(result) or {}).get("success") is True

    async def diagnostics(self, params: Mapping[str, object], *, timeout_s: float) -> object:
        """Ask for the problems that it shows; raises RpcError, TimeoutError or ConnectionError."""
        return await self.client.request(DIAGNOSTICS, params, timeout_s=timeout_s)

    async def _ask_for(
        self, change: Mapping[str, object], label: str, more: Mapping[str, object] = _NOTHING
    ) -> ApplyResponse:
        params = {"label": label, "edit": change, **more}
        try:
            result = await self._within_time(APPLY_EDIT, params)
        except RpcError as error:
            return ApplyResponse(applied=False, reason=error.message)
        except _NoAnswerError as error:
            return ApplyResponse(applied=None, reason=str(error))
        reply = as_object(result) or {}
        reason = reply.get("failureReason")
        return ApplyResponse(
            applied=reply.get("applied") is True,
            reason=reason if isinstance(reason, str) else "",
        )

    async def _within_time(self, method: str, params: object) -> object:
        """Ask for an edit; raises RpcError for a no, _NoAnswerError when nobody knows."""
        try:
            return await self.client.request(method, params, timeout_s=self.timing.answer_s)
        except TimeoutError as error:
            message = f"the editor did not answer within {self.timing.answer_s:g} s"
            raise _NoAnswerError(message) from error
        except ConnectionError as error:
            message = "the connection to the editor was lost"
            raise _NoAnswerError(message) from error
