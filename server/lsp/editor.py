"""One editor as edits see it: its documents, what it can do, and how it is asked."""

import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
from anyio import to_thread

from agent_core.workspace.adapters.path_locks import PathLocks
from server.lsp.abilities import abilities_of
from server.lsp.attention import Attention
from server.lsp.codec import as_array, as_object
from server.lsp.documents import Document, Mirror
from server.lsp.edit_outcome import Answer, Found, find_edit
from server.lsp.minimal_edits import minimal_edits
from server.lsp.positions import Lines
from server.lsp.quirks import quirks_of, wire_name
from server.lsp.rpc import RpcError

APPLY_EDIT: Final = "workspace/applyEdit"
SAVE: Final = "agent/documents/save"
DIAGNOSTICS: Final = "agent/diagnostics"

_log = logging.getLogger(__name__)


class Client(Protocol):
    """The connection, as far as edits need it."""

    @property
    def client_params(self) -> Mapping[str, Any]:
        """The params of `initialize`."""
        ...

    async def request(self, method: str, params: object = None, *, timeout_s: float | None) -> Any:
        """Ask the client; raises RpcError, TimeoutError or ConnectionError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
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
    save_s: float = 5.0
    """To save."""


@dataclass(slots=True, kw_only=True)
class Notes:
    """What is remembered of one open document, for as long as it is open."""

    epoch: int
    on_disk: str | None = None
    """Hash of a text that the document and the disk had at the same time."""
    ours: str | None = None
    """Hash of the text after our last edit, when everything unsaved in it is ours."""
    ours_over: str | None = None
    """Hash of the file that lay below it."""
    ours_at: int | None = None
    """Revision that our last edit made."""
    frozen_at: int | None = None
    """Revision at which an edit got lost: it may still come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of an edit."""

    answer: Answer
    found: Found | None
    """None when the document was closed."""
    now: Document | None


@dataclass(slots=True, kw_only=True)
class _Landing:
    """Watches for the moment at which a document has the wanted text, however short it is."""

    target: str
    scope: anyio.CancelScope
    grace_s: float
    has_come: bool = False

    def see(self, document: Document | None) -> None:
        if document is not None and not self.has_come and document.text == self.target:
            self.has_come = True
            # The text is the proof. The answer is waited for only so as not to leave it behind.
            self.scope.deadline = min(self.scope.deadline, anyio.current_time() + self.grace_s)


class Editor:
    """One attached editor. At most one edit of a document is under way, whoever asks for it."""

    def __init__(
        self, client: Client, mirror: Mirror, *, name: str, quirks: object, timing: Timing
    ) -> None:
        self.name: Final = name
        self.mirror: Final = mirror
        self._client = client
        self._quirks = quirks_of(name, quirks)
        self.abilities: Final = abilities_of(client.client_params, self._quirks)
        self.attention: Final = Attention()
        self._timing = timing
        self._turns = PathLocks()
        self._notes: dict[str, Notes] = {}

    @classmethod
    def of(cls, connection: Client, mirror: Mirror, *, timing: Timing | None = None) -> "Editor":
        """Make the editor of a connection that has been initialized."""
        params = connection.client_params
        name = (as_object(params.get("clientInfo")) or {}).get("name")
        options = as_object(params.get("initializationOptions")) or {}
        agent = as_object(options.get("agent")) or {}
        return cls(
            connection,
            mirror,
            name=name if isinstance(name, str) and name else "unknown",
            quirks=agent.get("quirks"),
            timing=timing or Timing(),
        )

    @property
    def blocking_dialogs(self) -> bool:
        """Nothing else happens in the editor while a question is open."""
        return self._quirks.blocking_dialogs

    def quirks_in_force(self) -> dict[str, bool]:
        """Give what is assumed of this editor, by the names that users may set."""
        return {wire_name(name): value for name, value in asdict(self._quirks).items()}

    def turn(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Wait until no other edit of a file is under way in this editor, and hold it off."""
        return self._turns.hold(path)

    def notes_of(self, document: Document) -> Notes:
        """Give what is remembered of a document; nothing when it was opened anew."""
        notes = self._notes.get(document.uri)
        if notes is None or notes.epoch != document.epoch:
            is_open = self.mirror.get
            self._notes = {uri: one for uri, one in self._notes.items() if is_open(uri)}
            notes = self._notes[document.uri] = Notes(epoch=document.epoch)
        return notes

    async def quiet(self, document: Document) -> None:
        """Wait for a pause in the user's typing, so that an edit does not become one undo step with it.

        Someone who types without a pause does not keep the edit away for ever.
        """
        mirror, timing = self.mirror, self._timing
        end = mirror.clock() + timing.patience_s
        while (now := mirror.get(document.uri)) is not None:
            left_s = end - mirror.clock()
            if self.attention.is_inserting(now.uri) and left_s > 0:
                await self.attention.changed(timeout_s=left_s)
                continue
            if now.revision == self.notes_of(now).ours_at:
                return
            left = min(now.changed_at + timing.pause_s, end) - mirror.clock()
            if left <= 0:
                return
            _ = await mirror.changed(now.uri, after=now.revision, timeout_s=left)

    async def apply(self, document: Document, target: str, *, label: str) -> Report:
        """Ask for the edit that gives a document another text, and look what came of it.

        Takes a bounded time. A caller that is cancelled meanwhile should finish this first: the edit is out.

        Args:
            document: As it was when the edit was made; the edit is for this version only.
            target: The text that it shall have.
            label: What the user may read in the undo menu.
        """
        edits = await to_thread.run_sync(_text_edits, document, target)
        now = self.mirror.get(document.uri)
        if now is None or now.revision != document.revision:
            answer = Answer(applied=False, reason="it changed before the edit was sent")
            return await self._report(document, target, answer, came=False)
        scope = anyio.CancelScope()
        asked_at = anyio.current_time()
        landing = _Landing(target=target, scope=scope, grace_s=self._timing.verify_s)
        with self.mirror.watch(document.uri, landing.see):
            answer = Answer(applied=None)
            with scope:
                answer = await self._ask(document, edits, label)
            return await self._settle(document, answer, landing, asked_at=asked_at)

    async def operate(self, operation: Mapping[str, object], *, label: str) -> Answer:
        """Ask for one operation on files, and give what the editor says of it; the disk tells whether it is true.

        Args:
            operation: As LSP has it, such as `{"kind": "delete", "uri": …}`.
            label: What the user may read in the undo menu.
        """
        return await self._ask_for({"documentChanges": [operation]}, label)

    async def gone(self, document: Document) -> None:
        """Wait until a document is closed or another one, but no longer than a refusal may take."""
        now = self.mirror.get(document.uri)
        if now is not None and now.revision == document.revision:
            wait_s = self._timing.refused_s
            _ = await self.mirror.changed(now.uri, after=now.revision, timeout_s=wait_s)

    async def save(self, document: Document, *, reason: str) -> str | None:
        """Have a document saved, if it still is what it was; None when the editor says it is, else why not."""
        item = {"uri": document.uri, "version": document.version}
        params = {"items": [item], "reason": reason}
        try:
            result = await self._client.request(SAVE, params, timeout_s=self._timing.save_s)
        except (RpcError, TimeoutError, ConnectionError) as error:
            return str(error)
        told = as_array((as_object(result) or {}).get("results")) or ()
        # One was asked for: how its URI is spelt in the answer does not matter.
        outcome = (as_object(told[0]) or {}) if len(told) == 1 else {}
        if outcome.get("saved") is True:
            return None
        why = outcome.get("why")
        return why if isinstance(why, str) and why else "the editor did not say why"

    async def diagnostics(self, params: Mapping[str, object], *, timeout_s: float) -> object:
        """Ask for the problems that it shows; raises RpcError, TimeoutError or ConnectionError."""
        return await self._client.request(DIAGNOSTICS, params, timeout_s=timeout_s)

    async def _ask(self, document: Document, edits: list[dict[str, object]], label: str) -> Answer:
        if self.abilities.takes_versions:
            target = {"uri": document.uri, "version": document.version}
            change: dict[str, object] = {
                "documentChanges": [{"textDocument": target, "edits": edits}]
            }
        else:
            change = {"changes": {document.uri: edits}}
        return await self._ask_for(change, label)

    async def _ask_for(self, change: Mapping[str, object], label: str) -> Answer:
        params = {"label": label, "edit": change}
        try:
            result = await self._client.request(APPLY_EDIT, params, timeout_s=self._timing.answer_s)
        except RpcError as error:
            return Answer(applied=False, reason=error.message)
        except TimeoutError:
            seconds = f"{self._timing.answer_s:g} s"
            return Answer(applied=None, reason=f"the editor did not answer within {seconds}")
        except ConnectionError:
            return Answer(applied=None, reason="the connection to the editor was lost")
        told = as_object(result) or {}
        reason = told.get("failureReason")
        return Answer(
            applied=told.get("applied") is True,
            reason=reason if isinstance(reason, str) else "",
        )

    async def _settle(
        self, document: Document, answer: Answer, landing: _Landing, *, asked_at: float
    ) -> Report:
        """Wait for the change that the answer speaks of, as long as it makes sense."""
        end = self._wait_until(answer, asked_at)
        while True:
            # Asked before looking, so that the last look comes after the time is up.
            is_last = anyio.current_time() >= end
            report = await self._report(document, landing.target, answer, came=landing.has_come)
            if is_last or report.now is None or (report.found and report.found.is_whole):
                return report
            left = max(0.0, end - anyio.current_time())
            after = report.now.revision
            _ = await self.mirror.changed(document.uri, after=after, timeout_s=left)

    def _wait_until(self, answer: Answer, asked_at: float) -> float:
        now = anyio.current_time()
        if answer.applied:
            return now + self._timing.verify_s
        if answer.applied is None:
            return now
        # Some editors show the edit and leave it to the user.
        by_hand = asked_at + self._timing.answer_s if "manual" in answer.reason.lower() else now
        return max(now + self._timing.refused_s, by_hand)

    async def _report(
        self, document: Document, target: str, answer: Answer, *, came: bool
    ) -> Report:
        now = self.mirror.get(document.uri)
        if came:
            return Report(answer=answer, found=Found(kind="exact"), now=now)
        if now is None:
            return Report(answer=answer, found=None, now=None)
        found = await to_thread.run_sync(find_edit, document.text, target, now.text)
        return Report(answer=answer, found=found, now=now)


def _text_edits(document: Document, target: str) -> list[dict[str, object]]:
    """Give the edits as LSP has them. Runs in a thread, so the lines are looked for anew."""
    lines = Lines(document.text, document.lines.encoding)
    return [
        {
            "range": {
                "start": _place(lines, one.start),
                "end": _place(lines, one.end),
            },
            "newText": one.new_text,
        }
        for one in minimal_edits(document.text, target)
    ]


def _place(lines: Lines, offset: int) -> dict[str, int]:
    line, character = lines.position(offset)
    return {"line": line, "character": character}
