"""Where sessions are kept."""

from agent_core.storage.port import (
    Opened,
    Recovery,
    SessionLog,
    SessionStore,
    SessionSummary,
    Stored,
)

__all__ = ["Opened", "Recovery", "SessionLog", "SessionStore", "SessionSummary", "Stored"]
