"""Budgets of a run, and the check whether they are used up: pure."""

from typing import TypeVar

import msgspec
from msgspec import Struct

from agent_core.events import Budgets
from agent_core.kernel.errors import BudgetRefused
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.providers import ModelInfo

GO_ON = "say «go on» for another run, or raise the budget"


class BudgetPolicy(Struct, kw_only=True):
    """Budgets of each run; a client can only make them stricter."""

    ceiling: Budgets = msgspec.field(default_factory=Budgets)
    """Budgets of the settings; the upper limit."""
    requested: Budgets = msgspec.field(default_factory=Budgets)
    """Budgets that a client has set since."""

    @property
    def budgets(self) -> Budgets:
        """Budgets in force: the stricter of the two for each resource."""
        return tightened(self.ceiling, self.requested)

    @property
    def effective(self) -> Budgets | None:
        """The same for front ends; None: there is no limit."""
        budgets = self.budgets
        return None if budgets == Budgets() else budgets


class RunUsage(Value, frozen=True, kw_only=True):
    """Resources that a run has used so far."""

    tokens: Usage
    answers: int
    seconds: float
    calls: int = 0
    """Tool calls that have a result."""

    @property
    def duration_ms(self) -> int:
        """How long the run has gone on, in milliseconds."""
        return round(self.seconds * 1000)


def exhausted_budget(budgets: Budgets, used: RunUsage) -> str | None:
    """Return which budget is used up, as a sentence; None: the run may go on.

    Money that nobody can count is money beyond the budget.
    """
    if budgets.usd is not None and used.tokens.total and used.tokens.cost is None:
        return (
            f"the run ended because what it has cost is not known, and its budget is {budgets.usd:g} US dollars; "
            "choose a model with a price, or take the budget away"
        )
    usd = 0.0 if used.tokens.cost is None else used.tokens.cost.total
    counted: tuple[tuple[str, str, float, float | None], ...] = (
        ("usd", "US dollars", usd, budgets.usd),
        ("tokens", "tokens", used.tokens.total, budgets.tokens),
        ("turns", "turns", used.answers, budgets.turns),
        ("minutes", "minutes", used.seconds / 60, budgets.minutes),
    )
    for name, unit, so_far, most in counted:
        if most is not None and so_far >= most:
            return f"the run ended at its budget: {_figure(so_far)} of {_figure(most)} {unit} (budgets.{name}); {GO_ON}"
    return None


def unpriced(budgets: Budgets, facts: ModelInfo) -> str | None:
    """Return why a model cannot be asked under a budget of money; None: it can."""
    if budgets.usd is None or facts.prices is not None:
        return None
    return (
        f"the price of {facts.ref} is not known, so a budget of {budgets.usd:g} US dollars cannot be kept; give its "
        "price in models.json, choose another model, or limit tokens, turns or minutes instead"
    )


def tightened(most: Budgets, wanted: Budgets) -> Budgets:
    """Return the budgets of which each is the stricter of two."""
    return Budgets(
        usd=_least(most.usd, wanted.usd),
        tokens=_least(most.tokens, wanted.tokens),
        turns=_least(most.turns, wanted.turns),
        minutes=_least(most.minutes, wanted.minutes),
    )


def check_tighter(most: Budgets, wanted: Budgets) -> None:
    """Check that requested budgets are no wider than the settings allow.

    Raises:
        BudgetRefused: At least one is wider.
    """
    for name in loosened(most, wanted):
        message = (
            f"budgets.{name} is more than the settings give; a client may only tighten budgets, so raise it with "
            '"budgets": {…} in the user\'s settings.json'
        )
        raise BudgetRefused(message)


def loosened(most: Budgets, wanted: Budgets) -> tuple[str, ...]:
    """Name the budgets that would be wider than they may be."""
    pairs: tuple[tuple[str, float | None, float | None], ...] = (
        ("usd", most.usd, wanted.usd),
        ("tokens", most.tokens, wanted.tokens),
        ("turns", most.turns, wanted.turns),
        ("minutes", most.minutes, wanted.minutes),
    )
    return tuple(
        name
        for name, allowed, asked in pairs
        if allowed is not None and asked is not None and asked > allowed
    )


Figure = TypeVar("Figure", int, float)


def _least(one: Figure | None, other: Figure | None) -> Figure | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _figure(amount: float) -> str:
    return f"{amount:,.4f}".rstrip("0").rstrip(".") if amount % 1 else f"{amount:,.0f}"
