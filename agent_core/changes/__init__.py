"""Changes of a session to files: every verified write, the hunks for review, and reverting."""

from agent_core.changes.history.change_log import ChangeLog
from agent_core.changes.ports.blob_store import BlobStore
from agent_core.changes.values import Change, ChangeSource, Checkpoint, FileVersion, Op

__all__ = ["BlobStore", "Change", "ChangeLog", "ChangeSource", "Checkpoint", "FileVersion", "Op"]
