"""Moves a connection to another session, if the hooks of the one that it leaves allow it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_core.kernel import SessionId
from agent_core.kernel.errors import TillerError
from agent_core.kernel.threads import uncancelled
from tiller_server.lsp.clients.session_candidates import LATEST, NEW
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession

Prepare = Callable[[OpenSession], Awaitable[None]]


async def switch_session(
    client: ConnectedClient, which: str | None, *, root: Path | None, prepare: Prepare | None = None
) -> OpenSession:
    """Open a session for a connection and return it.

    Args:
        client: The connection.
        which: An id, `latest` or `new`; None: the one that the connection has, else the one it means.
        root: The folder to open it in; None: the first one of the client.
        prepare: Applies what was asked for to the session; None: nothing was. When it fails, the connection keeps the session it had, and
            a new one is closed again.

    Raises:
        RpcError: A hook refuses to let the connection leave its session, or the other cannot be opened or prepared.
    """
    before = client.state.open_session
    left = None if before is None or which in {None, before.session.id} else before.session
    reason = "new" if which == NEW else "resume"
    if left is not None:
        target = None if which is None or which in {NEW, LATEST} else SessionId(which)
        try:
            await left.switching.leave(target, reason=reason)
        except TillerError as error:
            raise to_rpc_error(error, session=left.id) from error
    open_session = await client.bind(which, root=root)
    try:
        if prepare is not None:
            await prepare(open_session)
    except BaseException:
        client.state.open_session = before
        if which == NEW:
            await uncancelled(client.host.release(open_session.session.id))
        raise
    if left is not None and open_session is not before:
        await open_session.session.switching.arrived(left.id, reason=reason)
    return open_session
