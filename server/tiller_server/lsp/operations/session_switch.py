"""Moves a connection to another session, if the hooks of the one that it leaves allow it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from agent_core.kernel.shield import uncancelled
from tiller_server.lsp.encode.errors import rpc_error
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.session_candidates import LATEST, NEW

Prepare = Callable[[Any], Awaitable[None]]


async def open_session(
    front: Front, which: str | None, *, root: Path | None, prepare: Prepare | None = None
) -> Any:
    """Open a session for a connection and return it, a `Hosted`.

    Args:
        front: The connection.
        which: An id, `latest` or `new`; None: the one that the connection has, else the one it means.
        root: The folder to open it in; None: the first one of the client.
        prepare: Applies what was asked for to the session; None: nothing was. When it fails, the connection keeps the session it had, and
            a new one is closed again.

    Raises:
        RpcError: A hook refuses to let the connection leave its session, or the other cannot be opened or prepared.
    """
    before = front.has.hosted
    left = None if before is None or which in {None, before.session.id} else before.session
    reason = "new" if which == NEW else "resume"
    if left is not None:
        target = None if which is None or which in {NEW, LATEST} else SessionId(which)
        try:
            await left.switching.leave(target, reason=reason)
        except TillerError as error:
            raise rpc_error(error, session=left.id) from error
    hosted = await front.bind(which, root=root)
    try:
        if prepare is not None:
            await prepare(hosted)
    except BaseException:
        front.has.hosted = before
        if which == NEW:
            await uncancelled(front.host.release(hosted.session.id))
        raise
    if left is not None and hosted is not before:
        await hosted.session.switching.arrived(left.id, reason=reason)
    return hosted
