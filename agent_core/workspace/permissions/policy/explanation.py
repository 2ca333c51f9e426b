"""Explanation of the decision on a command, for people who write rules."""

from typing import Literal

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.arguments import misleading
from agent_core.workspace.permissions.policy.commands.prefixes import (
    CommandArgv,
    ReadCommand,
    covers,
    is_coverable,
    read_line,
    runs_another,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.decision import decide
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.permissions.policy.subjects import (
    Allow,
    Ask,
    CommandAccess,
    Decision,
    PolicyContext,
)
from agent_core.workspace.permissions.shell import UnclearCommandLine


class CommandExplanation(Value, frozen=True, kw_only=True):
    """One command of a line."""

    argv: CommandArgv
    program: str | None
    """Program that the command would start; None when no rule may refer to it."""
    rule: str | None
    """The id of the allow rule that covers it."""
    why_no_rule: str | None
    """Reason why no allow rule can cover it, in a sentence."""


class Explanation(Value, frozen=True, kw_only=True):
    """Decision on a command, and how it was reached."""

    verdict: Literal["run", "ask", "refuse"]
    decision: Decision
    unclear: str | None
    """Why the line is not plain; None when it is."""
    parts: tuple[CommandExplanation, ...]
    """The commands of a plain line."""
    mentions: tuple[CommandArgv, ...]
    """Other commands that may run somewhere in a line that is not plain: only rules that ask or deny look at them."""
    proposal: Rule | None
    """A rule that would allow it."""


def explain(asked: CommandAccess, context: PolicyContext) -> Explanation:
    """Return what would become of a command. Nothing is run and nobody is asked."""
    decision = decide(asked, context)
    command = read_line(asked)
    unclear = command.plain.reason if isinstance(command.plain, UnclearCommandLine) else None
    return Explanation(
        verdict=_verdict(decision),
        decision=decision,
        unclear=unclear,
        parts=_parts(command, context),
        mentions=command.mentions if unclear is not None else (),
        proposal=_proposal(decision),
    )


def _verdict(decision: Decision) -> Literal["run", "ask", "refuse"]:
    if isinstance(decision, Allow):
        return "run"
    return "ask" if isinstance(decision, Ask) else "refuse"


def _parts(command: ReadCommand, context: PolicyContext) -> tuple[CommandExplanation, ...]:
    if isinstance(command.plain, UnclearCommandLine):
        return ()
    return tuple(_part(argv, command.asked, context) for argv in command.plain.commands)


def _part(argv: CommandArgv, asked: CommandAccess, context: PolicyContext) -> CommandExplanation:
    program = find_program(argv[0], env_path=asked.env_path, roots=context.roots)
    rules = context.rules.of("allow")
    rule = next((one.id for one in rules if covers(one, argv, asked, context)), None)
    why = None if rule is not None else _why_no_rule(argv, program, asked, context)
    return CommandExplanation(argv=argv, program=program, rule=rule, why_no_rule=why)


def _why_no_rule(
    argv: CommandArgv, program: str | None, asked: CommandAccess, context: PolicyContext
) -> str | None:
    if runs_another(argv):
        return f"{argv[0]!r} starts or changes other commands, so no rule allows it"
    if not is_coverable(argv, asked, context):
        return "outside of containment git starts what the repository names, so no rule allows it"
    if program is None:
        return (
            f"{argv[0]!r} is not on the PATH outside of the workspace, so no rule can hold on to it"
        )
    word = misleading(argv[0], argv[1:], cwd=asked.cwd, roots=context.roots)
    if word is not None:
        return f"a rule must name the argument {word!r} itself: it leads elsewhere"
    return None


def _proposal(decision: Decision) -> Rule | None:
    options = decision.options if isinstance(decision, Ask) else ()
    return next((one.rule for one in options if one.kind == "allowProject"), None)
