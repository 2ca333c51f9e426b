"""`agent/session/open`: choose the session of this connection."""

from pathlib import Path
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.documents.workspace_folders import canonical
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.operations.session_switch import switch_session
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.wire import SessionOpenParams, parse


async def run(client: ConnectedClient, params: dict[str, Any]) -> object:
    """Open a session with the choices that were asked for, and give its snapshot."""
    asked = parse(SessionOpenParams, params, method="agent/session/open")
    if asked.session is not None and not (asked.session.isprintable() and asked.session):
        message = f"session must be an id, `latest` or `new`, got {asked.session[:80]!r}"
        raise invalid_params(message)
    root = _root(asked)

    async def prepare(loaded_session: Any) -> None:
        _check_root(loaded_session, root)
        if asked.config is not None:
            _ = await apply_config(loaded_session.session, asked.config)
        if asked.title is not None:
            try:
                await loaded_session.session.tree.rename(asked.title)
            except TillerError as error:
                raise to_rpc_error(error, session=loaded_session.session.id) from error

    return client.snapshot(await switch_session(client, asked.session, root=root, prepare=prepare))


def _root(asked: SessionOpenParams) -> Path | None:
    """Return the folder to work in; None: the first one of the client."""
    if not asked.folders:
        return None
    if len(asked.folders) > 1:
        message = (
            f"folders must name one folder, the one that the session works in, got {len(asked.folders)}; "
            "its other folders are those of workspaceFolders"
        )
        raise invalid_params(message)
    root = path_of(str(asked.folders[0]))
    if root is None:
        message = f"folders[0] must be a file URI, got {asked.folders[0]!r}"
        raise invalid_params(message)
    return root


def _check_root(loaded_session: Any, root: Path | None) -> None:
    """Refuse a folder that a session, loaded already, does not work in."""
    if root is not None and canonical(root) != loaded_session.root:
        message = (
            f"session {loaded_session.session.id} works in {loaded_session.root.as_uri()}, not in {root.as_uri()}; "
            "open it without `folders`"
        )
        raise invalid_params(message)
