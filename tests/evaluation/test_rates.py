"""Rates are unbiased, leave out what does not count, and never take an unknown cost for zero."""

from itertools import combinations

import pytest

from tiller_server.evaluation.reports.statistics import pass_at, pass_hat
from tiller_server.evaluation.reports.text_report import cost_text
from tiller_server.evaluation.result import Attempt, Verdict, cost_of, rates_of


@pytest.mark.parametrize("attempts", range(1, 7))
def test_both_estimators_are_the_share_of_all_choices(attempts: int) -> None:
    for passed in range(attempts + 1):
        outcomes = [number < passed for number in range(attempts)]
        for k in range(1, attempts + 1):
            choices = list(combinations(outcomes, k))
            some = sum(map(any, choices)) / len(choices)
            every = sum(map(all, choices)) / len(choices)
            assert pass_at(k, attempts=attempts, passed=passed) == pytest.approx(some)
            assert pass_hat(k, attempts=attempts, passed=passed) == pytest.approx(every)


def test_with_fewer_attempts_than_k_there_is_no_estimate() -> None:
    assert pass_at(3, attempts=2, passed=2) is None
    assert pass_hat(3, attempts=2, passed=2) is None


def attempt(task: str, verdict: Verdict, *, cost: float | None = 0.0) -> Attempt:
    return Attempt(task=task, kind="repair", number=1, verdict=verdict, cost_usd=cost)


def test_each_task_counts_alike_and_invalid_attempts_do_not() -> None:
    rates = rates_of(
        [
            *(attempt("a", one) for one in ("passed", "failed", "passed")),
            *(attempt("b", one) for one in ("passed", "invalid", "invalid")),
        ],
        k=2,
    )
    assert (rates.tasks, rates.attempts, rates.passed, rates.invalid) == (2, 4, 3, 2)
    assert rates.pass_at_1 == pytest.approx((2 / 3 + 1) / 2)
    assert rates.pass_at_k == pytest.approx(1.0)
    assert rates.pass_hat_k == pytest.approx(1 / 3)


def test_an_unknown_cost_is_not_zero() -> None:
    priced = [attempt("a", "passed", cost=0.25), attempt("b", "passed", cost=0.5)]
    unpriced = attempt("c", "passed", cost=None)
    assert cost_of([*priced, unpriced]) == (0.75, False)
    assert cost_text(priced) == "$0.7500"
    assert cost_text([*priced, unpriced]) == "≥ $0.7500"
    assert cost_text([unpriced]) == "unknown"
