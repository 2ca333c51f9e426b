"""What is asked of the policy, and what it is asked in."""

from dataclasses import field
from pathlib import Path
from typing import Literal

from agent_core.kernel.records import dataclass
from agent_core.workspace.permission import Containment, Mode, Needs, ToolKind
from agent_core.workspace.policy.rules import RuleSet

FileOperation = Literal["read", "edit", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What holds while a call is judged."""

    mode: Mode
    trusted: bool
    containment: Containment
    rules: RuleSet = field(default_factory=RuleSet)
    roots: tuple[Path, ...]
    """Absolute and without links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAsked:
    """A command line that wants to run."""

    command: str
    cwd: Path
    needs: frozenset[Needs] = frozenset()
    env_path: str
    """The PATH that the command would run with: programs are looked up in it as the shell would."""
    git_starts_programs: bool = True
    """Whether the repository may name programs that reading commands of git start; see `git_look`. Yes when nobody looked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAsked:
    """A file that wants to be read, changed or removed."""

    path: Path
    """As the workspace resolved it: absolute and without links."""
    operation: FileOperation
    inside: bool
    protected: bool
    """Of an edit: a name that steers the agent or runs code. Of a read: a file of secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherAsked:
    """A call of any other tool."""

    tool: str
    kind: ToolKind
    host: str | None = None
    """The host that it would reach."""
    mcp: str | None = None
    """`server/tool`, when another server runs it."""


Subject = CommandAsked | FileAsked | OtherAsked
