"""The hooks of extensions around the way of a conversation from one session to another."""

from agent_core.assembly import SessionRequest
from agent_core.kernel import SessionId
from agent_core.session import AgentSession
from tiller_server.cli.chat.context import ChatLineOutcome, Switch

NEW = "new"


async def may_leave(session: AgentSession, after: ChatLineOutcome) -> ChatLineOutcome:
    """Return what follows a command, when hooks allow it in case that is another session.

    Raises:
        SwitchRefused: A hook wants the session to stay.
    """
    if isinstance(after, Switch) and after.request is not None:
        wanted = after.request.session
        if wanted != session.id:
            target = None if wanted == NEW else SessionId(wanted)
            await session.switching.leave(target, reason="resume" if target else "new")
    return after


async def arrive(session: AgentSession, request: SessionRequest, previous: SessionId) -> None:
    """Report the hooks of a session that a conversation came to it from another."""
    if previous != session.id:
        reason = "new" if request.session == NEW else "resume"
        await session.switching.arrived(previous, reason=reason)
