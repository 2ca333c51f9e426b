"""User actions on the agent's edits in an editor: published; undo and redo are sent to the model at the next prompt."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.changes import ChangeSource
from agent_core.events import DocumentChange, EditApplied, EditSaved, EditUndone, Event
from agent_core.kernel import RunId
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Text
from agent_core.session.context import SessionContext
from agent_core.workspace.files.edit_origin import EditOrigin

CUSTOM_TYPE: Final = "tiller.edit"

UserEditKind: TypeAlias = Literal["undone", "redone", "saved"]


class UserEdit(Value, frozen=True, kw_only=True):
    """User's action on one edit in one document."""

    fate: UserEditKind
    path: Path
    """Absolute and resolved."""
    origin: EditOrigin
    sha256: str
    """Hash of the text now."""
    version: int | None
    """The editor's version of the document now; None: it gives none."""
    is_saved: bool = False


class UserEdits:
    """Handler of the users' own edits that editors report."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    async def take(self, edit: UserEdit) -> None:
        """Publish the state of an edit; the model is informed at the next prompt if it was undone or redone.

        Raises:
            StorageError: The message for the model could not be stored; the event was published.
        """
        by = self._parts.changes.log.source_of(edit.origin.edit)
        self._parts.publisher.publish(_event(edit, by, run=self._run_of(edit)))
        text = _model_text(edit, by)
        if text is None:
            return
        # Its hunks wait no more, or wait again.
        _ = await self._parts.review.now(edit.path)
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=text),),
            # The event has told people already.
            display=False,
            details={"edit": edit.origin.edit, "path": str(edit.path), "fate": edit.fate},
            at_ms=self._parts.clock.now_ms(),
        )
        await self._parts.deferred.accept(message, flush_at="prompt")

    def _run_of(self, edit: UserEdit) -> RunId | None:
        """Return the run of an edit while it goes on: nothing of a run follows its end."""
        return (
            edit.origin.run
            if edit.origin.run == self._parts.publisher.picture.activity.run
            else None
        )


def _event(edit: UserEdit, by: ChangeSource, *, run: RunId | None) -> Event:
    kinds = {"undone": EditUndone, "redone": EditApplied, "saved": EditSaved}
    change = DocumentChange(
        path=edit.path,
        status="undone" if edit.fate == "undone" else "applied",
        saved=edit.is_saved,
        version=edit.version,
        sha256=edit.sha256,
        why=_WHY.get((by, edit.fate)),
    )
    return kinds[edit.fate](
        run=run, edit=edit.origin.edit, call=edit.origin.call, documents=(change,)
    )


def _model_text(edit: UserEdit, by: ChangeSource) -> str | None:
    template = _MODEL_TEXTS.get((by, edit.fate))
    return None if template is None else template.format(path=edit.path)


_REDONE: Final = "the user did it again in the editor"
_WHY: Final[Mapping[tuple[ChangeSource, UserEditKind], str]] = {
    ("tool", "redone"): _REDONE,
    ("process", "redone"): _REDONE,
    ("reject", "undone"): "the rejection was undone in the editor",
    ("reject", "redone"): _REDONE,
    ("restore", "undone"): "the restore was undone in the editor",
    ("restore", "redone"): _REDONE,
}
_EDIT_UNDONE: Final = "The user undid your edit of {path} in the editor: its changes are not in the text any more. Do not make them again unasked."
_EDIT_REDONE: Final = (
    "The user brought your edit of {path} back, which they had undone: its changes are in the text."
)
_MODEL_TEXTS: Final[Mapping[tuple[ChangeSource, UserEditKind], str]] = {
    ("tool", "undone"): _EDIT_UNDONE,
    ("tool", "redone"): _EDIT_REDONE,
    ("process", "undone"): _EDIT_UNDONE,
    ("process", "redone"): _EDIT_REDONE,
    (
        "reject",
        "undone",
    ): "The user undid their rejection in {path} with the editor's undo: your changes that it had taken out are in the text again.",
    (
        "reject",
        "redone",
    ): "The user rejected your changes in {path} again with the editor's redo: they are not in the text. Do not make them again unasked.",
    (
        "restore",
        "undone",
    ): "The user undid the restore of {path} with the editor's undo: the text is again as it was before the restore.",
    (
        "restore",
        "redone",
    ): "The user restored {path} again with the editor's redo: what was changed in it since that point is gone.",
}
