"""Changes of a session to files: every verified write, the hunks for review, and reverting."""

from agent_core.changes.history import ChangeLog
from agent_core.changes.values import BlobStore, Change, ChangeSource, Checkpoint, FileVersion, Op

__all__ = ["BlobStore", "Change", "ChangeLog", "ChangeSource", "Checkpoint", "FileVersion", "Op"]
