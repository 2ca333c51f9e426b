"""`agent/edit/apply`, for editors that take edits with their preconditions: what is asked, and what is read of the answer; pure."""

from collections.abc import Mapping
from typing import Final

from agent_core.workspace.origin import EditOrigin
from server.lsp.abilities import Abilities
from server.lsp.codec import as_array, as_object
from server.lsp.documents import Document
from server.lsp.edit_outcome import Answer

EDIT_APPLY: Final = "agent/edit/apply"
STALE: Final = "the document has another version or text than the edit was made for"


def edit_request(
    document: Document,
    change: Mapping[str, object],
    *,
    label: str,
    origin: EditOrigin | None,
    abilities: Abilities,
) -> dict[str, object]:
    """Give the params for an edit of one document.

    Args:
        document: As it must be when the edit is applied.
        change: LSP's `WorkspaceEdit`.
        label: What the user may read in the undo menu.
        origin: Whose edit it is, where somebody said so.
        abilities: What the editor declared.
    """
    return {
        "edit": {
            "id": origin.edit if origin else "",
            "session": (origin.session if origin else None) or "",
            "run": (origin.run if origin else None) or "",
            "toolCall": (origin.call if origin else None) or "",
            "label": label,
        },
        "workspaceEdit": change,
        "pre": [
            {
                "uri": document.uri,
                "version": document.version,
                "sha256": document.sha256,
                "exists": True,
            }
        ],
        "save": "ifWasClean" if abilities.saves_edits else "never",
        "review": abilities.review,
        "undo": "oneStep",
    }


def edit_answer(result: object) -> Answer:
    """Read what the editor says of its one document."""
    told = as_array((as_object(result) or {}).get("documents")) or ()
    # One was asked for: how its URI is spelt in the answer does not matter.
    outcome = (as_object(told[0]) or {}) if len(told) == 1 else {}
    why = outcome.get("why")
    reason = why if isinstance(why, str) else ""
    match outcome.get("status"):
        case "applied":
            return Answer(applied=True, reason=reason)
        case "stale":
            return Answer(applied=False, reason=reason or STALE)
        case "refused" | "failed":
            return Answer(applied=False, reason=reason or "it did not say why")
        case _:
            return Answer(applied=False, reason="its answer to the edit cannot be read")
