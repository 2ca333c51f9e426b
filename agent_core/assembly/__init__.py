"""Builds sessions: picks adapters, reads settings, puts the parts together."""

from agent_core.assembly.builder import build_session
from agent_core.assembly.factory import (
    create_session,
    export_session,
    latest_session,
    open_session,
)
from agent_core.assembly.request import SessionRequest
from agent_core.assembly.session_parts import SessionDeps

__all__ = [
    "SessionDeps",
    "SessionRequest",
    "build_session",
    "create_session",
    "export_session",
    "latest_session",
    "open_session",
]
