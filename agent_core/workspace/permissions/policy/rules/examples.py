"""Tries a rule on the examples that it carries, so that a slip in it is noticed when it is loaded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.workspace.permissions.policy.commands.prefixes import (
    COMMAND_TOOL,
    hits,
    matches_prefix,
    read_line,
)
from agent_core.workspace.permissions.policy.rules.matching import (
    covers_host,
    covers_path,
    is_mcp,
    may_mean_host,
    may_mean_path,
)
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.permissions.policy.subjects import CommandAccess
from agent_core.workspace.permissions.shell import PlainCommandLine

ROOT: Final = Path("/workspace")
"""Where relative examples are taken to lie when a rule is about no workspace in particular."""


def wrong_examples(rule: Rule, *, roots: Sequence[Path]) -> Iterator[str]:
    """Return a sentence for each example of a rule that does not hold."""
    places = tuple(roots) or (ROOT,)
    for example in rule.match:
        if not is_about(rule, example, roots=places):
            yield f'its example {example!r} under "match" is not covered by it'
    for example in rule.not_match:
        if is_about(rule, example, roots=places):
            yield f'its example {example!r} under "notMatch" is covered by it'


def is_about(rule: Rule, example: str, *, roots: Sequence[Path]) -> bool:
    """Return whether a rule would be about an example: a command line, a path, a host, or `server/tool`."""
    if rule.argv_prefix:
        return _command(rule, example, roots)
    if rule.path is not None:
        covers = covers_path if rule.verdict == "allow" else may_mean_path
        return covers(rule.path, roots[0] / example, roots=roots)
    if rule.mcp is not None:
        return is_mcp(rule.mcp, example)
    if rule.host is not None and rule.tool != COMMAND_TOOL:
        return (covers_host if rule.verdict == "allow" else may_mean_host)(rule.host, example)
    return True


def _command(rule: Rule, example: str, roots: Sequence[Path]) -> bool:
    asked = CommandAccess(command=example, cwd=roots[0], env_path="", git_starts_programs=False)
    command = read_line(asked)
    if rule.verdict != "allow":
        return hits(replace(rule, host=None), command)
    if not isinstance(command.plain, PlainCommandLine):
        return False
    return bool(command.plain.commands) and all(
        matches_prefix(rule, argv, asked, roots=roots) for argv in command.plain.commands
    )
