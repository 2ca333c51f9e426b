"""What a user made of the agent's edits in their editor: told to everybody, and to the model at the next prompt."""

from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_core.events import DocumentChange, EditApplied, EditSaved, EditUndone, Event
from agent_core.kernel import RunId
from agent_core.kernel.records import dataclass
from agent_core.messages import CustomMessage, Text
from agent_core.session.parts import Parts
from agent_core.workspace.origin import EditOrigin

CUSTOM_TYPE: Final = "tiller.edit"

Fate: TypeAlias = Literal["undone", "redone", "saved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEdit:
    """What a user did with one edit in one document."""

    fate: Fate
    path: Path
    """Absolute and resolved."""
    origin: EditOrigin
    sha256: str
    """Hash of the text now."""
    version: int | None
    """The editor's version of the document now; None: it gives none."""
    is_saved: bool = False


class UserEdits:
    """Takes in what editors see of their users."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def take(self, edit: UserEdit) -> None:
        """Tell what became of an edit; the model hears of what was undone or done again at the next prompt.

        Raises:
            StorageError: The words for the model could not be kept; everybody else was told.
        """
        self._parts.voice.say(_event(edit, run=self._run_of(edit)))
        words = _words(edit)
        if words is None:
            return
        # Its hunks wait no more, or wait again.
        _ = await self._parts.review.now(edit.path)
        message = CustomMessage(
            custom_type=CUSTOM_TYPE,
            content=(Text(text=words),),
            # The event has told people already.
            display=False,
            details={"edit": edit.origin.edit, "path": str(edit.path), "fate": edit.fate},
            at_ms=self._parts.clock.now_ms(),
        )
        await self._parts.aside.accept(message, until="prompt")

    def _run_of(self, edit: UserEdit) -> RunId | None:
        """Give the run of an edit while it goes on: nothing of a run follows its end."""
        return (
            edit.origin.run if edit.origin.run == self._parts.voice.picture.activity.run else None
        )


def _event(edit: UserEdit, *, run: RunId | None) -> Event:
    kinds = {"undone": EditUndone, "redone": EditApplied, "saved": EditSaved}
    change = DocumentChange(
        path=edit.path,
        status="undone" if edit.fate == "undone" else "applied",
        saved=edit.is_saved,
        version=edit.version,
        sha256=edit.sha256,
        why="the user did it again in the editor" if edit.fate == "redone" else None,
    )
    return kinds[edit.fate](
        run=run, edit=edit.origin.edit, call=edit.origin.call, documents=(change,)
    )


def _words(edit: UserEdit) -> str | None:
    match edit.fate:
        case "undone":
            return f"The user undid your edit of {edit.path} in the editor: its changes are not in the text any more. Do not make them again unasked."
        case "redone":
            return f"The user brought your edit of {edit.path} back, which they had undone: its changes are in the text."
        case "saved":
            return None
