"""Where sessions are kept."""

from agent_core.storage.port import (
    OpenedSession,
    Recovery,
    SessionLog,
    SessionStore,
    SessionSummary,
    StoredSession,
)

__all__ = [
    "OpenedSession",
    "Recovery",
    "SessionLog",
    "SessionStore",
    "SessionSummary",
    "StoredSession",
]
