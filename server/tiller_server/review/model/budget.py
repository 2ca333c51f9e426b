"""Resources that a review has used over all its runs, and the rest of its budgets: pure."""

import msgspec
from msgspec import Struct

from agent_core.events import Budgets
from agent_core.messages import Usage


class ReviewBudgetTracker(Struct, kw_only=True):
    """A sum that grows run by run."""

    budgets: Budgets
    usage: list[Usage] = msgspec.field(default_factory=list[Usage])
    turns: int = 0
    started_s: float
    """On a clock that only goes forward."""

    @property
    def tokens(self) -> int:
        """All tokens so far."""
        return sum(one.total for one in self.usage)

    @property
    def cost_usd(self) -> float | None:
        """Cost so far in US dollars; None when it is unknown."""
        if any(one.total and one.cost is None for one in self.usage):
            return None
        return sum(0.0 if one.cost is None else one.cost.total for one in self.usage)

    def add(self, usage: Usage, *, turns: int) -> None:
        """Add a run."""
        self.usage.append(usage)
        self.turns += turns

    def left(self, now_s: float) -> Budgets:
        """Return what the next run may use up."""
        most = self.budgets
        return Budgets(
            usd=None if most.usd is None else max(0.0, most.usd - (self.cost_usd or 0.0)),
            tokens=None if most.tokens is None else max(0, most.tokens - self.tokens),
            turns=None if most.turns is None else max(0, most.turns - self.turns),
            minutes=None
            if most.minutes is None
            else max(0.0, most.minutes - (now_s - self.started_s) / 60),
        )

    def used_up(self, now_s: float) -> str | None:
        """Name the budget of which nothing is left; None: there is something of each."""
        left = self.left(now_s)
        named = (
            ("usd", left.usd),
            ("tokens", left.tokens),
            ("turns", left.turns),
            ("minutes", left.minutes),
        )
        return next((name for name, rest in named if rest is not None and rest <= 0), None)
