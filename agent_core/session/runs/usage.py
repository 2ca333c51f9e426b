"""Use of tokens and money by runs, and their budgets."""

from collections.abc import Callable
from functools import reduce
from typing import TypeVar

import anyio
import msgspec
from msgspec import Struct

from agent_core.events import Budgets, UsageReport
from agent_core.kernel import Clock
from agent_core.kernel.errors import BudgetExceeded, BudgetRefused, PriceUnknown
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Usage
from agent_core.providers import ModelInfo
from agent_core.session.model_selection import ModelSelection

OPEN_CALLS = (
    "the run ended because other model calls of it that go on may use the rest of its budget"
)
GO_ON = "say «go on» for another run, or raise the budget"


class BudgetPolicy(Struct, kw_only=True):
    """Budgets of each run; a client can only make them stricter."""

    ceiling: Budgets = msgspec.field(default_factory=Budgets)
    """Budgets of the settings; the upper limit."""
    requested: Budgets = msgspec.field(default_factory=Budgets)
    """Budgets that a client has set since."""
    day_usd: float | None = None
    """US dollars of one day, in all folders; None: no limit."""
    folder_day_usd: float | None = None
    """US dollars of one day in the session's folder."""

    def adopt(self, settings: "BudgetPolicy") -> None:
        """Set the limits to those of changed settings; those that a client has set stay."""
        self.ceiling = settings.ceiling
        self.day_usd, self.folder_day_usd = settings.day_usd, settings.folder_day_usd

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


def _ignore(usage: Usage) -> None:
    _ = usage


MINUTE_S = 60
LAST_TURN_S = 5.0
"""How long the turn going on may last when the run's minutes are over: most are done by then, and a hung one is not waited for."""
OUT_OF_TIME = "the run ended because its minutes were over (budgets.minutes); say «go on» for another run, or raise the budget"


class UsageTracker:
    """Adds up the usage of the current run and of the session."""

    def __init__(
        self,
        total: Usage,
        context_used: int | None,
        *,
        models: ModelSelection,
        clock: Clock,
    ) -> None:
        """Start from what the session file has.

        Args:
            total: Usage of the session so far.
            context_used: Tokens in the context; None: unknown.
            models: Source of the size of the context window.
            clock: Time.
        """
        self._models = models
        self._clock = clock
        self._total = total
        self._run = Usage()
        self._answers = 0
        self._calls = 0
        self._began_s = 0.0
        self._context_used = context_used
        self.on_spent: Callable[[Usage], None] = _ignore
        """Called with everything that is used; set where somebody else counts it too."""

    def begin_run(self) -> None:
        """Count a new run from zero."""
        self._run = Usage()
        self._answers = 0
        self._calls = 0
        self._began_s = self._clock.monotonic_s()

    def answered(self, message: AssistantMessage) -> None:
        """Count an answer of the model; its usage also sets the context size, unless it is zero."""
        self._answers += 1
        self.spent(message.usage)
        if message.usage.total:
            self._context_used = message.usage.total

    def returned(self) -> None:
        """Count the result of a tool call."""
        self._calls += 1

    def spent(self, usage: Usage) -> None:
        """Add usage outside the conversation, for example that of a summary."""
        self._total = self._total.plus(usage)
        self._run = self._run.plus(usage)
        self.on_spent(usage)

    def spent_beside_runs(self, usage: Usage) -> None:
        """Add usage that belongs to no run, also while one goes on."""
        self._total = self._total.plus(usage)

    def edited(self) -> None:
        """Reset the context size after an edit of the context: it is unknown until the next answer."""
        self._context_used = None

    def moved(self, context_used: int | None) -> None:
        """Set the context size after the conversation moved to another entry."""
        self._context_used = context_used

    def used(self) -> RunUsage:
        """Return the usage of the current run so far."""
        seconds = self._clock.monotonic_s() - self._began_s
        return RunUsage(tokens=self._run, answers=self._answers, calls=self._calls, seconds=seconds)

    def of_run(self) -> UsageReport:
        """Report the current or last run."""
        return self._report(self._run)

    def of_session(self) -> UsageReport:
        """Report everything."""
        return self._report(self._total)

    def _report(self, tokens: Usage) -> UsageReport:
        return UsageReport(
            tokens=tokens,
            context_used=self._context_used,
            context_size=self._models.context_window,
        )


