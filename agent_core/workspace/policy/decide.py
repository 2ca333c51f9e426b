"""Decides whether something may run, must be asked about, or is refused: pure, but for looking up programs."""

import logging

from agent_core.workspace.policy.commands import COMMAND_TOOL
from agent_core.workspace.policy.matching import Known, allowing, known, strict_rule
from agent_core.workspace.policy.matrix import MATRIX, Column, column_of
from agent_core.workspace.policy.offers import DEFAULT, offers
from agent_core.workspace.policy.risk import risk_of
from agent_core.workspace.policy.rules import Rule
from agent_core.workspace.policy.subjects import CommandAsked, FileAsked, Situation, Subject
from agent_core.workspace.policy.verdicts import Ask, Decision, Refuse, Run

log = logging.getLogger(__name__)


def decide(subject: Subject, situation: Situation) -> Decision:
    """Say what may become of a subject. Never raises: a check that fails refuses.

    The order: rules that deny, what the mode or missing trust refuses, rules that ask and protected targets, what
    the mode runs by itself, rules that allow, and then a person.
    """
    try:
        return _decided(subject, situation)
    except Exception as error:
        # A fault in the check must not become a yes, and must not end the run either.
        log.exception("the permission check failed")
        reason = (
            f"the permission check itself failed ({type(error).__name__}), so nothing was done. "
            "Go on without it, and tell the user."
        )
        return Refuse(reason=reason)


def _decided(subject: Subject, situation: Situation) -> Decision:
    about = known(subject)
    if rule := strict_rule("deny", about, situation):
        return Refuse(reason=f"{_what(subject)} is denied by {_told(rule)}.", rule=rule)
    column = column_of(subject, situation)
    mode = situation.mode if situation.trusted else "plan"
    cell = MATRIX[column][mode]
    if cell == "refuse":
        return Refuse(reason=_why_refused(subject, situation))
    if rule := strict_rule("ask", about, situation):
        return _ask(about, situation, column, why=f"{_told(rule)} wants to be asked", rule=rule)
    if cell == "run":
        return Run(reason=_why_run(column, situation))
    rules = allowing(about, situation) if cell == "rules" else None
    if rules:
        told = " and ".join(_told(rule) for rule in rules)
        return Run(reason=f"{told} allows it", rule=rules[0])
    return _ask(about, situation, column, why=_why_ask(column, situation))


def _ask(
    about: Known, situation: Situation, column: Column, *, why: str, rule: Rule | None = None
) -> Ask:
    lasting = rule is None and MATRIX[column][situation.mode] == "rules"
    return Ask(
        reason=why,
        risk=risk_of(about, column),
        options=offers(about, situation, lasting="by rules" if lasting else "never"),
        default=DEFAULT,
        rule=rule,
    )


def _what(subject: Subject) -> str:
    match subject:
        case CommandAsked():
            return "this command"
        case FileAsked():
            return f"to {subject.operation} {str(subject.path)!r}"
        case _:
            return f"the tool {subject.tool!r}"


def _told(rule: Rule) -> str:
    kind = "project's" if rule.scope == "project" else f"{rule.scope}'s"
    return f"the {kind} rule {rule.id!r}"


def _why_refused(subject: Subject, situation: Situation) -> str:
    tool = COMMAND_TOOL if isinstance(subject, CommandAsked) else _what(subject)
    if not situation.trusted:
        return (
            f"{tool} is refused: this workspace is not trusted yet, so it may only be read. "
            "The user can trust it with `tiller trust add`, or `--trust`."
        )
    return f"{tool} is refused in plan mode: nothing may be changed. Describe the change instead."


def _why_run(column: Column, situation: Situation) -> str:
    if column == "command contained":
        return "it is contained: it reaches nothing outside of the workspace"
    return f"{column} runs in {situation.mode} mode"


def _why_ask(column: Column, situation: Situation) -> str:
    match column:
        case "edit protected":
            return "it would change what steers the agent or runs code; that is always asked"
        case "read protected":
            return "it would read a file of secrets; that is always asked"
        case "network":
            return "it wants the network"
        case "outside the roots":
            return "it leads outside of the workspace"
        case "command not contained":
            held = "nothing holds" if situation.containment == "none" else "not enough holds"
            return f"{held} commands in on this machine, and no rule allows it"
        case _:
            return "no rule allows it"
