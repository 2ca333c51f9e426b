"""A standing answer as a value, and the rules in force as one immutable set."""

import hashlib
from collections.abc import Iterator
from typing import Final, Literal

from msgspec.structs import replace

from agent_core.kernel.json import encode
from agent_core.kernel.values import Value

RuleVerdict = Literal["allow", "ask", "deny"]
PolicyRuleScope = Literal["run", "session", "project", "user"]
EVERY_TOOL: Final = "*"
EVERY_HOST: Final = "*"
ID_DIGITS: Final = 12


class Rule(Value, frozen=True, kw_only=True):
    """A standing answer: everything that it names must be so for it to hold."""

    id: str
    tool: str
    """`bash`, `read`, `edit`, `delete`, the name of another tool, or `*` for all (not with `allow`)."""
    verdict: RuleVerdict
    scope: PolicyRuleScope
    argv_prefix: tuple[str, ...] = ()
    """How a command begins; empty when the rule is not about commands."""
    path: str | None = None
    """A glob; relative to every root unless it is absolute."""
    host: str | None = None
    """A host, `*.` and a domain, or `*` for any. Of a command only `*` can be known."""
    mcp: str | None = None
    """`server/tool` of another server, or `server/*`."""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    program: str | None = None
    """The absolute path of the program that was meant when a command was allowed."""


def named(rule: Rule) -> Rule:
    """Return a rule with the id that follows from what it says: the same answer twice is one rule."""
    content = encode(
        {
            "tool": rule.tool,
            "verdict": rule.verdict,
            "argvPrefix": rule.argv_prefix,
            "path": rule.path,
            "host": rule.host,
            "mcp": rule.mcp,
            "program": rule.program,
        }
    )
    return replace(rule, id=f"{rule.verdict}-{hashlib.sha256(content).hexdigest()[:ID_DIGITS]}")


class RuleSet(Value, frozen=True, kw_only=True):
    """The rules in force. A change makes another set; the owner of the set decides from when it counts."""

    rules: tuple[Rule, ...] = ()

    def with_rule(self, rule: Rule) -> "RuleSet":
        """Add a rule; an older one with the same id and scope goes."""
        others = (one for one in self.rules if (one.id, one.scope) != (rule.id, rule.scope))
        return RuleSet(rules=(*others, rule))

    def without(self, rule_id: str) -> "RuleSet":
        """Return the set without the rules that have an id; an unknown id changes nothing."""
        return RuleSet(rules=tuple(one for one in self.rules if one.id != rule_id))

    def without_scope(self, scope: PolicyRuleScope) -> "RuleSet":
        """Return the set without the rules of a scope, as at the end of a run."""
        return RuleSet(rules=tuple(one for one in self.rules if one.scope != scope))

    def of(self, verdict: RuleVerdict) -> Iterator[Rule]:
        """Return the rules with a verdict, oldest first."""
        return (one for one in self.rules if one.verdict == verdict)
