"""`agent/session/open`: choose the session of this connection."""

from pathlib import Path
from typing import Any

from agent_core.kernel.errors import TillerError
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.documents.workspace_folders import canonical
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.operations.session_config import apply_config
from tiller_server.lsp.operations.session_switch import open_session
from tiller_server.lsp.sessions.client import Front, bad
from tiller_server.lsp.wire import SessionOpenParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Open a session with the choices that were asked for, and give its snapshot."""
    asked = parse(SessionOpenParams, params, method="agent/session/open")
    if asked.session is not None and not (asked.session.isprintable() and asked.session):
        message = f"session must be an id, `latest` or `new`, got {asked.session[:80]!r}"
        raise bad(message)
    root = _root(asked)

    async def prepare(hosted: Any) -> None:
        _check_root(hosted, root)
        if asked.config is not None:
            _ = await apply_config(hosted.session, asked.config)
        if asked.title is not None:
            try:
                await hosted.session.tree.rename(asked.title)
            except TillerError as error:
                raise rpc_error(error, session=hosted.session.id) from error

    return front.snapshot(await open_session(front, asked.session, root=root, prepare=prepare))


def _root(asked: SessionOpenParams) -> Path | None:
    """Return the folder to work in; None: the first one of the client."""
    if not asked.folders:
        return None
    if len(asked.folders) > 1:
        message = (
            f"folders must name one folder, the one that the session works in, got {len(asked.folders)}; "
            "its other folders are those of workspaceFolders"
        )
        raise bad(message)
    root = path_of(str(asked.folders[0]))
    if root is None:
        message = f"folders[0] must be a file URI, got {asked.folders[0]!r}"
        raise bad(message)
    return root


def _check_root(hosted: Any, root: Path | None) -> None:
    """Refuse a folder that a session, loaded already, does not work in."""
    if root is not None and canonical(root) != hosted.root:
        message = (
            f"session {hosted.session.id} works in {hosted.root.as_uri()}, not in {root.as_uri()}; "
            "open it without `folders`"
        )
        raise bad(message)
