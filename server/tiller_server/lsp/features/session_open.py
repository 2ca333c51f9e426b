"""`agent/session/open`: choose the session of this connection."""

from pathlib import Path

from agent_core.kernel import JsonObject
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.documents.workspace_folders import canonical
from tiller_server.lsp.encode.errors import translated_errors
from tiller_server.lsp.feature import feature
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.operations.session_switch import switch_session
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.sessions import SESSION_OPEN, SessionOpenParams


@feature(SESSION_OPEN)
async def session_open(client: ConnectedClient, params: SessionOpenParams) -> JsonObject:
    """Open a session with the choices that were asked for; return its snapshot."""
    if params.session is not None and not (params.session.isprintable() and params.session):
        message = f"session must be an id, `latest` or `new`, got {params.session[:80]!r}"
        raise invalid_params(message)
    root = _root(params)

    async def prepare(loaded_session: OpenSession) -> None:
        _check_root(loaded_session, root)
        if params.config is not None:
            _ = await apply_config(loaded_session.session, params.config)
        if params.title is not None:
            with translated_errors(session=loaded_session.session.id):
                await loaded_session.session.tree.rename(params.title)

    return client.snapshot(await switch_session(client, params.session, root=root, prepare=prepare))


def _root(params: SessionOpenParams) -> Path | None:
    """Return the folder to work in; None: the first one of the client."""
    if not params.folders:
        return None
    if len(params.folders) > 1:
        message = (
            f"folders must name one folder, the one that the session works in, got {len(params.folders)}; "
            "its other folders are those of workspaceFolders"
        )
        raise invalid_params(message)
    root = path_of(str(params.folders[0]))
    if root is None:
        message = f"folders[0] must be a file URI, got {params.folders[0]!r}"
        raise invalid_params(message)
    return root


def _check_root(loaded_session: OpenSession, root: Path | None) -> None:
    """Refuse a folder that a session, loaded already, does not work in."""
    if root is not None and canonical(root) != loaded_session.root:
        message = (
            f"session {loaded_session.session.id} works in {loaded_session.root.as_uri()}, not in {root.as_uri()}; "
            "open it without `folders`"
        )
        raise invalid_params(message)
