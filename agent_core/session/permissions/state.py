"""State that decides on tool calls: mode, trust, containment, and the standing rules of the user."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from anyio import Lock
from msgspec import Struct
from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import PolicyMode, SandboxLevel
from agent_core.workspace.permissions.policy import PolicyContext, PolicyRuleScope, Rule, RuleSet

Fallback = Literal["ask", "rules", "deny"]
LASTING: frozenset[PolicyRuleScope] = frozenset({"project", "user"})
"""Scopes that outlive the session: their rules are kept elsewhere and read again."""


class LoadedRules(Value, frozen=True, kw_only=True):
    """The rules that were found, and what could not be used, a sentence each."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()


class RuleStore(Protocol):
    """Where standing answers outlive a session."""

    async def load(self) -> LoadedRules:
        """Return the rules in force for this workspace. Never raises: rules that cannot be read are problems."""
        ...

    async def save(self, rule: Rule) -> None:
        """Keep a rule of the scopes `project` and `user`.

        Raises:
            StorageError: It could not be written.
        """
        ...

    async def remove(self, rule_id: str) -> None:
        """Forget a rule wherever it is kept; an unknown id changes nothing.

        Raises:
            StorageError: It could not be written.
        """
        ...


class NullRuleStore:
    """Keeps nothing beyond the session."""

    async def load(self) -> LoadedRules:
        """Return nothing."""
        return LoadedRules()

    async def save(self, rule: Rule) -> None:  # pyright: ignore[reportUnusedParameter] - the port's
        """Leave the rule to the session alone."""

    async def remove(self, rule_id: str) -> None:  # pyright: ignore[reportUnusedParameter] - the port's
        """Forget what was not kept."""


class PermissionState(Struct, kw_only=True):
    """Present state; each check reads it again, so a change counts from the next one."""

    mode: PolicyMode = "ask"
    fallback: Fallback = "ask"
    """Handling of a decision that needs the user: `ask` waits for the user; `rules` and `deny` refuse it at once."""
    timeout_s: float = 300.0
    """How long a person is waited for."""
    is_trusted: Callable[[], bool] = lambda: True
    """Whether the workspace may configure and be changed; asked at each check."""
    containment: Callable[[], SandboxLevel] = lambda: "none"
    """How far commands are held in; asked at each check."""
    rules: RuleSet = msgspec.field(default_factory=RuleSet)
    keeper: RuleStore = msgspec.field(default_factory=NullRuleStore)
    _keeping: Lock = msgspec.field(default_factory=Lock)
    """Held while what is kept is read or written."""

    def snapshot(self, roots: tuple[Path, ...]) -> PolicyContext:
        """Return what holds at this moment."""
        return PolicyContext(
            mode=self.mode,
            trusted=self.is_trusted(),
            containment=self.containment(),
            rules=self.rules,
            roots=roots,
        )

    async def refresh(self) -> tuple[str, ...]:
        """Read the lasting rules again: another session, or the user in an editor, may have changed them.

        Returns:
            The problems of rules that could not be used, one sentence each.
        """
        async with self._keeping:
            kept = await self.keeper.load()
            own = (rule for rule in self.rules.rules if rule.scope not in LASTING)
            self.rules = RuleSet(rules=(*kept.rules, *own))
        return kept.problems

    async def remember(self, rule: Rule) -> None:
        """Add a rule with immediate effect, then store it where its scope says.

        Raises:
            StorageError: The rule is in force in this session, but could not be stored.
        """
        self.rules = self.rules.with_rule(rule)
        if rule.scope not in LASTING:
            return
        async with self._keeping:
            try:
                await self.keeper.save(rule)
            except BaseException:
                # The next reading of what is kept would lose it.
                self.rules = self.rules.with_rule(scoped(rule, "session"))
                raise
            # A reading that was under way when it came in force has not found it.
            self.rules = self.rules.with_rule(rule)

    async def forget(self, rule_id: str) -> None:
        """Remove a rule, also from where it is stored.

        Raises:
            StorageError: The rule is no longer in force in this session, but is still stored.
        """
        matching = [rule for rule in self.rules.rules if rule.id == rule_id]
        self.rules = self.rules.without(rule_id)
        if not any(rule.scope in LASTING for rule in matching):
            return
        async with self._keeping:
            await self.keeper.remove(rule_id)
            # A reading that was under way has found it again.
            self.rules = self.rules.without(rule_id)

    def end_run(self) -> None:
        """Forget what was allowed for the run."""
        self.rules = self.rules.without_scope("run")


def scoped(rule: Rule, scope: PolicyRuleScope) -> Rule:
    """Return a rule another extent; its id stays, for it says the same."""
    return replace(rule, scope=scope)
