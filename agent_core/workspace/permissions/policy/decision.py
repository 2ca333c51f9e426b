"""Decides whether something may run, must be asked about, or is refused: pure, but for looking up programs."""

import logging
import re
from collections.abc import Mapping
from typing import Final, Literal

from msgspec.structs import replace

from agent_core.workspace.permissions.call_permission import LETS_IN
from agent_core.workspace.permissions.policy.commands.prefixes import COMMAND_TOOL
from agent_core.workspace.permissions.policy.matrix import MATRIX, Column, column_of
from agent_core.workspace.permissions.policy.risk import risk_of
from agent_core.workspace.permissions.policy.rules.matching import (
    ParsedSubject,
    allowing,
    parse_subject,
    strict_rule,
)
from agent_core.workspace.permissions.policy.rules.proposals import allowing_rule, denying_rule
from agent_core.workspace.permissions.policy.rules.rule import PolicyRuleScope, Rule
from agent_core.workspace.permissions.policy.subjects import (
    Allow,
    Ask,
    CommandAccess,
    Decision,
    Deny,
    FileAccess,
    Option,
    PolicyContext,
    PolicyOptionKind,
    Subject,
    ToolAccess,
)

log = logging.getLogger(__name__)

DEFAULT: Final = "rejectOnce"
LABEL_CHARS: Final = 60
SHORTENED: Final = "…"
UNSEEN: Final = re.compile(r"[^\x20-\x7e]")
"""Characters that a label replaces: it must read the same everywhere. The dialog shows the exact bytes beside it."""
SCOPES: Final[tuple[tuple[PolicyOptionKind, PolicyRuleScope, str], ...]] = (
    ("allowRun", "run", "for this run"),
    ("allowSession", "session", "for this session"),
    ("allowProject", "project", "for this project"),
)


def decide(subject: Subject, context: PolicyContext) -> Decision:
    """Return what may become of a subject. Never raises: a check that fails refuses.

    The order: rules that deny, what the mode or missing trust refuses, rules that ask and protected targets, what
    the mode runs by itself, rules that allow, and then a person.
    """
    try:
        return decide_unread(subject, context) or _decided(subject, context)
    except Exception as error:
        # A fault in the check must not become a yes, and must not end the run either.
        log.exception("the permission check failed")
        why = f"the permission check itself failed ({type(error).__name__}), so nothing was done."
        return Deny(reason=f"{why} Go on without it, and tell the user.", happened=why)


def decide_unread(subject: Subject, context: PolicyContext) -> Allow | None:
    """Return that a subject may run if no rule is in force and the mode runs all of its kind; None: `decide` has to look.

    Nothing of a command is read for that, and nothing on the disk.
    """
    if context.rules.rules or not context.trusted:
        return None
    if isinstance(subject, CommandAccess) and context.containment == "full":
        return None
    column = column_of(subject, context)
    if MATRIX[column][context.mode] != "run":
        return None
    return Allow(reason=_why_run(column, context))


def _decided(subject: Subject, context: PolicyContext) -> Decision:
    about = parse_subject(subject)
    if rule := strict_rule("deny", about, context):
        return Deny(reason=f"{_what(subject)} is denied by {_rule_label(rule)}.", rule=rule)
    column = column_of(subject, context)
    mode = context.mode if context.trusted else "plan"
    cell = MATRIX[column][mode]
    if cell == "refuse":
        return _refused(subject, context)
    if rule := strict_rule("ask", about, context):
        why = f"{_rule_label(rule)} wants to be asked{_and_wants(subject)}"
        return _ask(about, context, column, why=why, rule=rule)
    if cell == "run":
        return Allow(reason=_why_run(column, context))
    rules = allowing(about, context) if cell == "rules" else None
    if rules:
        rule_labels = " and ".join(_rule_label(rule) for rule in rules)
        return Allow(reason=f"{rule_labels} allows it", rule=rules[0])
    return _ask(about, context, column, why=_why_ask(subject, column, context))


def _ask(
    about: ParsedSubject,
    context: PolicyContext,
    column: Column,
    *,
    why: str,
    rule: Rule | None = None,
) -> Ask:
    lasting = rule is None and MATRIX[column][context.mode] == "rules"
    return Ask(
        reason=why,
        risk=risk_of(about, column),
        options=offers(about, context, lasting="by rules" if lasting else "never"),
        default=DEFAULT,
        rule=rule,
    )


def _what(subject: Subject) -> str:
    match subject:
        case CommandAccess():
            return "this command"
        case FileAccess():
            return f"to {subject.operation} {str(subject.path)!r}"
        case _:
            return f"the tool {subject.tool!r}"


