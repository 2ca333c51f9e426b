"""Makes the rule about commands that begin with some words."""

import shlex

from agent_core.kernel.errors import UsageError
from agent_core.workspace.permissions.policy.commands.prefixes import COMMAND_TOOL
from agent_core.workspace.permissions.policy.rules.matching import (
    RulesFileContext,
    pinned,
    why_unsound,
)
from agent_core.workspace.permissions.policy.rules.rule import (
    PolicyRuleScope,
    Rule,
    RuleVerdict,
    named,
)


def command_rule(
    argv_prefix: tuple[str, ...],
    *,
    verdict: RuleVerdict,
    scope: PolicyRuleScope,
    ground: RulesFileContext,
) -> Rule:
    """Return a rule about commands; one that allows is pinned to the program that the first word names now.

    Raises:
        UsageError: No such rule can hold, for example because the program is not on the PATH.
    """
    rule = Rule(id="", tool=COMMAND_TOOL, verdict=verdict, scope=scope, argv_prefix=argv_prefix)
    if (why := why_unsound(rule, ground)) is not None:
        message = f"no rule can {verdict} {shlex.join(argv_prefix)!r}: {why}"
        raise UsageError(message)
    return named(pinned(rule, ground) if verdict == "allow" else rule)
