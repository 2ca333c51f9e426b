"""Changes of a session to files: every verified write, the hunks for review, and reverting."""

from agent_core.changes.history.change_log import ChangeLog
from agent_core.changes.ports.blob_store import Contents
from agent_core.changes.values import Change, Checkpoint, Doer, FileVersion, Op

__all__ = ["Change", "ChangeLog", "Checkpoint", "Contents", "Doer", "FileVersion", "Op"]
