"""Entries that people let Tiller keep between sessions, in Markdown files that they can read and edit."""

from agent_core.memory.store import MemoryFileStore
from agent_core.memory.values import MemoryDraft, MemoryEntry, MemoryFile, MemoryScope

__all__ = ["MemoryDraft", "MemoryEntry", "MemoryFile", "MemoryFileStore", "MemoryScope"]
