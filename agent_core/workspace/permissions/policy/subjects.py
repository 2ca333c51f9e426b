"""Subjects that the policy judges, and the situation in which it judges them."""

from pathlib import Path
from typing import Literal

import msgspec

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import (
    Needs,
    PolicyMode,
    SandboxLevel,
    ToolKind,
)
from agent_core.workspace.permissions.policy.rules.rule import RuleSet

FileOperation = Literal["read", "edit", "delete"]


class PolicyContext(Value, frozen=True, kw_only=True):
    """Situation in which a call is judged."""

    mode: PolicyMode
    trusted: bool
    containment: SandboxLevel
    rules: RuleSet = msgspec.field(default_factory=RuleSet)
    roots: tuple[Path, ...]
    """Absolute and without links."""


class CommandAccess(Value, frozen=True, kw_only=True):
    """A command line that wants to run."""

    command: str
    cwd: Path
    needs: frozenset[Needs] = frozenset()
    env_path: str
    """The PATH that the command would run with: programs are looked up in it as the shell would."""
    git_starts_programs: bool = True
    """Whether the repository may name programs that reading commands of git start; see `git_look`. Yes when nobody looked."""


class FileAccess(Value, frozen=True, kw_only=True):
    """A file that wants to be read, changed or removed."""

    path: Path
    """As the workspace resolved it: absolute and without links."""
    operation: FileOperation
    inside: bool
    protected: bool
    """Of an edit: a name that steers the agent or runs code. Of a read: a file of secrets."""


class ToolAccess(Value, frozen=True, kw_only=True):
    """A call of any other tool."""

    tool: str
    kind: ToolKind
    host: str | None = None
    """The host that it would reach."""
    mcp: str | None = None
    """`server/tool`, when another server runs it."""


Subject = CommandAccess | FileAccess | ToolAccess
