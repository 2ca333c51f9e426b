"""A small world for the policy: a workspace, a PATH with programs, and short ways to ask."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_core.workspace.permissions.call_permission import (
    Needs,
    PolicyMode,
    SandboxLevel,
    ToolKind,
)
from agent_core.workspace.permissions.policy import (
    Allow,
    Ask,
    CommandAccess,
    Decision,
    FileAccess,
    FileOperation,
    PolicyContext,
    PolicyRuleScope,
    Rule,
    RuleSet,
    RuleVerdict,
    Subject,
    ToolAccess,
    decide,
    named,
)

PROGRAMS = ("cargo", "cat", "curl", "echo", "git", "go", "ls", "make", "npm", "pytest", "python3", "rm", "sudo", "tool", "xargs")  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """Everything below one folder."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "ws"

    @property
    def bin(self) -> Path:
        return self.base / "bin"

    def program(self, name: str) -> str:
        return str(self.bin / name)

    def situation(
        self,
        *rules: Rule,
        mode: PolicyMode = "ask",
        trusted: bool = True,
        containment: SandboxLevel = "none",
    ) -> PolicyContext:
        return PolicyContext(
            mode=mode,
            trusted=trusted,
            containment=containment,
            rules=RuleSet(rules=rules),
            roots=(self.root,),
        )

    def command(
        self,
        text: str,
        *needs: Needs,
        path: str | None = None,
        cwd: Path | None = None,
        git_starts_programs: bool = False,
    ) -> CommandAccess:
        return CommandAccess(
            command=text,
            cwd=cwd or self.root,
            needs=frozenset(needs),
            env_path=path if path is not None else str(self.bin),
            git_starts_programs=git_starts_programs,
        )

    def file(
        self, name: str, operation: FileOperation = "edit", *, protected: bool = False
    ) -> FileAccess:
        path = self.root / name
        inside = path.is_relative_to(self.root)
        return FileAccess(path=path, operation=operation, inside=inside, protected=protected)

    def allow(self, *argv: str, host: str | None = None, scope: PolicyRuleScope = "user") -> Rule:
        """A rule for a command, pinned as it would be when it is made."""
        program = self.program(argv[0]) if argv else None
        return command_rule("allow", *argv, host=host, scope=scope, program=program)


def command_rule(
    verdict: RuleVerdict,
    *argv: str,
    host: str | None = None,
    scope: PolicyRuleScope = "user",
    program: str | None = None,
) -> Rule:
    made = Rule(
        id="", tool="bash", verdict=verdict, scope=scope, argv_prefix=argv, host=host, program=program
    )  # fmt: skip
    return named(made)


def file_rule(verdict: RuleVerdict, tool: str, path: str | None) -> Rule:
    return named(Rule(id="", tool=tool, verdict=verdict, scope="user", path=path))


def other(
    tool: str, kind: ToolKind = "other", host: str | None = None, mcp: str | None = None
) -> ToolAccess:
    return ToolAccess(tool=tool, kind=kind, host=host, mcp=mcp)


def make_world(base: Path, programs: Iterable[str] = PROGRAMS) -> World:
    world = World(base.resolve())
    world.root.mkdir()
    world.bin.mkdir()
    for name in programs:
        path = world.bin / name
        path.write_text("#!/bin/sh\n", "utf-8")
        path.chmod(0o755)
    return world


Word = Literal["run", "ask", "refuse"]


def word(decision: Decision) -> Word:
    if isinstance(decision, Allow):
        return "run"
    return "ask" if isinstance(decision, Ask) else "refuse"


def verdict(subject: Subject, situation: PolicyContext) -> Word:
    return word(decide(subject, situation))
