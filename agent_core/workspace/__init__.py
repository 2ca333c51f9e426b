"""The port through which tools see files and start processes; edits, paths and permission as values."""

from agent_core.workspace.permission import Allowed, PermissionPolicy, Refused, Verdict
from agent_core.workspace.port import (
    READ_LIMIT_BYTES,
    Access,
    Changes,
    Entry,
    FileBytes,
    FileReader,
    Files,
    FileStat,
    FileText,
    Killed,
    Process,
    ProcessEnd,
    Processes,
    Source,
    Workspace,
    Written,
)

__all__ = [
    "READ_LIMIT_BYTES",
    "Access",
    "Allowed",
    "Changes",
    "Entry",
    "FileBytes",
    "FileReader",
    "FileStat",
    "FileText",
    "Files",
    "Killed",
    "PermissionPolicy",
    "Process",
    "ProcessEnd",
    "Processes",
    "Refused",
    "Source",
    "Verdict",
    "Workspace",
    "Written",
]
