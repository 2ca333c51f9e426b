"""`agent/session/open`: choose the session of this connection."""

from pathlib import Path
from typing import Any

from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from server.lsp.failures import rpc_error
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
    left = front.has.hosted
    if left is None or asked.session in {None, left.session.id}:
        return front.snapshot(await front.bind(asked.session, root=root))
    return front.snapshot(await _switched(front, left, asked.session or "new", root=root))


async def _switched(front: Front, left: Any, which: str, *, root: Path | None) -> Any:
    """Go from one session to another, if the hooks of the first let the window go."""
    reason = "new" if which == "new" else "resume"
    target = None if which in {"new", "latest"} else SessionId(which)
    try:
        await left.session.switching.leave(target, reason=reason)
    except TillerError as error:
        raise rpc_error(error, session=left.session.id) from error
    hosted = await front.bind(which, root=root)
    if hosted is not left:
        await hosted.session.switching.arrived(left.session.id, reason=reason)
    return hosted
