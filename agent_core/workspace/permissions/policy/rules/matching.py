"""Matching of rules to a subject: broad for rules that ask or deny, narrow for rules that allow."""

from collections.abc import Iterator
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.prefixes import (
    COMMAND_TOOL,
    ReadCommand,
    covering,
    hits,
    read_line,
)
from agent_core.workspace.permissions.policy.matrix import column_of
from agent_core.workspace.permissions.policy.rules.globs import covers_path, may_mean_path
from agent_core.workspace.permissions.policy.rules.hosts import covers_host, may_mean_host
from agent_core.workspace.permissions.policy.rules.rule import (
    EVERY_HOST,
    EVERY_TOOL,
    Rule,
    RuleVerdict,
)
from agent_core.workspace.permissions.policy.subjects import (
    CommandAccess,
    FileAccess,
    PolicyContext,
    Subject,
    ToolAccess,
)

CHANGING: Final = frozenset({"edit", "write", "delete"})
READING: Final = frozenset({"read", "grep", "find", "ls"})
EVERY_MCP_TOOL: Final = "/*"


class ParsedSubject(Value, frozen=True, kw_only=True):
    """A subject with what was made out of it once, for all that look at it."""

    subject: Subject
    command: ReadCommand | None


def parse_subject(subject: Subject) -> ParsedSubject:
    """Read what there is to read in a subject."""
    command = read_line(subject) if isinstance(subject, CommandAccess) else None
    return ParsedSubject(subject=subject, command=command)


def strict_rule(verdict: RuleVerdict, about: ParsedSubject, context: PolicyContext) -> Rule | None:
    """Return a rule that asks or denies and may be about a subject."""
    found = (rule for rule in context.rules.of(verdict) if _may_mean(rule, about, context))
    return next(found, None)


def allowing(about: ParsedSubject, context: PolicyContext) -> tuple[Rule, ...] | None:
    """Return the rules that together allow a subject whole; None when they do not."""
    rules = tuple(context.rules.of("allow"))
    match about.subject:
        case CommandAccess() as asked:
            command = about.command or read_line(asked)
            return _allowing_command(command, asked, rules, context)
        case FileAccess() as asked:
            return _first(rule for rule in rules if _allows_file(rule, asked, context))
        case ToolAccess() as asked:
            return _first(rule for rule in rules if _allows_other(rule, asked))


def is_mcp(pattern: str, tool: str) -> bool:
    """Return whether `server/tool`, or `server/*`, means a tool of another server."""
    if pattern.endswith(EVERY_MCP_TOOL):
        return tool.startswith(pattern[:-1])
    return tool == pattern


def _may_mean(rule: Rule, about: ParsedSubject, context: PolicyContext) -> bool:
    match about.subject:
        case CommandAccess():
            return _hits_command(rule, about.command)
        case FileAccess() as asked:
            return _hits_file(rule, asked, context)
        case ToolAccess() as asked:
            return _hits_other(rule, asked)


def _hits_command(rule: Rule, command: ReadCommand | None) -> bool:
    if rule.tool not in {EVERY_TOOL, COMMAND_TOOL} or rule.path or rule.mcp:
        return False
    return command is None or hits(rule, command)


def _hits_file(rule: Rule, asked: FileAccess, context: PolicyContext) -> bool:
    tools = READING if asked.operation == "read" else CHANGING
    if rule.tool != EVERY_TOOL and rule.tool not in tools:
        return False
    if rule.argv_prefix or rule.host or rule.mcp:
        return False
    return rule.path is None or may_mean_path(rule.path, asked.path, roots=context.roots)


def _hits_other(rule: Rule, asked: ToolAccess) -> bool:
    if rule.tool not in {EVERY_TOOL, asked.tool} or rule.argv_prefix or rule.path:
        return False
    if rule.host is not None and (asked.host is None or not may_mean_host(rule.host, asked.host)):
        return False
    return rule.mcp is None or (
        asked.mcp is not None and is_mcp(rule.mcp.casefold(), asked.mcp.casefold())
    )


def _allowing_command(
    command: ReadCommand, asked: CommandAccess, rules: tuple[Rule, ...], context: PolicyContext
) -> tuple[Rule, ...] | None:
    """Find what gives the command its run, and what gives it the network."""
    # In another folder the same words are another command: no rule was made for that.
    mine = tuple(
        rule for rule in rules if rule.tool == COMMAND_TOOL and not (rule.path or rule.mcp)
    )
    run: tuple[Rule, ...] = ()
    if column_of(asked, context) == "outside the roots":
        return None
    if context.containment != "full":
        covered = covering(command, mine, context)
        if covered is None:
            return None
        run = covered
    if "network" not in asked.needs:
        return run
    reaching = tuple(rule for rule in mine if rule.host == EVERY_HOST)
    whole = _first(rule for rule in reaching if not rule.argv_prefix)
    network = whole or covering(command, reaching, context)
    return None if network is None else (*run, *network)


def _allows_file(rule: Rule, asked: FileAccess, context: PolicyContext) -> bool:
    wanted = {"edit": {"edit", "write"}, "read": {"read"}, "delete": {"delete"}}[asked.operation]
    if rule.tool not in wanted or rule.argv_prefix or rule.host or rule.mcp or rule.path is None:
        return False
    return covers_path(rule.path, asked.path, roots=context.roots)


def _allows_other(rule: Rule, asked: ToolAccess) -> bool:
    """An allow rule must name whatever the call names: a host, a tool of another server."""
    if rule.tool != asked.tool or rule.argv_prefix or rule.path:
        return False
    if (rule.host is None) != (asked.host is None) or (rule.mcp is None) != (asked.mcp is None):
        return False
    if rule.host is not None and asked.host is not None and not covers_host(rule.host, asked.host):
        return False
    return rule.mcp is None or asked.mcp is None or is_mcp(rule.mcp, asked.mcp)


def _first(rules: Iterator[Rule]) -> tuple[Rule] | None:
    found = next(rules, None)
    return None if found is None else (found,)
