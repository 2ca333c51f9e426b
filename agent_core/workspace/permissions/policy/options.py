"""Makes the answers that a person can choose from; a lasting one is offered only when it would answer next time."""

import re
from typing import Final, Literal

from msgspec.structs import replace

from agent_core.workspace.permissions.policy.outcomes import Option, PolicyOptionKind
from agent_core.workspace.permissions.policy.rules.matching import ParsedSubject, allowing
from agent_core.workspace.permissions.policy.rules.proposals import allowing_rule, denying_rule
from agent_core.workspace.permissions.policy.rules.rule import PolicyRuleScope, Rule
from agent_core.workspace.permissions.policy.subjects import PolicyContext

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
