"""What an editor can do with edits, from what it declared and what is known of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.lsp.codec import as_array, as_object
from server.lsp.quirks import Quirks
from server.lsp.wire import merge_capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The ways to edit and save that an editor offers."""

    applies_edits: bool
    deletes: bool
    """A delete of a file may be part of an edit."""
    renames: bool
    """A rename of a file may be part of an edit."""
    takes_versions: bool
    """Edits may name the version of the document that they are for."""
    saves: bool
    """It saves documents when it is asked to."""
    reloads: bool
    """Documents without unsaved text follow the disk by themselves."""
    prefers_disk: bool
    """The user wants documents without unsaved text to be edited on the disk."""
    shows: frozenset[str] = frozenset()
    """What it shows in its own way: `agent/permission`, `agent/question`."""
    diagnoses: bool = False
    """It gives the problems that it shows, and says of which version they are."""


def abilities_of(params: Mapping[str, Any], quirks: Quirks) -> Abilities:
    """Read the params of `initialize`; what is missing or misshapen counts as not offered."""
    capabilities = _under(params, "capabilities")
    options = _under(params, "initializationOptions", "agent")
    agent = merge_capabilities(
        dict(_under(capabilities, "experimental", "agent")), dict(_under(options, "capabilities"))
    )
    workspace = _under(capabilities, "workspace")
    edit = _under(workspace, "workspaceEdit")
    declared = edit.get("documentChanges") is True
    applies_edits = workspace.get("applyEdit") is True
    kinds = as_array(edit.get("resourceOperations")) or ()
    return Abilities(
        applies_edits=applies_edits,
        deletes=applies_edits and "delete" in kinds,
        renames=applies_edits and "rename" in kinds,
        takes_versions=declared or quirks.document_changes,
        saves=_is_offered(_under(agent, "documents").get("save")),
        reloads=quirks.auto_reload,
        shows=frozenset(
            f"agent/{name}" for name in ("permission", "question") if _is_offered(agent.get(name))
        ),
        diagnoses=_is_offered(agent.get("diagnostics")),
        prefers_disk=_under(options, "edit").get("openClean") == "disk",
    )


def _under(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        value = as_object(value.get(name)) or {}
    return value


def _is_offered(marker: object) -> bool:
    """Tell whether a capability is there: `{}` means yes, and so does true."""
    return marker is True or isinstance(marker, dict)