def _rule_label(rule: Rule) -> str:
    kind = "project's" if rule.scope == "project" else f"{rule.scope}'s"
    return f"the {kind} rule {rule.id!r}"


def _refused(subject: Subject, context: PolicyContext) -> Deny:
    tool = COMMAND_TOOL if isinstance(subject, CommandAccess) else _what(subject)
    if not context.trusted:
        why = f"{tool} is refused: this workspace is not trusted yet, so it may only be read."
        return Deny(
            reason=f"{why} The user can trust it with `tiller trust add`, or `--trust`.",
            happened=f"{why} Trust the folder to allow it.",
        )
    why = f"{tool} is refused in plan mode: nothing may be changed."
    return Deny(reason=f"{why} Describe the change instead.", happened=why)


def _why_run(column: Column, context: PolicyContext) -> str:
    if column == "command contained":
        return "it is contained: it reaches nothing outside of the workspace"
    return f"{column} runs in {context.mode} mode"


_WHY_ASK: Final[Mapping[Column, str]] = {
    "edit protected": "it would change what steers the agent or runs code; that is always asked",
    "read protected": "it would read a file of secrets; that is always asked",
    "outside the roots": "it leads outside of the workspace",
    "command that loses data of git": (
        "it may lose commits, or files that git ignores, for good, or change another repository"
    ),
    "command of git that starts programs": (
        "git would start hooks or programs that the repository names, with its data open to them"
    ),
}


def _why_ask(subject: Subject, column: Column, context: PolicyContext) -> str:
    if column in {"network", "unix sockets"}:
        always = "; that is always asked" if column == "unix sockets" else ""
        return f"it wants {_wanted(subject)}{always}"
    if isinstance(subject, ToolAccess) and subject.host is not None:
        return f"it sends its arguments to {subject.host}, and no rule allows that host"
    why = _WHY_ASK.get(column, "no rule allows it")
    if column == "command not contained":
        held = "not" if context.containment == "none" else "only partly"
        why = f"commands are {held} contained here, and no rule allows this one"
    return f"{why}{_and_wants(subject)}"


def _and_wants(subject: Subject) -> str:
    wanted = _wanted(subject)
    return f"; it wants {wanted}" if wanted else ""


def _wanted(subject: Subject) -> str:
    """Name what a yes lets in; empty: nothing beyond containment."""
    needs = sorted(subject.needs) if isinstance(subject, CommandAccess) else ()
    return ", and ".join(LETS_IN[need] for need in needs)


def offers(
    about: ParsedSubject, context: PolicyContext, *, lasting: Literal["by rules", "never"]
) -> tuple[Option, ...]:
    """Return the options of a question.

    Args:
        about: Subject of the question.
        context: Situation in which the call is judged.
        lasting: Whether rules may allow such a subject the next time.
    """
    options = [Option(id="allowOnce", kind="allowOnce", label="Allow once")]
    allow = _proven(about, context) if lasting == "by rules" else None
    if allow is not None:
        for kind, scope, duration in SCOPES:
            label = _label("Allow", allow, duration)
            rule = replace(allow, scope=scope)
            options.append(Option(id=kind, kind=kind, label=label, rule=rule))
    options.append(Option(id=DEFAULT, kind="rejectOnce", label="Reject"))
    deny = denying_rule(about)
    if deny is not None:
        label = _label("Always reject", deny, "in this project")
        options.append(Option(id="rejectAlways", kind="rejectAlways", label=label, rule=deny))
    return tuple(options)


def _proven(about: ParsedSubject, context: PolicyContext) -> Rule | None:
    """Make the rule that would have answered, and try whether it does."""
    rule = allowing_rule(about, context)
    if rule is None:
        return None
    after = replace(context, rules=context.rules.with_rule(rule))
    return rule if allowing(about, after) is not None else None


def _label(verb: str, rule: Rule, where: str) -> str:
    """Return the label of an option; a long one is cut in its middle, so that verb and extent are always shown."""
    thing = UNSEEN.sub("?", _thing(rule))
    room = LABEL_CHARS - len(f"{verb}  {where}")
    if len(thing) > room:
        thing = thing[: room - 1] + SHORTENED
    return f"{verb} {thing} {where}"


def _thing(rule: Rule) -> str:
    if rule.argv_prefix:
        network = " with network" if rule.host else ""
        return f"'{' '.join(rule.argv_prefix)} ...'{network}"
    if rule.tool == "bash":
        return "network"
    if rule.path is not None:
        return f"to {rule.tool} {rule.path}"
    return " ".join(word for word in (rule.tool, rule.mcp, rule.host) if word)
