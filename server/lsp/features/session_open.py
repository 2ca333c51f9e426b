"""`agent/session/open`: choose the session of this connection."""

from typing import Any

from server.lsp.front import Front, bad
from server.lsp.uris import path_of
from server.lsp.wire import SessionOpenParams, parse


async def run(front: Front, params: dict[str, Any]) -> object:
    """Open a session and give its snapshot."""
    asked = parse(SessionOpenParams, params, method="agent/session/open")
    if asked.session is not None and not (asked.session.isprintable() and asked.session):
        message = f"session must be an id, `latest` or `new`, got {asked.session[:80]!r}"
        raise bad(message)
    root = None
    if asked.folders:
        root = path_of(str(asked.folders[0]))
        if root is None:
            message = f"folders[0] must be a file URI, got {asked.folders[0]!r}"
            raise bad(message)
    hosted = await front.bind(asked.session, root=root)
    return front.snapshot(hosted)
