"""What real editors declare, and how they treat edits: one profile for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.lsp.lsp_behaviours import (
    EditBehaviour,
    Honest,
    LikeEglot,
    LikeHelix,
    LikeNeovim,
    RefusesStaleVersions,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An editor as a server meets it."""

    name: str
    version: str
    capabilities: Json
    edits: Callable[[], EditBehaviour] = Honest
    timeout_s: float = 30.0
    """How long the editor waits for an answer before it gives the request up."""
    answers_anyway: frozenset[str] = frozenset()
    """Requests that the editor serves without having declared them."""


_KINDS = ["create", "rename", "delete"]
_SYNC = {"dynamicRegistration": False, "didSave": True, "willSave": True}

VSCODE = Profile(
    name="Visual Studio Code",
    version="1.139.1",
    capabilities={
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": _KINDS,
                "failureHandling": "textOnlyTransactional",
                "normalizesLineEndings": True,
                "changeAnnotationSupport": {"groupsOnLabel": True},
                "metadataSupport": True,
            },
            "configuration": True,
            "workspaceFolders": True,
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
            "executeCommand": {"dynamicRegistration": True},
            "codeLens": {"refreshSupport": True},
            "diagnostics": {"refreshSupport": True},
            "textDocumentContent": {"dynamicRegistration": True},
        },
        "textDocument": {
            "synchronization": {**_SYNC, "dynamicRegistration": True},
            "codeAction": {"dataSupport": True, "isPreferredSupport": True},
            "codeLens": {"dynamicRegistration": True},
            "publishDiagnostics": {"versionSupport": True, "dataSupport": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "showDocument": {"support": True},
        },
    },
    edits=lambda: RefusesStaleVersions(reason=None),
)

NEOVIM_0_11 = Profile(
    name="Neovim",
    version="0.11.4",
    capabilities={
        "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {"resourceOperations": _KINDS},
            "configuration": True,
            "workspaceFolders": True,
            # On Linux it watches nothing.
            "didChangeWatchedFiles": {"dynamicRegistration": False},
        },
        "textDocument": {
            "synchronization": _SYNC,
            "codeAction": {"dataSupport": True, "isPreferredSupport": True},
            "codeLens": {"dynamicRegistration": False},
            "publishDiagnostics": {"dataSupport": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "showDocument": {"support": True},
        },
    },
    edits=LikeNeovim,
)

HELIX = Profile(
    name="helix",
    version="25.7.1",
    capabilities={
        "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": _KINDS,
                "failureHandling": "abort",
            },
            "configuration": True,
            "workspaceFolders": True,
            "executeCommand": {"dynamicRegistration": False},
        },
        "textDocument": {
            "codeAction": {"dataSupport": True, "isPreferredSupport": True},
            "publishDiagnostics": {"versionSupport": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "showDocument": {"support": True},
        },
    },
    edits=LikeHelix,
    timeout_s=20.0,
)

EGLOT = Profile(
    name="Eglot",
    version="1.9",
    capabilities={
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {"documentChanges": True},
            "executeCommand": {"dynamicRegistration": False},
            "configuration": True,
            "workspaceFolders": True,
        },
        "textDocument": {
            "synchronization": _SYNC,
            "codeAction": {"isPreferredSupport": True},
            "publishDiagnostics": {"relatedInformation": False},
        },
        "window": {
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        },
    },
    edits=LikeEglot,
    answers_anyway=frozenset({"window/workDoneProgress/create"}),
)

MINIMAL = Profile(name="minimal", version="1", capabilities={})

PANEL = Profile(
    name="panel",
    version="1",
    capabilities={
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {"documentChanges": True, "resourceOperations": _KINDS},
            "configuration": True,
            "workspaceFolders": True,
        },
        "textDocument": {"synchronization": _SYNC},
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        },
        "experimental": {
            "agent": {
                "v": 1,
                "events": {
                    "channel": "progress",
                    "ack": {},
                    "detail": ["full", "normal", "status"],
                },
                "permission": {"note": {}},
                "question": {"form": {}},
                "edit": {"preconditions": {}, "perDocumentResult": {}, "save": {}},
                "documents": {"save": {}, "read": {}, "dirty": {}},
            }
        },
    },
    edits=RefusesStaleVersions,
)

_AGENT = ("experimental", "agent")
NEEDS: dict[str, tuple[str, ...]] = {
    "workspace/applyEdit": ("workspace", "applyEdit"),
    "workspace/configuration": ("workspace", "configuration"),
    "workspace/workspaceFolders": ("workspace", "workspaceFolders"),
    "workspace/codeLens/refresh": ("workspace", "codeLens", "refreshSupport"),
    "workspace/diagnostic/refresh": ("workspace", "diagnostics", "refreshSupport"),
    "window/workDoneProgress/create": ("window", "workDoneProgress"),
    "window/showDocument": ("window", "showDocument", "support"),
    "agent/permission": (*_AGENT, "permission"),
    "agent/question": (*_AGENT, "question"),
    "agent/edit/apply": (*_AGENT, "edit"),
    "agent/documents/save": (*_AGENT, "documents", "save"),
    "agent/documents/read": (*_AGENT, "documents", "read"),
}
"""The capability that a client must have declared before a server may send a request."""


def declares(capabilities: Json, method: str) -> bool:
    """Tell whether a client with these capabilities may be sent a request; base requests always may."""
    found: Any = capabilities
    for name in NEEDS.get(method, ()):
        if not isinstance(found, dict) or name not in found:
            return False
        found = found[name]
    return found is not False
