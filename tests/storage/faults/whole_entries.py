"""The entries of an opened session with their bodies, those included that were left in the file."""

from agent_core.storage import OpenedSession
from agent_core.transcript.entries import ColdEntry, WholeEntry


async def whole_entries(opened: OpenedSession) -> tuple[WholeEntry, ...]:
    """Give all entries in order, after reading back what is not in memory."""
    cold = [one for one in opened.entries if isinstance(one, ColdEntry)]
    loaded = {one.id: one for one in await opened.log.load(cold)}
    return tuple(loaded[one.id] if isinstance(one, ColdEntry) else one for one in opened.entries)
