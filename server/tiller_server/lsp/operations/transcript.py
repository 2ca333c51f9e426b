"""Complete conversation of a session: memory holds the older part of a loaded session without its texts."""

from collections.abc import Sequence

from agent_core.kernel import SessionId
from agent_core.transcript import AnyEntry, Transcript
from tiller_server.lsp.sessions.client import ConnectedClient


async def full_branch(client: ConnectedClient, session: str | None) -> Sequence[AnyEntry]:
    """Return all entries of a session's present branch; one that is named is not attached to.

    Raises:
        TillerError: There is no such session, or it cannot be read.
        RpcError: None is named, and none can be opened.
    """
    if session is None:
        info = (await client.resolve_session()).session.info
        # Nothing was said yet, or the disk fails: then only memory knows.
        if not info.is_stored:
            entries: Sequence[AnyEntry] = info.entries
            return entries
        session = (await client.resolve_session()).session.id
    library = await client.host.library()
    stored = await library.read(SessionId(str(session)))
    whole = {entry.id: entry for entry in stored.entries}
    return [whole[entry.id] for entry in Transcript(stored.entries).path()]
