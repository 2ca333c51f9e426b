"""`agent/session/export`: a session as a document."""

from collections.abc import Mapping
from typing import Any

from agent_core.assembly.library.session_library import ExportFormat
from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import SessionExportParams, parse

FORMATS: Mapping[str, ExportFormat] = {"jsonl": "jsonl", "markdown": "md", "html": "html"}


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Write it out."""
    asked = parse(SessionExportParams, params, method="agent/session/export")
    session = asked.session or (await client.resolve_session(None)).session.id
    form = asked.format or "jsonl"
    if form not in FORMATS:
        message = f"agent/session/export: format must be one of {', '.join(FORMATS)}, got {form!r}"
        raise invalid_params(message)
    library = await client.host.library()
    try:
        content = await library.export(SessionId(session), FORMATS[form])
    except TillerError as error:
        raise to_rpc_error(error, session=session) from error
    return {"format": form, "content": content.decode("utf-8", "replace")}
