"""What server and editor ask of one another: documents, diagnostics, other language servers, trust."""

from typing import Annotated

from pydantic import Field

from tiller_server.lsp.wire.base import Count, Json, Many, WireModel
from tiller_server.lsp.wire.blocks import Diagnostic
from tiller_server.lsp.wire.permissions import FolderTrust

__all__ = [
    "DiagnosticsItem",
    "DiagnosticsParams",
    "DiagnosticsResult",
    "DocumentsReadParams",
    "DocumentsReadResult",
    "DocumentsSaveParams",
    "DocumentsSaveResult",
    "LspRequestParams",
    "SaveItem",
    "SavedDocument",
    "TrustParams",
]


class SaveItem(WireModel):
    """A document to save, if it still has that version."""

    uri: str
    version: int | None = None


class DocumentsSaveParams(WireModel):
    """Asks the client to save documents."""

    items: Many[SaveItem]
    reason: str


class SavedDocument(WireModel):
    """Whether a document was saved."""

    uri: str
    saved: bool
    version: int | None = None
    why: str | None = None


class DocumentsSaveResult(WireModel):
    """Whether each document was saved."""

    results: Many[SavedDocument]


class DocumentsReadParams(WireModel):
    """Asks the client for the text of a document."""

    uri: str


class DocumentsReadResult(WireModel):
    """The text as the editor has it."""

    text: str
    version: int | None = None
    dirty: bool
    language_id: str


class DiagnosticsParams(WireModel):
    """Asks the client for the problems it shows, at least as new as the given versions."""

    uris: Many[str] | None = None
    at_least: dict[str, int] | None = None
    timeout_ms: Count


class DiagnosticsItem(WireModel):
    """The problems of one document, and whether they are as new as was asked."""

    uri: str
    version: int | None = None
    fresh: bool
    diagnostics: Many[Diagnostic]


class DiagnosticsResult(WireModel):
    """The problems, document by document."""

    items: Many[DiagnosticsItem]


class LspRequestParams(WireModel):
    """Asks the client to pass a read-only request on to another language server."""

    server: str | None = None
    method: Annotated[str, Field(min_length=1)]
    params: Json


class TrustParams(WireModel):
    """Says which folders the user trusts."""

    items: Many[FolderTrust]
