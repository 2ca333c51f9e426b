"""`agent/edit/apply`, for editors that accept edits with preconditions: the request, and its answer; pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.workspace.files.proxy import EditOrigin
from tiller_server.lsp.documents.mirror import Document
from tiller_server.lsp.editors.capabilities import EditorCapabilities
from tiller_server.lsp.editors.edit_verification import ApplyResponse
from tiller_server.lsp.jsonrpc.messages import as_array, as_object

EDIT_APPLY: Final = "agent/edit/apply"
STALE: Final = "the document has another version or text than the edit was made for"


def edit_request(
    documents: Sequence[Document],
    change: Mapping[str, object],
    *,
    label: str,
    origin: EditOrigin | None,
    capabilities: EditorCapabilities,
) -> dict[str, object]:
    """Return the params for an edit.

    Args:
        documents: Documents that the edit changes, as they must be when it is applied.
        change: LSP's `WorkspaceEdit`.
        label: Label that the editor may show in its undo menu.
        origin: Session, run and call of the edit, if known.
        capabilities: Abilities of the editor.
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
                "uri": one.uri,
                "version": one.version,
                "sha256": one.sha256,
                "exists": True,
            }
            for one in documents
        ],
        "save": "ifWasClean" if capabilities.saves_edits else "never",
        "review": capabilities.review,
        "undo": "oneStep",
    }


def edit_answers(result: object, documents: Sequence[Document]) -> Sequence[ApplyResponse]:
    """Read what the editor says of each document."""
    results = as_array((as_object(result) or {}).get("documents")) or ()
    outcomes = [as_object(one) or {} for one in results]
    if len(outcomes) == len(documents) == 1:
        # One was asked for: how its URI is spelt in the answer does not matter.
        return [_answer(outcomes[0])]
    by_uri = {str(one.get("uri")): one for one in outcomes}
    return [_answer(by_uri.get(document.uri, {})) for document in documents]


def _answer(outcome: Mapping[str, object]) -> ApplyResponse:
    why = outcome.get("why")
    reason = why if isinstance(why, str) else ""
    match outcome.get("status"):
        case "applied":
            return ApplyResponse(applied=True, reason=reason)
        case "stale":
            return ApplyResponse(applied=False, reason=reason or STALE)
        case "refused" | "failed":
            return ApplyResponse(applied=False, reason=reason or "it did not say why")
        case _:
            return ApplyResponse(applied=False, reason="its answer to the edit cannot be read")
