"""Builds sessions: picks adapters, reads settings, puts the parts together."""

from agent_core.assembly.build import Ingredients, build_session
from agent_core.assembly.request import SessionRequest
from agent_core.assembly.sessions import create_session, latest_session, open_session

__all__ = [
    "Ingredients",
    "SessionRequest",
    "build_session",
    "create_session",
    "latest_session",
    "open_session",
]
