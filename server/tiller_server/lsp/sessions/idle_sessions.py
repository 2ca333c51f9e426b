"""Which sessions nobody has used for so long that they can leave the memory."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from agent_core.resources.settings.layers import Layer, load_settings
from tiller_server.lsp.sessions.open_session import OpenSession

MINUTE_S: Final = 60.0


def idle_sessions(
    sessions: Iterable[OpenSession], *, now_s: float, limit_s: float
) -> tuple[OpenSession, ...]:
    """Return those that can go, and note of the others that they are in use."""
    idle: list[OpenSession] = []
    for open_session in sessions:
        if open_session.is_task or open_session.closing.is_set():
            continue
        if open_session.is_used:
            open_session.kept.used_s = now_s
        elif now_s - open_session.kept.used_s >= limit_s:
            idle.append(open_session)
    return tuple(idle)


async def idle_unload_s(settings: Path) -> float:
    """Read how long a session stays that nobody uses, in seconds: the user's `idleUnloadMinutes`."""
    loaded = await load_settings([Layer(name="user", content=settings)])
    return loaded.values.idle_unload_minutes * MINUTE_S
