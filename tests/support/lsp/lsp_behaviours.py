"""How editors answer `workspace/applyEdit`: honestly, wrongly, late or not at all."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Document, Editor, Operation, operations
from tests.support.lsp.lsp_text import EditError, apply_edits

Json = dict[str, Any]

TYPED = "# typed by the user\n"
EDIT_FAILED = -32603


class EditBehaviour(Protocol):
    """Answers an `applyEdit` request, and does to the editor's documents what it will."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        """Take one request; everything happens before the call returns or later through `reply`."""
        ...


def type_at_the_top(_document: Document) -> list[Json]:
    """Give the edit of a user who types a comment at the top."""
    start = {"line": 0, "character": 0}
    return [{"range": {"start": start, "end": start}, "newText": TYPED}]


class Honest:
    """Applies everything or nothing, tells the server and says so; versions are not looked at.

    Args:
        first: Whether the changes or the response goes out first; editors differ.
    """

    def __init__(self, *, first: Literal["changes", "response"] = "changes") -> None:
        self.first = first

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        before = editor.texts()
        staged: list[tuple[str, list[Json]]] = []
        try:
            for step in operations(params["edit"]):
                changes = editor.perform(step)
                if step.kind == "edit":
                    staged.append((step.uri, changes))
        except EditError as error:
            editor.put_back(before)
            reply({"applied": False, "failureReason": str(error)})
            return
        if self.first == "response":
            reply({"applied": True})
        for uri, changes in staged:
            editor.publish(uri, changes)
        if self.first == "changes":
            reply({"applied": True})


class RefusesStaleVersions:
    """Refuses everything when one document has another version, else does as another behaviour.

    Args:
        reason: None gives no reason, as VS Code does.
    """

    def __init__(
        self, *, reason: str | None = "document has changed", then: EditBehaviour | None = None
    ) -> None:
        self._reason = reason
        self._then = then or Honest()

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        if any(map(editor.is_stale, operations(params["edit"]))):
            _refuse(reply, self._reason)
        else:
            self._then(editor, params, reply)


class SaysAppliedButDidNothing:
    """Claims success and leaves the text alone, as Neovim does with a stale edit."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        reply({"applied": True})


class Refuses:
    """Applies nothing and says so."""

    def __init__(self, *, reason: str | None = "the user said no") -> None:
        self._reason = reason

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        _refuse(reply, self._reason)


class NeverAnswers:
    """Applies nothing and stays silent; `replies` lets a test answer when it is too late."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        self.replies.append(reply)


class Held:
    """Puts every request aside until `release`, then does as another behaviour."""

    def __init__(self, then: EditBehaviour | None = None) -> None:
        self.waiting: list[tuple[Editor, Json, Reply]] = []
        self._then = then or Honest()

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        self.waiting.append((editor, params, reply))

    def release(self) -> None:
        """Take up what was put aside, in order."""
        waiting, self.waiting = self.waiting, []
        for editor, params, reply in waiting:
            self._then(editor, params, reply)


class AppliesOther:
    """Applies the edit together with something that the user typed: the server sees one change with both."""

    def __init__(self, typed: Callable[[Document], list[Json]] = type_at_the_top) -> None:
        self._typed = typed

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        try:
            for step in operations(params["edit"]):
                changes = editor.perform(step)
                if step.kind == "edit":
                    changes += editor.stage(step.uri, self._typed(editor.documents[step.uri]))
                    editor.publish(step.uri, changes)
        except EditError as error:
            _refuse(reply, str(error))
            return
        reply({"applied": True})


class PartlyApplies:
    """Applies the first text edits and stops.

    Args:
        edits: How many text edits are applied, counted over all documents.
        claims: What the answer says of it.
    """

    def __init__(self, *, edits: int = 1, claims: Literal["applied", "failed"] = "failed") -> None:
        self._edits = edits
        self._claims = claims

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        left = self._edits
        stopped_at = 0
        for index, step in enumerate(operations(params["edit"])):
            stopped_at = index
            if step.kind != "edit":
                editor.perform(step)
                continue
            if left <= 0:
                break
            some = Operation(
                kind="edit", uri=step.uri, edits=step.edits[:left], options=step.options
            )
            editor.publish(step.uri, editor.perform(some))
            left -= len(step.edits)
            if left < 0:
                break
        if self._claims == "applied":
            reply({"applied": True})
            return
        reason = "could not apply everything"
        reply({"applied": False, "failureReason": reason, "failedChange": stopped_at})


