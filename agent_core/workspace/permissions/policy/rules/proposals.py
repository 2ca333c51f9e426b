"""Makes the rules that an answer may leave behind: as narrow as still answers the same question."""

from pathlib import PurePosixPath
from typing import Final

from agent_core.workspace.permissions.policy.commands.prefixes import (
    COMMAND_TOOL,
    CommandArgv,
    covers,
    is_coverable,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.risk import GRAVE
from agent_core.workspace.permissions.policy.rules.matching import ParsedSubject, exact_glob
from agent_core.workspace.permissions.policy.rules.rule import EVERY_HOST, Rule, RuleVerdict, named
from agent_core.workspace.permissions.policy.subjects import (
    CommandAccess,
    FileAccess,
    PolicyContext,
    ToolAccess,
)
from agent_core.workspace.permissions.shell import PlainCommandLine

FAMILIES: Final = frozenset(
    {"apt", "brew", "bundle", "cargo", "composer", "conda", "docker", "dotnet", "flutter", "gem", "gh", "git", "go",
     "gradle", "hatch", "helm", "just", "kubectl", "make", "mix", "mvn", "nix", "npm", "pdm", "pip", "pipenv", "pnpm",
     "podman", "poetry", "rails", "rake", "swift", "task", "terraform", "tox", "uv", "yarn"}
)  # fmt: skip
"""Programs whose second word says what they do."""
SCRIPT_SUBCOMMANDS: Final = frozenset({"run", "run-script", "exec", "tool"})
"""Second words that leave it to a third one."""
DEEP_FAMILIES: Final = frozenset({"gh"})
"""Programs whose second word is a thing, and whose third says what becomes of it."""
CHECKERS: Final = frozenset(
    {"basedpyright", "black", "ctest", "eslint", "flake8", "gofmt", "golangci-lint", "isort", "jest", "mocha", "mypy",
     "phpunit", "prettier", "pyright", "pytest", "rspec", "rubocop", "ruff", "rustfmt", "shellcheck", "tsc", "vitest"}
)  # fmt: skip
"""Programs that do one thing whatever their arguments are."""


def allowing_rule(about: ParsedSubject, context: PolicyContext) -> Rule | None:
    """Make the rule that would have allowed this; None when no rule can, or none should."""
    match about.subject:
        case CommandAccess() as asked if context.containment == "full" and asked.needs:
            return named(
                Rule(id="", tool=COMMAND_TOOL, verdict="allow", scope="project", host=EVERY_HOST)
            )
        case CommandAccess() as asked:
            return _command_rule(about, asked, context)
        case FileAccess() as asked:
            return _file_rule(asked, "allow")
        case ToolAccess() as asked:
            return _other_rule(asked, "allow")


def denying_rule(about: ParsedSubject) -> Rule | None:
    """Make the rule that would have denied this; None when nothing in it can be named."""
    match about.subject:
        case CommandAccess() as asked:
            prefixes = {prefix_of(argv) for argv in _plain(about)}
            if len(prefixes) != 1:
                return None
            return named(
                Rule(
                    id="",
                    tool=COMMAND_TOOL,
                    verdict="deny",
                    scope="project",
                    argv_prefix=prefixes.pop(),
                    host=_host(asked),
                )
            )
        case FileAccess() as asked:
            return _file_rule(asked, "deny")
        case ToolAccess() as asked:
            return _other_rule(asked, "deny")


def prefix_of(argv: CommandArgv) -> CommandArgv:
    """Return the beginning by which a command is known: as much of it as says what it does."""
    name = _name(argv[0])
    if name in CHECKERS:
        return argv[:1]
    if name not in FAMILIES or len(argv) == 1 or argv[1].startswith("-"):
        return argv
    return argv[:3] if argv[1] in SCRIPT_SUBCOMMANDS or name in DEEP_FAMILIES else argv[:2]


def _command_rule(
    about: ParsedSubject, asked: CommandAccess, context: PolicyContext
) -> Rule | None:
    """Make a rule for the one command of a line that nothing covers yet."""
    rules = tuple(context.rules.of("allow"))
    left = {
        prefix_of(argv): argv
        for argv in _plain(about)
        if not any(covers(rule, argv, asked, context) for rule in rules)
    }
    if len(left) != 1:
        return None
    ((prefix, argv),) = left.items()
    if _name(argv[0]) in GRAVE or not is_coverable(argv, asked, context):
        return None
    return named(
        Rule(
            id="",
            tool=COMMAND_TOOL,
            verdict="allow",
            scope="project",
            argv_prefix=prefix,
            host=_host(asked),
            program=find_program(argv[0], env_path=asked.env_path, roots=context.roots),
        )
    )


def _file_rule(asked: FileAccess, verdict: RuleVerdict) -> Rule:
    path = exact_glob(asked.path)
    return named(Rule(id="", tool=asked.operation, verdict=verdict, scope="project", path=path))


def _other_rule(asked: ToolAccess, verdict: RuleVerdict) -> Rule:
    return named(
        Rule(
            id="",
            tool=asked.tool,
            verdict=verdict,
            scope="project",
            host=asked.host,
            mcp=asked.mcp,
        )
    )


def _plain(about: ParsedSubject) -> tuple[CommandArgv, ...]:
    plain = about.command.plain if about.command is not None else None
    return plain.commands if isinstance(plain, PlainCommandLine) else ()


def _host(asked: CommandAccess) -> str | None:
    return EVERY_HOST if "network" in asked.needs else None


def _name(word: str) -> str:
    return PurePosixPath(word).name