class RunBudgets:
    """Checks the current run against the budgets in force."""

    def __init__(
        self,
        policy: BudgetPolicy,
        *,
        usage: UsageTracker,
        models: ModelSelection,
        max_turns: Callable[[], int | None] = lambda: None,
        outer: Callable[[], str | None] = lambda: None,
        tree: "RunBudgets | None" = None,
    ) -> None:
        """Create it.

        Args:
            policy: Budgets of each run.
            usage: Usage of the current run.
            models: The model in force, for its price.
            max_turns: Returns the answers of a run after which the model is asked for a last one; None: no limit.
            outer: Returns which budget of the session that gave this task is used up, as a sentence; None: none is.
            tree: Budgets of the session that gave this task; None: the session is no task.
        """
        self._policy = policy
        self._usage = usage
        self._models = models
        self._max_turns = max_turns
        self._outer = outer
        self._tree = tree
        self._open: dict[str, Usage] = {}
        self._closed = anyio.Event()

    @property
    def time_limit_s(self) -> float | None:
        """Time after which the last turn of a run is cut short; None: no limit."""
        minutes = self._policy.budgets.minutes
        return None if minutes is None else minutes * MINUTE_S + LAST_TURN_S

    def check(self) -> None:
        """Check that the run may send its next request to the model.

        Raises:
            BudgetExceeded: A budget is used up, or its use cannot be measured.
        """
        self.check_turns()
        why = self.exhausted() or unpriced(self._policy.budgets, self._models.required().facts)
        if why is not None:
            raise BudgetExceeded(why)

    def exhausted(self) -> str | None:
        """Return which budget of the run, its tasks included, is used up, as a sentence; None: none is."""
        return self._outer() or exhausted_budget(self._policy.budgets, self._usage.used())

    def reserve(self, call: str, reserved: Usage) -> str | None:
        """Reserve what a call may use, in this session and in the one that gave this task.

        Returns:
            Which budget is used up, with what other calls that go on may use; then nothing is reserved.
        """
        why = self.refusal()
        if why is None:
            self.hold(call, reserved)
        return why

    def release(self, call: str) -> None:
        """End the reservation of a call, whose usage is counted from now on; one that is not there is ignored."""
        if self._open.pop(call, None) is not None:
            self._closed.set()
            self._closed = anyio.Event()
        if self._tree is not None:
            self._tree.release(call)

    async def wait_for_release(self) -> bool:
        """Wait until a call of another session of the tree ends; False at once when that would change nothing."""
        top = self._tree or self
        # A session never waits for its own call: a hook asks a model while the answer that it looks at comes.
        if self._open or not top._open or self.exhausted():  # noqa: SLF001 - the same class
            return False
        await top._closed.wait()  # noqa: SLF001 - the same class
        return True

    def hold(self, call: str, reserved: Usage) -> None:
        """Count what a call may use as used until its release."""
        self._open[call] = reserved
        if self._tree is not None:
            self._tree.hold(call, reserved)

    def refusal(self) -> str | None:
        """Return which budget of money or tokens is used up, with what the calls that go on may use; None: none is."""
        budgets = self._policy.budgets
        limits = Budgets(usd=budgets.usd, tokens=budgets.tokens)
        used = self._usage.used()
        why = exhausted_budget(limits, used)
        if why is None and self._open:
            tokens = reduce(Usage.plus, self._open.values(), used.tokens)
            if exhausted_budget(limits, msgspec.structs.replace(used, tokens=tokens)) is not None:
                why = f"{OPEN_CALLS}; {GO_ON}"
        return why or (None if self._tree is None else self._tree.refusal())

    def exhausted_for_tasks(self) -> str | None:
        """Return the same without the minutes, which each run has of its own: a task may outlive the run that gave it."""
        budgets = msgspec.structs.replace(self._policy.budgets, minutes=None)
        return exhausted_budget(budgets, self._usage.used())

    @property
    def last_turn(self) -> int | None:
        """The limit of answers when the next one is the last of the run; None: it is not."""
        most = self._max_turns()
        return most if most is not None and self._usage.used().answers >= most else None

    def check_turns(self) -> None:
        """Check that the run has not given its last answer.

        Raises:
            BudgetExceeded: It has.
        """
        most = self._max_turns()
        if most is not None and self._usage.used().answers > most:
            message = (
                f"the run ended at its limit of {most} answers (maxTurns); say «go on» for another run, "
                "or raise maxTurns in the settings"
            )
            raise BudgetExceeded(message)

    def check_priced(self) -> None:
        """Check that a run may start.

        Raises:
            ModelUnknown: There is no usable model.
            PriceUnknown: There is a budget of money, and the model has no price.
        """
        if why := unpriced(self._policy.budgets, self._models.required().facts):
            raise PriceUnknown(why)

    def out_of_time(self) -> BudgetExceeded:
        """Return the error of a run whose time limit has passed."""
        return BudgetExceeded(
            exhausted_budget(self._policy.budgets, self._usage.used()) or OUT_OF_TIME
        )
