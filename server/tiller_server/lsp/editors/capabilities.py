"""Abilities of an editor to edit, from its declared capabilities and its known quirks."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from agent_core.kernel.values import Value
from tiller_server.lsp.editors.quirks import Quirks
from tiller_server.lsp.jsonrpc.messages import as_array, as_object
from tiller_server.lsp.wire.capabilities import merge_capabilities

Barrier: TypeAlias = Literal["auto", "ask", "off"]


class EditorCapabilities(Value, frozen=True, kw_only=True):
    """The ways to edit and save that an editor offers."""

    applies_edits: bool
    deletes: bool
    """A delete of a file may be part of an edit."""
    renames: bool
    """A rename of a file may be part of an edit."""
    takes_requests: bool
    """It takes edits by `agent/edit/apply`, with what must hold of a document before."""
    saves_edits: bool
    """It saves a document with such an edit, if nothing in it was unsaved."""
    review: str
    """How it shows such edits to its user."""
    reads: bool
    """It gives the text of a document when it is asked to."""
    takes_versions: bool
    """Edits may name the version of the document that they are for."""
    least_version: int
    """Edits for lower versions are applied without a look at the version."""
    saves: bool
    """It saves documents when it is asked to."""
    reloads: bool
    """Documents without unsaved text follow the disk by themselves."""
    edits_together: bool
    """An LSP edit of several documents is applied whole or not at all."""
    tells_of_each: bool
    """`agent/edit/apply` tells of each of several documents what became of it."""
    saves_refactorings: bool
    """An LSP edit of several documents that calls itself a refactoring is saved."""
    prefers_disk: bool
    """The user wants documents without unsaved text to be edited on the disk."""
    opens_closed: bool = False
    """Files that are not open are to be opened and edited there, and it opens documents when it is asked to."""
    barrier: Barrier = "auto"
    """Whether the user is asked to save before a program runs; `auto`: only where nothing else saves, and once."""
    shows: frozenset[str] = frozenset()
    """Requests that the editor shows in its own way: `agent/permission`, `agent/question`."""
    draws_changes: bool = False
    """It shows change sets in its own way, and its user wants that."""
    diagnoses: bool = False
    """It gives the problems that it shows, and says of which version they are."""
    reads_files: bool = False
    """It gives the text of any file when it is asked to (`agent/file/read`)."""
    writes_files: bool = False
    """It writes any file when it is asked to (`agent/file/write`)."""
    is_pulled: bool = False
    """It has no document sync: its documents are read each time one is looked for."""

    @property
    def gathers(self) -> bool:
        """Whether one edit may change several documents, with an outcome for each of them."""
        return self.edits_together or self.tells_of_each


def editor_capabilities(params: Mapping[str, object], quirks: Quirks) -> EditorCapabilities:
    """Read the params of `initialize`; a missing or malformed member counts as not offered."""
    capabilities = _under(params, "capabilities")
    options = _under(params, "initializationOptions", "agent")
    agent = merge_capabilities(
        _under(capabilities, "experimental", "agent"), _under(options, "capabilities")
    )
    workspace = _under(capabilities, "workspace")
    edit = _under(workspace, "workspaceEdit")
    declared = edit.get("documentChanges") is True
    versions = declared or quirks.document_changes
    requests = _is_offered(agent.get("edit"))
    by_lsp = workspace.get("applyEdit") is True
    kinds = as_array(edit.get("resourceOperations")) or ()
    return EditorCapabilities(
        applies_edits=by_lsp or requests,
        deletes=by_lsp and "delete" in kinds,
        renames=by_lsp and "rename" in kinds,
        takes_requests=requests,
        saves_edits=_is_offered(_under(agent, "edit").get("save")),
        review=_review(_under(options, "edit").get("review"), _under(agent, "edit").get("review")),
        reads=_is_offered(_under(agent, "documents").get("read")),
        takes_versions=versions,
        least_version=1 if quirks.zero_unchecked else 0,  # decision 0033
        saves=_is_offered(_under(agent, "documents").get("save")),
        reloads=quirks.auto_reload,
        edits_together=by_lsp and versions and quirks.multi_doc_edit,
        tells_of_each=requests and _is_offered(_under(agent, "edit").get("perDocumentResult")),
        saves_refactorings=quirks.save_via_refactoring and edit.get("metadataSupport") is True,
        shows=frozenset(
            f"agent/{name}" for name in ("permission", "question") if _is_offered(agent.get(name))
        ),
        draws_changes=_is_offered(agent.get("diffView"))
        and _under(options, "edit").get("review") != "none",
        diagnoses=_is_offered(agent.get("diagnostics")),
        reads_files=_is_offered(_under(agent, "files").get("read")),
        writes_files=_is_offered(_under(agent, "files").get("write")),
        prefers_disk=_under(options, "edit").get("openClean") == "disk",
        opens_closed=(by_lsp or requests)
        and _under(options, "edit").get("closed") == "buffer"
        and _under(capabilities, "window", "showDocument").get("support") is True,
        barrier=_barrier(_under(options, "edit").get("saveBarrier")),
    )


def _review(said: object, offered: object) -> str:
    """Return the review that the user wants, if the editor has it."""
    return said if isinstance(said, str) and said in (as_array(offered) or ()) else "none"


def _barrier(said: object) -> Barrier:
    return "ask" if said == "ask" else "off" if said == "off" else "auto"


def _under(value: Mapping[str, object], *names: str) -> Mapping[str, object]:
    for name in names:
        value = as_object(value.get(name)) or {}
    return value


def _is_offered(marker: object) -> bool:
    """Return whether a capability is there: `{}` means yes, and so does true."""
    return marker is True or isinstance(marker, dict)
