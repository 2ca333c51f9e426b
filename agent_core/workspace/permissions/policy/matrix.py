"""Decision table of the modes and the kinds of target, before rules."""

from collections.abc import Mapping
from typing import Final, Literal

from agent_core.workspace.files.paths import is_inside
from agent_core.workspace.permissions.call_permission import PolicyMode
from agent_core.workspace.permissions.policy.commands.git_operations import git_use
from agent_core.workspace.permissions.policy.subjects import (
    CommandAccess,
    FileAccess,
    PolicyContext,
    Subject,
    ToolAccess,
)

Column = Literal[
    "read inside",
    "read protected",
    "edit inside",
    "edit protected",
    "command contained",
    "command that loses data of git",
    "command of git that starts programs",
    "command not contained",
    "network",
    "unix sockets",
    "outside the roots",
    "a host of the web",
    "another server's reading tool",
    "another tool",
]
Cell = Literal["run", "rules", "ask", "refuse"]
"""`rules`: allow rules, else ask. `ask`: whatever rules allow."""

MATRIX: Final[Mapping[Column, Mapping[PolicyMode, Cell]]] = {
    "read inside": {"plan": "run", "ask": "run", "auto": "run", "yolo": "run"},
    "read protected": {"plan": "ask", "ask": "ask", "auto": "ask", "yolo": "ask"},
    "edit inside": {"plan": "refuse", "ask": "run", "auto": "run", "yolo": "run"},
    "edit protected": {"plan": "refuse", "ask": "ask", "auto": "ask", "yolo": "ask"},
    "command contained": {"plan": "refuse", "ask": "run", "auto": "run", "yolo": "run"},
    "command that loses data of git": {
        "plan": "refuse",
        "ask": "rules",
        "auto": "rules",
        "yolo": "run",
    },
    "command of git that starts programs": {
        "plan": "refuse",
        "ask": "rules",
        "auto": "rules",
        "yolo": "run",
    },
    "command not contained": {"plan": "refuse", "ask": "rules", "auto": "rules", "yolo": "run"},
    "network": {"plan": "refuse", "ask": "rules", "auto": "rules", "yolo": "run"},
    # A socket may be docker's: whoever reaches that is root. So no rule allows it.
    "unix sockets": {"plan": "refuse", "ask": "ask", "auto": "ask", "yolo": "run"},
    "outside the roots": {"plan": "refuse", "ask": "rules", "auto": "rules", "yolo": "run"},
    # What is asked for is in the address: a person sees it before it leaves. Reading changes nothing, so plan mode may.
    "a host of the web": {"plan": "rules", "ask": "rules", "auto": "rules", "yolo": "run"},
    # It may reach out into the world: before a folder is trusted a person is asked.
    "another server's reading tool": {"plan": "rules", "ask": "run", "auto": "run", "yolo": "run"},
    "another tool": {"plan": "refuse", "ask": "rules", "auto": "rules", "yolo": "run"},
}


def column_of(subject: Subject, context: PolicyContext) -> Column:
    """Return which column a subject falls into: the strictest of those that fit."""
    match subject:
        case CommandAccess():
            return _of_command(subject, context)
        case FileAccess():
            return _of_file(subject)
        case ToolAccess():
            return _of_other(subject)


def _of_command(subject: CommandAccess, context: PolicyContext) -> Column:
    if "gitConfig" in subject.needs:
        return "edit protected"
    if "sockets" in subject.needs:
        return "unix sockets"
    if not is_inside(subject.cwd, context.roots):
        return "outside the roots"
    if subject.needs:
        return "network"
    return _of_contained(subject) if context.containment == "full" else "command not contained"


def _of_contained(subject: CommandAccess) -> Column:
    match git_use(subject.command):
        case "loses":
            return "command that loses data of git"
        case "adds" if subject.git_starts_programs:
            return "command of git that starts programs"
        case _:
            return "command contained"


def _of_file(subject: FileAccess) -> Column:
    if subject.operation == "read":
        if subject.protected:
            return "read protected"
        return "read inside" if subject.inside else "outside the roots"
    if subject.protected:
        return "edit protected"
    return "edit inside" if subject.inside else "outside the roots"


def _of_other(subject: ToolAccess) -> Column:
    if subject.host is not None:
        return "a host of the web"
    if subject.kind == "read":
        return "read inside" if subject.mcp is None else "another server's reading tool"
    return "another tool"
