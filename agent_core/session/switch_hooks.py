"""`session.switching`: hooks for the switch of a window from one session to another."""

from agent_core.hooks import SessionSwitched, SessionSwitching, SwitchCancelled
from agent_core.hooks.session_points import SwitchReason
from agent_core.kernel import SessionId
from agent_core.kernel.errors import SwitchRefused
from agent_core.session.context import SessionContext


class SessionSwitchHooks:
    """The two ends of a switch: both sessions stay open, a window shows the other one."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    async def leave(self, target: SessionId | None, *, reason: SwitchReason) -> None:
        """Ask whether a window may leave this session.

        Args:
            target: Where to; None: not known yet.
            reason: Whether the other session is a new one.

        Raises:
            SwitchRefused: A hook does not want it.
        """
        match await self._parts.hooks.ask(SessionSwitching(reason=reason, target=target)):
            case SwitchCancelled(reason=why):
                message = f"an extension wants this session to stay: {why or 'it gave no reason'}"
                raise SwitchRefused(message)
            case _:
                pass

    async def arrived(self, previous: SessionId | None, *, reason: SwitchReason) -> None:
        """Report that a window came here from another session."""
        _ = await self._parts.hooks.ask(SessionSwitched(reason=reason, previous=previous))
