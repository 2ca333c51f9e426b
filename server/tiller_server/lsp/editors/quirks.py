"""Known behaviour of editors, by name, where their capabilities do not declare it."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from agent_core.kernel.values import Value
from tiller_server.lsp.jsonrpc.messages import as_object


class Quirks(Value, frozen=True, kw_only=True):
    """How an editor behaves. The defaults are the worst case, for editors nobody has looked at."""

    trust_applied: bool = False
    """`applied: true` means that the text was changed."""
    multi_doc_edit: bool = False
    """One edit of several documents is applied whole or not at all."""
    single_dialog: bool = True
    """A second question replaces the first, which is never answered."""
    blocking_dialogs: bool = True
    """Nothing else happens in the editor while a question is open."""
    auto_reload: bool = False
    """Unmodified documents follow the disk by themselves."""
    save_via_refactoring: bool = False
    """An edit of several documents that calls itself a refactoring is saved."""
    insert_mode_merge: bool = True
    """An edit that comes while the user types becomes one undo step with the typing."""
    document_changes: bool = False
    """Edits with versions are understood although that is not declared."""
    late_undo_steps: bool = False
    """Two edits become one undo step, unless 10 s or something that the user does lie between them."""
    zero_unchecked: bool = False
    """An edit for version 0 is applied to any text; every later version is above 1."""
    opens_notebooks: bool = False
    """It shows notebooks as such, not as their JSON."""
    silent_answers: bool = True
    """The answer of a command is shown nowhere, not even an error."""


_WORST: Final = Quirks()
_VSCODE: Final = Quirks(
    trust_applied=True,
    multi_doc_edit=True,
    single_dialog=False,
    blocking_dialogs=False,
    auto_reload=True,
    save_via_refactoring=True,
    insert_mode_merge=False,
    opens_notebooks=True,
    silent_answers=False,
)
_KAKOUNE: Final = Quirks(single_dialog=False, blocking_dialogs=False)
_EGLOT: Final = Quirks(
    trust_applied=True,
    single_dialog=False,
    insert_mode_merge=False,
    late_undo_steps=True,
    silent_answers=False,
)

QUIRKS: Final[Mapping[str, Quirks]] = {
    "visual studio code": _VSCODE,
    # What is built from the same source says the name of its maker.
    "code - oss": _VSCODE,
    "code-server": _VSCODE,
    "vscodium": _VSCODE,
    "cursor": _VSCODE,
    "windsurf": _VSCODE,
    "neovim": Quirks(
        single_dialog=False, document_changes=True, zero_unchecked=True, silent_answers=False
    ),
    "helix": Quirks(trust_applied=True, blocking_dialogs=False, insert_mode_merge=False),
    "eglot": _EGLOT,
    "emacs": _EGLOT,
    "sublime text": Quirks(
        trust_applied=True,
        single_dialog=False,
        blocking_dialogs=False,
        auto_reload=True,
        insert_mode_merge=False,
        silent_answers=False,
    ),
    "kakoune": _KAKOUNE,
    # The name of the program, which is not the one of the project.
    "kak-lsp": _KAKOUNE,
    "zed": Quirks(blocking_dialogs=False, auto_reload=True),
}
"""By the name that the client gives itself, in lower case; a longer name that begins so counts too."""


def quirks_of(name: str, overrides: object = None) -> Quirks:
    """Return the quirks of the editor of that name.

    Args:
        name: `clientInfo.name`.
        overrides: Object that the user has set, such as `{"trustApplied": false}`. Members that
            are no quirk or no boolean are ignored.
    """
    low = name.strip().lower()
    found = next((quirks for start, quirks in QUIRKS.items() if low.startswith(start)), _WORST)
    chosen = as_object(overrides) or {}
    changes: dict[str, bool] = {}
    for quirk in Quirks.__struct_fields__:
        value = chosen.get(wire_name(quirk))
        if isinstance(value, bool):
            changes[quirk] = value
    return replace(found, **changes)


def name_of(params: Mapping[str, object]) -> str:
    """Return the name of a client, from the params of `initialize`; `unknown` when nothing tells it."""
    name = (as_object(params.get("clientInfo")) or {}).get("name")
    if isinstance(name, str) and name:
        return name
    capabilities = as_object(params.get("capabilities")) or {}
    workspace = as_object(capabilities.get("workspace")) or {}
    says_eglot = workspace.get("workspaceEdit") == {"documentChanges": True}
    # Eglot before 1.10 does not say its name, declares this much and nothing of encodings.
    return "Eglot" if says_eglot and "general" not in capabilities else "unknown"


def wire_name(name: str) -> str:
    """Return the name of a quirk as users and clients write it."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
