"""Subjects that the policy judges, the situation, and its decisions."""

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
from agent_core.workspace.permissions.policy.rules.rule import Rule, RuleSet

PolicyOptionKind = Literal[
    "allowOnce",
    "allowRun",
    "allowSession",
    "allowProject",
    "allowUser",
    "rejectOnce",
    "rejectAlways",
]
PolicyRisk = Literal["low", "medium", "high"]


class Option(Value, frozen=True, kw_only=True):
    """One way to answer."""

    id: str
    kind: PolicyOptionKind
    label: str
    """At most 60 characters, without line breaks or invisible characters."""
    rule: Rule | None = None
    """Rule that is stored when the option is chosen; None: no rule is stored."""


class Allow(Value, frozen=True, kw_only=True):
    """It may run without a person."""

    reason: str
    rule: Rule | None = None


class Ask(Value, frozen=True, kw_only=True):
    """A person must say so first."""

    reason: str
    risk: PolicyRisk
    options: tuple[Option, ...]
    default: str
    """The id of the option that stands when nobody answers: always a refusal."""
    rule: Rule | None = None


class Deny(Value, frozen=True, kw_only=True):
    """It must not run, and nobody is asked."""

    reason: str
    happened: str | None = None
    """The reason for people; None: it is for them as it is."""
    rule: Rule | None = None


Decision = Allow | Ask | Deny


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
