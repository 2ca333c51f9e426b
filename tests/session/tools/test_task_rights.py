"""The rights of a task are never more than those of the session that gave it."""

import random
from collections.abc import Sequence
from pathlib import Path

from agent_core.session.permissions.broker import PermissionState
from agent_core.workspace.permissions.call_permission import PolicyMode, SandboxLevel
from agent_core.workspace.permissions.policy import (
    Allow,
    Ask,
    CommandAccess,
    Deny,
    FileAccess,
    PolicyRuleScope,
    Rule,
    RuleSet,
    Subject,
    ToolAccess,
)
from agent_core.workspace.permissions.policy.decision import decide
from agent_core.workspace.permissions.policy.rules.rule import RuleVerdict

ROOT = Path("/project")
PAIRS = 10_000
MODES: tuple[PolicyMode, ...] = ("plan", "ask", "auto", "yolo")
LEVELS: tuple[SandboxLevel, ...] = ("none", "partial", "full")
VERDICTS: tuple[RuleVerdict, ...] = ("allow", "ask", "deny")
COMMANDS = (
    "ls",
    "git status",
    "git push",
    "rm -rf build",
    "make test",
    "curl x | sh",
    "echo hi > a",
)
PERMISSIVE = {Deny: 0, Ask: 1, Allow: 2}


def test_a_task_is_allowed_nothing_that_its_giver_is_not() -> None:
    chance = random.Random(11)  # noqa: S311 - the same pairs each time
    allowed = 0
    for _ in range(PAIRS):
        outer, inner = _state(chance), _state(chance)
        inner.outer = outer
        inner.ceiling = chance.choice(MODES)
        # Rules of its own are only those that a person allowed for its run.
        inner.rules = RuleSet()
        subject = _subject(chance)
        own = decide(subject, inner.snapshot((ROOT,)))
        given = decide(subject, outer.snapshot((ROOT,)))
        assert PERMISSIVE[type(own)] <= PERMISSIVE[type(given)], (subject, inner, outer)
        allowed += isinstance(own, Allow)
    assert allowed > PAIRS // 20


async def test_an_answer_for_the_session_counts_for_its_giver_and_one_for_the_run_does_not() -> (
    None
):
    outer, inner = PermissionState(), PermissionState()
    inner.outer = outer
    await inner.remember(_rule("a", "allow", scope="session"))
    await inner.remember(_rule("b", "allow", scope="run"))
    assert [one.id for one in outer.rules.rules] == ["a"]
    assert [one.id for one in inner.snapshot((ROOT,)).rules.rules] == ["a", "b"]


def _state(chance: random.Random) -> PermissionState:
    trusted, level = chance.random() < 0.8, chance.choice(LEVELS)
    rules = [
        _rule(str(n), chance.choice(VERDICTS), prefix=chance.choice(COMMANDS).split()[:1])
        for n in range(chance.randrange(3))
    ]
    return PermissionState(
        mode=chance.choice(MODES),
        is_trusted=lambda: trusted,
        containment=lambda: level,
        rules=RuleSet(rules=tuple(rules)),
    )


def _rule(
    id_: str,
    verdict: RuleVerdict,
    *,
    scope: PolicyRuleScope = "session",
    prefix: Sequence[str] = ("ls",),
) -> Rule:
    return Rule(id=id_, verdict=verdict, scope=scope, tool="bash", argv_prefix=tuple(prefix))


def _subject(chance: random.Random) -> Subject:
    match chance.randrange(3):
        case 0:
            return CommandAccess(
                command=chance.choice(COMMANDS),
                cwd=ROOT,
                needs=frozenset(),
                env_path="/usr/bin:/bin",
                git_starts_programs=chance.random() < 0.5,
            )
        case 1:
            return FileAccess(
                path=ROOT / "a.py",
                operation=chance.choice(("read", "edit")),
                inside=chance.random() < 0.9,
                protected=chance.random() < 0.3,
            )
        case _:
            return ToolAccess(tool="mine", kind=chance.choice(("read", "other")))
