"""Matching of rules to a subject: broad for rules that ask or deny, narrow for rules that allow."""

import fnmatch
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.prefixes import (
    COMMAND_TOOL,
    ReadCommand,
    covering,
    hits,
    read_line,
    runs_another,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
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

ANY_FOLDERS = "**"


def covers_path(glob: str, path: Path, *, roots: Sequence[Path]) -> bool:
    """Return whether a glob means a path as it is spelt.

    A relative glob is looked for below every root; without a `/` in it, it means the name in any folder.
    """
    return any(_matches(parts, path.parts) for parts in _places(glob, roots))


def may_mean_path(glob: str, path: Path, *, roots: Sequence[Path]) -> bool:
    """Return whether a glob may mean a path on a disk that takes other spellings for the same name, or a folder above it."""
    folded = _folded(path.parts)
    ways = [_folded(parts) for parts in _places(glob, roots)]
    return any(_matches(way, folded) or _matches((*way, ANY_FOLDERS), folded) for way in ways)


def exact_glob(path: Path) -> str:
    """Write a path as a glob that means nothing else."""
    return _literal(str(path))


def _places(glob: str, roots: Sequence[Path]) -> list[tuple[str, ...]]:
    if glob.startswith("/"):
        return [Path(glob).parts]
    parts = tuple(part for part in glob.split("/") if part not in {"", "."})
    if len(parts) == 1 and not glob.endswith("/"):
        parts = (ANY_FOLDERS, *parts)
    return [(*(_literal(part) for part in root.parts), *parts) for root in roots]


def _literal(name: str) -> str:
    """Write a name of a real folder so that a glob means nothing else by it."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def _matches(glob: Sequence[str], names: Sequence[str]) -> bool:
    """Compare name by name. Each pair is looked at once, so many `**` cost no more than their product."""

    @cache
    def rest(at: int, name: int) -> bool:
        if at == len(glob):
            return name == len(names)
        if glob[at] == ANY_FOLDERS:
            return rest(at + 1, name) or (name < len(names) and rest(at, name + 1))
        return (
            name < len(names)
            and fnmatch.fnmatchcase(names[name], glob[at])
            and rest(at + 1, name + 1)
        )

    return rest(0, 0)


PLAIN_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")
"""Names and IPv4 addresses. Other alphabets must come as `xn--`: the host that is shown must be the one asked for."""
ANY_BELOW = "*."


def covers_host(pattern: str, host: str) -> bool:
    """Return whether a rule's host means a host: the same name, one below `*.domain`, or any for `*`."""
    name = _plain(host)
    if name is None:
        return False
    if pattern == EVERY_HOST:
        return True
    wanted = pattern.lower().removesuffix(".")
    if wanted.startswith(ANY_BELOW):
        return name.endswith(wanted[1:])
    return name == wanted


def may_mean_host(pattern: str, host: str) -> bool:
    """Return whether a rule's host may mean a host; of a name that is not plain nobody knows, so it may."""
    return covers_host(pattern, host) or _plain(host) is None


def _plain(host: str) -> str | None:
    name = host.lower().removesuffix(".")
    return name if PLAIN_HOST.match(name) and ".." not in name else None


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
    from agent_core.workspace.permissions.policy.matrix import column_of  # noqa: PLC0415 - at first use

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
    from agent_core.workspace.permissions.shell.wrappers import is_wrapper  # noqa: PLC0415 - at first use

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