class AppliesInPieces:
    """Reports each text edit in a notification of its own, as Neovim 0.11 does.

    Args:
        order: Which is reported first: the edit at the top, or the one at the bottom.
    """

    def __init__(self, *, order: Literal["down", "up"] = "up") -> None:
        self._order = order

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        for step in operations(params["edit"]):
            text = editor.documents[step.uri].text
            for size in range(1, len(step.edits) + 1):
                part = step.edits[:size] if self._order == "down" else step.edits[-size:]
                _ = editor.change(step.uri, apply_edits(text, part, encoding=editor.encoding))
        reply({"applied": True})


class LikeNeovim:
    """Neovim 0.11: skips the first document when it is stale, overwrites any other, always claims success."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        for index, step in enumerate(operations(params["edit"])):
            document = editor.documents.get(step.uri)
            version = step.version or 0
            skips = index == 0 and document is not None and 0 < version < document.version
            if not skips:
                _perform_now(editor, step)
        reply({"applied": True})


class LikeHelix:
    """Helix: goes step by step, stops at the first that is stale or impossible, and keeps what was done."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        for index, step in enumerate(operations(params["edit"])):
            reason = "document has changed" if editor.is_stale(step) else _perform_now(editor, step)
            if reason is not None:
                reply({"applied": False, "failureReason": reason, "failedChange": index})
                return
        reply({"applied": True})


class LikeEglot:
    """Eglot: answers a stale edit with a JSON-RPC error and applies nothing."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        stale = [step.uri for step in operations(params["edit"]) if editor.is_stale(step)]
        if stale:
            reply.error(EDIT_FAILED, f"Edits on `{stale[0]}' require another version")
        else:
            Honest()(editor, params, reply)


class PanelEdits:
    """A plugin's `agent/edit/apply`: checks the preconditions of each document and answers for each."""

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        wanted = {one["uri"]: one for one in params.get("pre", [])}
        results = [
            self._document(editor, step, wanted.get(step.uri, {}), params.get("save", "never"))
            for step in operations(params["workspaceEdit"])
        ]
        reply({"documents": results})

    def _document(self, editor: Editor, step: Operation, wanted: Json, save: str) -> Json:
        document = editor.documents.get(step.uri)
        was_dirty = document is not None and document.dirty
        if document is not None and _differs(document, wanted):
            found = {"version": document.version, "sha256": document.sha256}
            return {"uri": step.uri, "status": "stale", "wasDirty": was_dirty, **found}
        why = _perform_now(editor, step)
        if why is not None:
            return {"uri": step.uri, "status": "failed", "why": why}
        after = editor.documents.get(step.uri)
        if after is None:
            return {"uri": step.uri, "status": "applied"}
        saves = save == "ifWasClean" and not was_dirty
        if saves:
            editor.save(step.uri)
        return {
            "uri": step.uri,
            "status": "applied",
            "version": after.version,
            "sha256": after.sha256,
            "wasDirty": was_dirty,
            "saved": saves,
        }


def _differs(document: Document, wanted: Json) -> bool:
    version = wanted.get("version")
    digest = wanted.get("sha256")
    return (version is not None and version != document.version) or (
        digest is not None and digest != document.sha256
    )


def _perform_now(editor: Editor, step: Operation) -> str | None:
    """Do one step and tell the server; give the reason when it is impossible."""
    try:
        changes = editor.perform(step)
    except EditError as error:
        return str(error)
    if step.kind == "edit":
        editor.publish(step.uri, changes)
    return None


def _refuse(reply: Reply, reason: str | None) -> None:
    reply({"applied": False} if reason is None else {"applied": False, "failureReason": reason})
