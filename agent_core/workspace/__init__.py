"""The port through which tools see files and start processes; edits, paths and permission as values."""

from agent_core.workspace.permission import Allowed, PermissionPolicy, Refused, Verdict
from agent_core.workspace.port import (
    Access,
    FileBytes,
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
    "Access",
    "Allowed",
    "FileBytes",
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
