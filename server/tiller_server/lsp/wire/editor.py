"""Messages between server and editor: documents, diagnostics, other language servers, trust."""

from typing import Annotated, Final, cast

from pydantic import Field

from tiller_server.lsp.wire.base import FailFastList, SafeCount, UncheckedJson, WireModel
from tiller_server.lsp.wire.blocks import Diagnostic
from tiller_server.lsp.wire.method import client_request, notification
from tiller_server.lsp.wire.permissions import FolderTrust

__all__ = [
    "DIAGNOSTICS",
    "DOCUMENTS_READ",
    "DOCUMENTS_SAVE",
    "FILE_READ",
    "FILE_WRITE",
    "LSP_REQUEST",
    "TRUST",
    "DiagnosticsItem",
    "DiagnosticsParams",
    "DiagnosticsResult",
    "DocumentsReadParams",
    "DocumentsReadResult",
    "DocumentsSaveParams",
    "DocumentsSaveResult",
    "FileReadParams",
    "FileReadResult",
    "FileWriteParams",
    "FileWriteResult",
    "LspRequestParams",
    "SaveItem",
    "SavedDocument",
    "TrustParams",
]


class SaveItem(WireModel):
    """Document to save, if it still has this version."""

    uri: str
    version: int | None = None


class DocumentsSaveParams(WireModel):
    """Save documents."""

    items: FailFastList[SaveItem]
    """Documents to save."""
    reason: str
    """Why, for people."""


class SavedDocument(WireModel):
    """Outcome of a save."""

    uri: str
    saved: bool
    version: int | None = None
    why: str | None = None
    """Reason, when it was not saved."""


class DocumentsSaveResult(WireModel):
    """Outcome of each save."""

    results: FailFastList[SavedDocument]
    """Outcomes."""


class DocumentsReadParams(WireModel):
    """Return the text of a document, as the editor has it."""

    uri: str
    """The document."""


class DocumentsReadResult(WireModel):
    """Text of a document in the editor."""

    text: str
    """The whole text."""
    version: int | None = None
    """Document version."""
    dirty: bool
    """Whether it has unsaved text."""
    language_id: str
    """LSP language id."""


class FileReadParams(WireModel):
    """Return the text of a file as the user of the client sees it, unsaved text included."""

    uri: str
    """The file."""
    session: str | None = None
    """Session that asks."""


class FileReadResult(WireModel):
    """Text of a file; exactly one of both fields."""

    text: str | None = None
    """The whole text."""
    missing: bool | None = None
    """True: the client has no such file."""


class FileWriteParams(WireModel):
    """Replace the text of a file, or create it, and save it where that loses nothing."""

    uri: str
    """The file."""
    text: str
    """The whole text."""
    session: str | None = None
    """Session that writes."""


class FileWriteResult(WireModel):
    """Empty result: the client has done it."""


class DiagnosticsParams(WireModel):
    """Return the diagnostics that the editor shows."""

    uris: FailFastList[str] | None = None
    """Only these documents; left out: all that have diagnostics."""
    at_least: dict[str, int] | None = None
    """Document versions, by URI, that the diagnostics must be made for."""
    timeout_ms: SafeCount
    """How long the client waits for them at most."""


class DiagnosticsItem(WireModel):
    """Diagnostics of one document."""

    uri: str
    version: int | None = None
    fresh: bool
    """Whether they are at least as new as `atLeast` asks."""
    diagnostics: FailFastList[Diagnostic]


class DiagnosticsResult(WireModel):
    """Diagnostics of the documents."""

    items: FailFastList[DiagnosticsItem]
    """One entry per document."""


class LspRequestParams(WireModel):
    """Forward a read-only request to another language server of the editor."""

    server: str | None = None
    """Name of the language server."""
    method: Annotated[str, Field(min_length=1)]
    """Its method."""
    params: UncheckedJson
    """Its params."""


class TrustParams(WireModel):
    """Report which folders the user trusts."""

    items: FailFastList[FolderTrust]
    """Folders."""


TRUST: Final = notification("agent/trust", TrustParams)
DOCUMENTS_SAVE: Final = client_request(
    "agent/documents/save", DocumentsSaveParams, DocumentsSaveResult
)
DOCUMENTS_READ: Final = client_request(
    "agent/documents/read", DocumentsReadParams, DocumentsReadResult
)
FILE_READ: Final = client_request("agent/file/read", FileReadParams, FileReadResult)
FILE_WRITE: Final = client_request("agent/file/write", FileWriteParams, FileWriteResult)
DIAGNOSTICS: Final = client_request("agent/diagnostics", DiagnosticsParams, DiagnosticsResult)
LSP_REQUEST: Final = client_request(
    "agent/lsp/request",
    LspRequestParams,
    cast("type[object]", UncheckedJson),  # an annotated type is no class
)
