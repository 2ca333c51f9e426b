"""Compares command lines with the beginnings that rules name."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.paths import is_inside
from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.rules.rule import EVERY_HOST, Rule
from agent_core.workspace.permissions.policy.subjects import CommandAccess, PolicyContext
from agent_core.workspace.permissions.shell import PlainCommandLine, UnclearCommandLine

CommandArgv = tuple[str, ...]
COMMAND_TOOL: Final = "bash"
GIT: Final = "git"
END_OF_OPTIONS: Final = "--"
REACHING: Final[frozenset[Needs]] = frozenset({"network", "sockets"})
"""Access to other hosts: programs that listen on a unix socket have the network."""
GIT_STARTERS: Final[tuple[CommandArgv, ...]] = (
    ("bisect", "run"), ("config",), ("difftool",), ("filter-branch",), ("mergetool",), ("submodule", "foreach"),
)  # fmt: skip
"""Subcommands of git that start other programs, or configure programs that git starts from then on."""


class ReadCommand(Value, frozen=True, kw_only=True):
    """A command line with what could be made out of it."""

    asked: CommandAccess
    plain: PlainCommandLine | UnclearCommandLine
    mentions: tuple[CommandArgv, ...]
    """Everything that may run somewhere inside; only to be used against it."""


def read_line(asked: CommandAccess) -> ReadCommand:
    """Read a command line, strictly and leniently."""
    from agent_core.workspace.permissions.shell.mentions import mentioned  # noqa: PLC0415 - at first use
    from agent_core.workspace.permissions.shell.strict_parser import read_command  # noqa: PLC0415 - at first use

    return ReadCommand(
        asked=asked, plain=read_command(asked.command), mentions=mentioned(asked.command)
    )


def hits(rule: Rule, command: ReadCommand) -> bool:
    """Return whether a rule that asks or denies is about a command, however well that is hidden."""
    if rule.host is not None and not (rule.host == EVERY_HOST and command.asked.needs & REACHING):
        return False
    plain = command.plain.commands if isinstance(command.plain, PlainCommandLine) else ()
    return not rule.argv_prefix or any(
        spelt_as(rule.argv_prefix, argv) for argv in (*plain, *command.mentions)
    )


def spelt_as(prefix: CommandArgv, argv: CommandArgv) -> bool:
    """Return whether a command is what a prefix means, with options between the words or bundled otherwise."""
    if not argv or _name(prefix[0]) != _name(argv[0]):
        return False
    if argv[1 : len(prefix)] == prefix[1:]:
        return True
    rest = list(argv[1:])
    options = _options(rest)
    for word in prefix[1:]:
        if word.startswith("-"):
            if not _says_option(word, options):
                return False
            continue
        at = _find_word(word, rest)
        if at is None:
            return False
        rest = rest[at + 1 :]
    return True


def covering(
    command: ReadCommand, rules: Sequence[Rule], context: PolicyContext
) -> tuple[Rule, ...] | None:
    """Return the allow rules that cover every command of a line; None when one is left over, or it is not plain."""
    if not isinstance(command.plain, PlainCommandLine) or not command.plain.commands:
        return None
    used: dict[str, Rule] = {}
    for argv in command.plain.commands:
        rule = next((one for one in rules if covers(one, argv, command.asked, context)), None)
        if rule is None:
            return None
        used[rule.id] = rule
    return tuple(used.values())


def covers(rule: Rule, argv: CommandArgv, asked: CommandAccess, context: PolicyContext) -> bool:
    """Return whether an allow rule is about one command of a chain, and about the program that it would start."""
    if not rule.program or not is_coverable(argv, asked, context):
        return False
    if not matches_prefix(rule, argv, asked, roots=context.roots):
        return False
    return find_program(argv[0], env_path=asked.env_path, roots=context.roots) == rule.program


def matches_prefix(
    rule: Rule, argv: CommandArgv, asked: CommandAccess, *, roots: Sequence[Path]
) -> bool:
    """Return whether a command begins with the prefix of an allow rule and its other arguments do not mislead."""
    from agent_core.workspace.permissions.policy.commands.arguments import misleading  # noqa: PLC0415 - at first use

    size = len(rule.argv_prefix)
    if not size or argv[1:size] != rule.argv_prefix[1:] or len(argv) < size:
        return False
    if argv[0] not in {rule.argv_prefix[0], rule.program} or runs_another(argv):
        return False
    return misleading(argv[0], argv[size:], cwd=asked.cwd, roots=roots) is None


def is_coverable(argv: CommandArgv, asked: CommandAccess, context: PolicyContext) -> bool:
    """Return whether any rule may allow a command: it starts nothing but itself, and stands in the workspace.

    Outside of containment git starts what the repository's configuration names, so there its owner must be asked.
    """
    if not argv or runs_another(argv) or not is_inside(asked.cwd, context.roots):
        return False
    return _name(argv[0]) != GIT or context.containment == "full" or not asked.git_starts_programs


def runs_another(argv: CommandArgv) -> bool:
    """Return whether a command starts other commands, or changes what later ones mean."""
    from agent_core.workspace.permissions.shell.wrappers import is_wrapper  # noqa: PLC0415 - at first use

    if _name(argv[0]) != GIT:
        return is_wrapper(argv[0])
    arguments = [word for word in argv[1:] if not word.startswith("-")]
    return any(tuple(arguments[: len(starter)]) == starter for starter in GIT_STARTERS)


def _name(word: str) -> str:
    """Return the name of a program, as a disk without letter case would find it."""
    return PurePosixPath(word).name.casefold()


def _options(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the words that are options; behind `--` there are none."""
    end = arguments.index(END_OF_OPTIONS) if END_OF_OPTIONS in arguments else len(arguments)
    return tuple(word for word in arguments[:end] if word.startswith("-"))


def _says_option(wanted: str, options: Sequence[str]) -> bool:
    if wanted.startswith("--"):
        return any(one == wanted or one.startswith(f"{wanted}=") for one in options)
    letters = {letter for one in options if not one.startswith("--") for letter in one[1:]}
    return wanted != "-" and set(wanted[1:]) <= letters


def _find_word(wanted: str, arguments: Sequence[str]) -> int | None:
    """Find the next word that is no option; an option without `=` may have its value in the word behind it."""
    may_be_value = False
    for at, word in enumerate(arguments):
        if word == wanted:
            return at
        if word.startswith("-"):
            may_be_value = "=" not in word
        elif may_be_value:
            may_be_value = False
        else:
            return None
    return None
