"""Explanation of the decision on a command, for people who write rules."""

from typing import Literal

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.arguments import misleading
from agent_core.workspace.permissions.policy.commands.prefixes import (
    Argv,
    ReadCommand,
    covers,
    is_coverable,
    read_line,
    runs_another,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.policy.decision import decide
from agent_core.workspace.permissions.policy.outcomes import Ask, Decision, Run
from agent_core.workspace.permissions.policy.rules.rule import Rule
from agent_core.workspace.permissions.policy.subjects import CommandAsked, Situation
from agent_core.workspace.permissions.shell import Unclear


class Part(Value, frozen=True, kw_only=True):
    """One command of a line."""

    argv: Argv
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
    parts: tuple[Part, ...]
    """The commands of a plain line."""
    mentions: tuple[Argv, ...]
    """Other commands that may run somewhere in a line that is not plain: only rules that ask or deny look at them."""
    proposal: Rule | None
    """A rule that would allow it."""


def explain(asked: CommandAsked, situation: Situation) -> Explanation:
    """Return what would become of a command. Nothing is run and nobody is asked."""
    decision = decide(asked, situation)
    command = read_line(asked)
    unclear = command.plain.reason if isinstance(command.plain, Unclear) else None
    return Explanation(
        verdict=_verdict(decision),
        decision=decision,
        unclear=unclear,
        parts=_parts(command, situation),
        mentions=command.mentions if unclear is not None else (),
        proposal=_proposal(decision),
    )


def _verdict(decision: Decision) -> Literal["run", "ask", "refuse"]:
    if isinstance(decision, Run):
        return "run"
    return "ask" if isinstance(decision, Ask) else "refuse"


def _parts(command: ReadCommand, situation: Situation) -> tuple[Part, ...]:
    if isinstance(command.plain, Unclear):
        return ()
    return tuple(_part(argv, command.asked, situation) for argv in command.plain.commands)


def _part(argv: Argv, asked: CommandAsked, situation: Situation) -> Part:
    program = find_program(argv[0], env_path=asked.env_path, roots=situation.roots)
    rules = situation.rules.of("allow")
    rule = next((one.id for one in rules if covers(one, argv, asked, situation)), None)
    why = None if rule is not None else _why_no_rule(argv, program, asked, situation)
    return Part(argv=argv, program=program, rule=rule, why_no_rule=why)


def _why_no_rule(
    argv: Argv, program: str | None, asked: CommandAsked, situation: Situation
) -> str | None:
    if runs_another(argv):
        return f"{argv[0]!r} starts or changes other commands, so no rule allows it"
    if not is_coverable(argv, asked, situation):
        return "outside of containment git starts what the repository names, so no rule allows it"
    if program is None:
        return (
            f"{argv[0]!r} is not on the PATH outside of the workspace, so no rule can hold on to it"
        )
    word = misleading(argv[0], argv[1:], cwd=asked.cwd, roots=situation.roots)
    if word is not None:
        return f"a rule must name the argument {word!r} itself: it leads elsewhere"
    return None


def _proposal(decision: Decision) -> Rule | None:
    options = decision.options if isinstance(decision, Ask) else ()
    return next((one.rule for one in options if one.kind == "allowProject"), None)
