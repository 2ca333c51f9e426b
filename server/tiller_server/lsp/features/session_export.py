"""`agent/session/export`: a session as a document."""

from collections.abc import Mapping

from agent_core.assembly.library import ExportFormat
from agent_core.kernel import SessionId
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire.sessions import (
    SESSION_EXPORT,
    SessionExportParams,
    SessionExportResult,
)

FORMATS: Mapping[str, ExportFormat] = {"jsonl": "jsonl", "markdown": "md", "html": "html"}


@feature(SESSION_EXPORT)
async def session_export(
    client: ConnectedClient, params: SessionExportParams
) -> SessionExportResult:
    """Write it out."""
    session = params.session or (await client.resolve_session(None)).session.id
    form = params.format or "jsonl"
    if form not in FORMATS:
        message = f"agent/session/export: format must be one of {', '.join(FORMATS)}, got {form!r}"
        raise invalid_params(message)
    with translated_errors(session=session):
        library = await client.host.library()
        env = client.origin.env
        content = await library.export(SessionId(session), FORMATS[form], env=env)
    return SessionExportResult(format=form, content=content.decode("utf-8", "replace"))
