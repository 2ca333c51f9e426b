"""Risk level of a permission request: shown to people only, no decision depends on it."""

import os
from pathlib import PurePosixPath
from typing import Final

from agent_core.workspace.permissions.call_permission import READ_ONLY_COMMANDS
from agent_core.workspace.permissions.policy.commands.prefixes import ReadCommand
from agent_core.workspace.permissions.policy.matrix import Column
from agent_core.workspace.permissions.policy.rules.matching import ParsedSubject
from agent_core.workspace.permissions.policy.subjects import (
    CommandAccess,
    FileAccess,
    PolicyRisk,
    ToolAccess,
)
from agent_core.workspace.permissions.shell import PlainCommandLine, is_wrapper

GRAVE: Final = frozenset(
    {"chgrp", "chmod", "chown", "crontab", "curl", "dd", "fdisk", "hostname", "install", "kill", "killall", "ln", "mkfs",
     "mount", "mv", "nc", "pkill", "rm", "rmdir", "rsync", "scp", "shred", "ssh", "tee", "truncate", "umount", "unlink",
     "wget"}
)  # fmt: skip
"""Programs whose harm does not depend on a name: no rule is offered for them."""


def risk_of(about: ParsedSubject, column: Column) -> PolicyRisk:
    """Return how much is at stake."""
    if column in {"edit protected", "read protected", "unix sockets"}:
        return "high"
    match about.subject:
        case FileAccess(operation="read") | ToolAccess(kind="read"):
            return "medium"
        case CommandAccess() if about.command is not None and column != "outside the roots":
            return _of_command(about.command)
        case ToolAccess():
            return "medium"
        case _:
            return "high"


def _of_command(command: ReadCommand) -> PolicyRisk:
    if not isinstance(command.plain, PlainCommandLine):
        return "high"
    names = {PurePosixPath(argv[0]).name for argv in command.plain.commands if argv}
    if names & GRAVE or any(is_wrapper(name) for name in names):
        return "high"
    plain = all(_stays(word) for argv in command.plain.commands for word in argv[1:])
    return "low" if plain and names <= READ_ONLY_COMMANDS else "medium"


def _stays(word: str) -> bool:
    return not word.startswith(("/", "~")) and os.pardir not in word
