"""Makes the rules that an answer may leave behind: as narrow as still answers the same question."""

from pathlib import PurePosixPath
from typing import Final

from agent_core.workspace.permissions.policy.commands.prefixes import (
    COMMAND_TOOL,
    Argv,
    covers,
    is_coverable,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.risk import GRAVE
from agent_core.workspace.permissions.policy.rules.globs import exact_glob
from agent_core.workspace.permissions.policy.rules.matching import Known
from agent_core.workspace.permissions.policy.rules.rule import EVERY_HOST, Rule, RuleVerdict, named
from agent_core.workspace.permissions.policy.subjects import (
    CommandAsked,
    FileAsked,
    OtherAsked,
    Situation,
)
from agent_core.workspace.permissions.shell import Plain

FAMILIES: Final = frozenset(
    {"apt", "brew", "bundle", "cargo", "composer", "conda", "docker", "dotnet", "flutter", "gem", "gh", "git", "go",
     "gradle", "hatch", "helm", "just", "kubectl", "make", "mix", "mvn", "nix", "npm", "pdm", "pip", "pipenv", "pnpm",
     "podman", "poetry", "rails", "rake", "swift", "task", "terraform", "tox", "uv", "yarn"}
)  # fmt: skip
"""Programs whose second word says what they do."""
SCRIPT_WORDS: Final = frozenset({"run", "run-script", "exec", "tool"})
"""Second words that leave it to a third one."""
DEEP_FAMILIES: Final = frozenset({"gh"})
"""Programs whose second word is a thing, and whose third says what becomes of it."""
CHECKERS: Final = frozenset(
    {"basedpyright", "black", "ctest", "eslint", "flake8", "gofmt", "golangci-lint", "isort", "jest", "mocha", "mypy",
     "phpunit", "prettier", "pyright", "pytest", "rspec", "rubocop", "ruff", "rustfmt", "shellcheck", "tsc", "vitest"}
)  # fmt: skip
"""Programs that do one thing whatever their arguments are."""


def allowing_rule(about: Known, situation: Situation) -> Rule | None:
    """Make the rule that would have allowed this; None when no rule can, or none should."""
    match about.subject:
        case CommandAsked() as asked if situation.containment == "full" and asked.needs:
            return named(
                Rule(id="", tool=COMMAND_TOOL, verdict="allow", scope="project", host=EVERY_HOST)
            )
        case CommandAsked() as asked:
            return _command_rule(about, asked, situation)
        case FileAsked() as asked:
            return _file_rule(asked, "allow")
        case OtherAsked() as asked:
            return _other_rule(asked, "allow")


def denying_rule(about: Known) -> Rule | None:
    """Make the rule that would have denied this; None when nothing in it can be named."""
    match about.subject:
        case CommandAsked() as asked:
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
        case FileAsked() as asked:
            return _file_rule(asked, "deny")
        case OtherAsked() as asked:
            return _other_rule(asked, "deny")


def prefix_of(argv: Argv) -> Argv:
    """Return the beginning by which a command is known: as much of it as says what it does."""
    name = _name(argv[0])
    if name in CHECKERS:
        return argv[:1]
    if name not in FAMILIES or len(argv) == 1 or argv[1].startswith("-"):
        return argv
    return argv[:3] if argv[1] in SCRIPT_WORDS or name in DEEP_FAMILIES else argv[:2]


def _command_rule(about: Known, asked: CommandAsked, situation: Situation) -> Rule | None:
    """Make a rule for the one command of a line that nothing covers yet."""
    rules = tuple(situation.rules.of("allow"))
    left = {
        prefix_of(argv): argv
        for argv in _plain(about)
        if not any(covers(rule, argv, asked, situation) for rule in rules)
    }
    if len(left) != 1:
        return None
    ((prefix, argv),) = left.items()
    if _name(argv[0]) in GRAVE or not is_coverable(argv, asked, situation):
        return None
    return named(
        Rule(
            id="",
            tool=COMMAND_TOOL,
            verdict="allow",
            scope="project",
            argv_prefix=prefix,
            host=_host(asked),
            program=find_program(argv[0], env_path=asked.env_path, roots=situation.roots),
        )
    )


def _file_rule(asked: FileAsked, verdict: RuleVerdict) -> Rule:
    path = exact_glob(asked.path)
    return named(Rule(id="", tool=asked.operation, verdict=verdict, scope="project", path=path))


def _other_rule(asked: OtherAsked, verdict: RuleVerdict) -> Rule:
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


def _plain(about: Known) -> tuple[Argv, ...]:
    plain = about.command.plain if about.command is not None else None
    return plain.commands if isinstance(plain, Plain) else ()


def _host(asked: CommandAsked) -> str | None:
    return EVERY_HOST if "network" in asked.needs else None


def _name(word: str) -> str:
    return PurePosixPath(word).name
