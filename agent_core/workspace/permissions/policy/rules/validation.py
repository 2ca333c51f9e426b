"""Check whether a rule can be enforced: one that allows must name what it allows."""

from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.prefixes import COMMAND_TOOL, runs_another
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.rules.matching import CHANGING, READING
from agent_core.workspace.permissions.policy.rules.rule import EVERY_HOST, EVERY_TOOL, Rule
from agent_core.workspace.permissions.shell import is_wrapper

FILE_TOOLS: Final = CHANGING | READING


class RulesFileContext(Value, frozen=True, kw_only=True):
    """Where a file of rules counts."""

    origin: Literal["user", "project", "repository"]
    roots: tuple[Path, ...]
    env_path: str
    home: Path | None = None


def why_unsound(rule: Rule, ground: RulesFileContext) -> str | None:
    """Describe in a sentence why a rule cannot be held to; None when it can."""
    if not _fits_tool(rule):
        return "it names what its tool does not have, so it is about nothing"
    return _why_unsound_allowance(rule, ground) if rule.verdict == "allow" else None


def pinned(rule: Rule, ground: RulesFileContext) -> Rule:
    """Hold a rule that allows a command to the program that its first word means now."""
    if not rule.argv_prefix or rule.program:
        return rule
    return replace(rule, program=_program(rule, ground))


def _why_unsound_allowance(rule: Rule, ground: RulesFileContext) -> str | None:
    if ground.origin == "repository":
        return "a file that comes with the project can only ask and deny; allow it in your own policy.json"
    if rule.tool == EVERY_TOOL:
        return "it allows every tool; name one"
    if rule.tool == COMMAND_TOOL:
        return _why_unsound_command(rule, ground)
    if rule.tool in FILE_TOOLS and rule.path is None:
        return 'it allows files without a "path"; name which'
    return None


def _why_unsound_command(rule: Rule, ground: RulesFileContext) -> str | None:
    if rule.host not in {None, EVERY_HOST}:
        return f'a command cannot be held to one host; write "host": "{EVERY_HOST}" for any'
    if not rule.argv_prefix:
        return None if rule.host else 'it allows commands without "argvPrefix"; name which'
    if runs_another(rule.argv_prefix):
        return f"{_what_starts(rule.argv_prefix)!r} starts or changes other commands, so no rule allows it"
    if rule.program is None and _program(rule, ground) is None:
        return f"the program {rule.argv_prefix[0]!r} was not found on the PATH outside of the workspace"
    if rule.program is not None and not rule.program.startswith("/"):
        return 'its "program" is not an absolute path'
    return None


def _what_starts(prefix: tuple[str, ...]) -> str:
    return prefix[0] if is_wrapper(prefix[0]) else " ".join(prefix)


def _fits_tool(rule: Rule) -> bool:
    """Return whether a rule names only what subjects of its tool have: else it would never be about any."""
    named = {
        "command": bool(rule.argv_prefix or rule.program),
        "file": rule.path is not None,
        "other": rule.mcp is not None,
        "host": rule.host is not None,
    }
    kinds = {kind for kind, given in named.items() if given}
    if rule.tool == COMMAND_TOOL:
        return kinds <= {"command", "host"}
    if rule.tool in FILE_TOOLS:
        return kinds <= {"file"}
    if rule.tool == EVERY_TOOL:
        return kinds <= {"command", "host"} or kinds <= {"other", "host"} or kinds <= {"file"}
    return kinds <= {"other", "host"}


def _program(rule: Rule, ground: RulesFileContext) -> str | None:
    return find_program(rule.argv_prefix[0], env_path=ground.env_path, roots=ground.roots)
