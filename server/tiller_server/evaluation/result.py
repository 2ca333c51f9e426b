"""Results of an evaluation: attempts, and what they add up to."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from agent_core.kernel.values import Value
from tiller_server.evaluation.reports.statistics import pass_at, pass_hat
from tiller_server.evaluation.review_score import ReviewScore
from tiller_server.evaluation.tasks.task import EvaluationKind

Verdict: TypeAlias = Literal["passed", "failed", "invalid"]
"""`invalid`: says nothing about the agent, and is not counted: an outage, the clock, flaky tests."""


class Attempt(Value, frozen=True, kw_only=True):
    """One run of an agent on a task, judged."""

    task: str
    kind: EvaluationKind
    number: int
    """From 1."""
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Why it did not pass, a sentence each."""
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    """None: unknown, which is not 0."""
    duration_s: float = 0.0
    session: str | None = None
    """Session file, where it was kept."""
    patch: str | None = None
    """File with the changes, where it was kept."""
    review: ReviewScore | None = None


class SkippedTask(Value, frozen=True, kw_only=True):
    """A task that was not tried."""

    task: str
    kind: EvaluationKind
    reason: str


class Rates(Value, frozen=True, kw_only=True):
    """Rates over tasks: means of the estimates of each task."""

    tasks: int
    attempts: int
    """Attempts that count."""
    passed: int
    invalid: int
    pass_at_1: float | None
    pass_at_k: float | None
    pass_hat_k: float | None
    """The last two over the tasks with k attempts that count."""


class Evaluation(Value, frozen=True, kw_only=True):
    """An evaluation that has ended."""

    version: str
    """Of Tiller."""
    model: str
    suite: str
    started_at: str
    """ISO 8601, UTC."""
    k: int
    containment: str
    attempts: tuple[Attempt, ...]
    skipped: tuple[SkippedTask, ...] = ()
    duration_s: float = 0.0

    @property
    def kinds(self) -> tuple[EvaluationKind, ...]:
        """The kinds of its tasks, in order of appearance."""
        return tuple(dict.fromkeys(attempt.kind for attempt in self.attempts))

    def rates(self, kind: EvaluationKind | None = None) -> Rates:
        """Return the rates of a kind, or of all."""
        chosen = [one for one in self.attempts if kind in {None, one.kind}]
        return rates_of(chosen, k=self.k)

    def of_task(self, task: str) -> tuple[Attempt, ...]:
        """Return the attempts of a task."""
        return tuple(one for one in self.attempts if one.task == task)

    def review(self) -> ReviewScore | None:
        """Return the sum of all scores of reviews; None without reviews."""
        scores = [one.review for one in self.attempts if one.review is not None]
        return sum(scores, ReviewScore()) if scores else None


def rates_of(attempts: Sequence[Attempt], *, k: int) -> Rates:
    """Return the rates of attempts. Pure."""
    names = dict.fromkeys(one.task for one in attempts)
    counts = [
        (
            sum(one.verdict != "invalid" for one in attempts if one.task == name),
            sum(one.verdict == "passed" for one in attempts if one.task == name),
        )
        for name in names
    ]
    return Rates(
        tasks=len(names),
        attempts=sum(count for count, _ in counts),
        passed=sum(passed for _, passed in counts),
        invalid=sum(one.verdict == "invalid" for one in attempts),
        pass_at_1=_mean([pass_at(1, attempts=n, passed=c) for n, c in counts]),
        pass_at_k=_mean([pass_at(k, attempts=n, passed=c) for n, c in counts]),
        pass_hat_k=_mean([pass_hat(k, attempts=n, passed=c) for n, c in counts]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def cost_of(attempts: Sequence[Attempt]) -> tuple[float, bool]:
    """Return the cost of attempts in US dollars, and whether it is all of it: an unknown cost counts as nothing. Pure."""
    there = [one.cost_usd for one in attempts if one.cost_usd is not None]
    return sum(there), len(there) == len(attempts)
