"""What follows each outcome of a run's turns, in every state: the whole table."""

from itertools import product

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.messages import StopReason, Usage
from agent_core.session.runs.retry_policy import (
    Aborted,
    AttemptFailed,
    AttemptOutcome,
    CompactAndContinue,
    CompactAndStop,
    Finished,
    NextAction,
    RetryAfter,
    RetryOptions,
    RetryWithoutThinking,
    StopRun,
    next_action,
)
from tests.support.session.entries import assistant

SETTINGS = RetryOptions(max_retries=3)
MAX_TOKENS = 1_000


def answered(
    stop_reason: StopReason = "stop",
    *,
    output: int = 10,
    full: bool = False,
    overflowed: bool = False,
) -> Finished:
    usage = Usage(input=500, output=output)
    return Finished(
        message=assistant("words", stop_reason=stop_reason, usage=usage),
        over_threshold=full,
        overflowed=overflowed,
        max_tokens=MAX_TOKENS,
    )


def failed(
    reason: ProviderErrorKind,
    text: str = "it failed",
    *,
    status: int | None = None,
    other_model: bool = False,
) -> AttemptFailed:
    error = ProviderError(text, reason=reason, provider="p", status=status)
    return AttemptFailed(error=error, other_model=other_model)


OUTCOMES: dict[str, AttemptOutcome] = {
    "finished": answered(),
    "finished, full": answered(full=True),
    "silent overflow": answered(overflowed=True, full=True),
    "length, cut short": answered("length", output=MAX_TOKENS - 1),
    "length, cut short, full": answered("length", output=MAX_TOKENS - 1, full=True),
    "length, at the limit": answered("length", output=MAX_TOKENS),
    "length, at the limit, full": answered("length", output=MAX_TOKENS, full=True),
    "length, no output, window full": answered("length", output=0, overflowed=True),
    "overflow": failed("context_overflow", status=400),
    "overflow of a model that was left": failed("context_overflow", other_model=True),
    "rate limit": failed("rate_limit", status=429),
    "request larger than a minute's allowance": failed("rate_limit", status=413),
    "overloaded 529": failed("server", status=529),
    "overloaded 503": failed("server", status=503),
    "network": failed("network"),
    "silence": failed("timeout"),
    "truncated stream": failed("protocol"),
    "thoughts refused": failed("invalid_request", "`thinking` blocks cannot be modified"),
    "other bad request": failed("invalid_request"),
    "unknown model": failed("not_found", status=404),
    "auth": failed("auth", status=401),
    "quota": failed("quota", status=402),
    "refused": failed("refused"),
    "aborted": Aborted(),
}
COLUMNS = tuple(product((True, False), (False, True), (0, 3)))
"""Compaction may run unasked; an overflow was answered already; retries made (of three)."""
TABLE = """
                                           may compact                     may not
                                           first time      compacted       first time  compacted
                                           0       3       0       3       0     3     0     3
finished                                 | stop    stop    stop    stop    stop  stop  stop  stop
finished, full                           | room    room    room    room    stop  stop  stop  stop
silent overflow                          | roomO   roomO   roomO   roomO   stop  stop  stop  stop
length, cut short                        | againL  againL  stop    stop    stop  stop  stop  stop
length, cut short, full                  | againL  againL  room    room    stop  stop  stop  stop
length, at the limit                     | stop    stop    stop    stop    stop  stop  stop  stop
length, at the limit, full               | room    room    room    room    stop  stop  stop  stop
length, no output, window full           | againO  againO  roomO   roomO   stop  stop  stop  stop
overflow                                 | againO  againO  fail    fail    fail  fail  fail  fail
overflow of a model that was left        | fail    fail    fail    fail    fail  fail  fail  fail
rate limit                               | wait    fail    wait    fail    wait  fail  wait  fail
request larger than a minute's allowance | fail    fail    fail    fail    fail  fail  fail  fail
overloaded 529                           | wait    fail    wait    fail    wait  fail  wait  fail
overloaded 503                           | wait    fail    wait    fail    wait  fail  wait  fail
network                                  | wait    fail    wait    fail    wait  fail  wait  fail
silence                                  | wait    fail    wait    fail    wait  fail  wait  fail
truncated stream                         | wait    fail    wait    fail    wait  fail  wait  fail
thoughts refused                         | plain   plain   plain   plain   plain plain plain plain
other bad request                        | fail    fail    fail    fail    fail  fail  fail  fail
unknown model                            | fail    fail    fail    fail    fail  fail  fail  fail
auth                                     | fail    fail    fail    fail    fail  fail  fail  fail
quota                                    | fail    fail    fail    fail    fail  fail  fail  fail
refused                                  | fail    fail    fail    fail    fail  fail  fail  fail
aborted                                  | stop    stop    stop    stop    stop  stop  stop  stop
"""
ROWS = {
    name.strip(): steps.split()
    for name, _, steps in (line.partition("|") for line in TABLE.splitlines())
    if steps
}


def test_the_table_has_a_row_for_every_outcome_and_a_step_for_every_state() -> None:
    assert list(ROWS) == list(OUTCOMES)
    assert {len(steps) for steps in ROWS.values()} == {len(COLUMNS)}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_follows(name: str) -> None:
    outcome = OUTCOMES[name]
    steps = [
        next_action(
            outcome, tries=tries, compacted=compacted, auto_compact=unasked, settings=SETTINGS
        )
        for unasked, compacted, tries in COLUMNS
    ]
    assert [_code(step) for step in steps] == ROWS[name]
    for step in steps:
        if (
            isinstance(step, StopRun | RetryAfter | RetryWithoutThinking | CompactAndContinue)
            and step.error
        ):
            assert isinstance(outcome, AttemptFailed)
            assert step.error is outcome.error


@given(
    st.lists(st.sampled_from(list(OUTCOMES.values())), min_size=1, max_size=3).map(
        lambda some: some * 10
    ),
    st.booleans(),
    st.integers(min_value=0, max_value=5),
)
def test_without_progress_a_run_ends_after_its_retries_one_compaction_and_one_plain_try(
    outcomes: list[AttemptOutcome], unasked: bool, retries: int
) -> None:
    settings = RetryOptions(max_retries=retries)
    tries, compacted, plain = 0, False, False
    for steps, outcome in enumerate(outcomes, start=1):
        step = next_action(
            outcome,
            tries=tries,
            compacted=compacted,
            plain=plain,
            auto_compact=unasked,
            settings=settings,
        )
        match step:
            case StopRun() | CompactAndStop():
                assert steps <= retries + 3
                return
            case RetryAfter(attempt=attempt):
                tries += 1
                assert attempt == tries
            case CompactAndContinue():
                assert not compacted
                compacted = True
            case RetryWithoutThinking():
                assert not plain
                plain = True
    raise AssertionError("the run never ended")


def _code(step: NextAction) -> str:
    match step:
        case StopRun(error=None):
            return "stop"
        case StopRun():
            return "fail"
        case RetryAfter():
            return "wait"
        case RetryWithoutThinking():
            return "plain"
        case CompactAndStop(reason=reason):
            return {"threshold": "room", "overflow": "roomO"}[reason]
        case CompactAndContinue(reason=reason):
            return {"length": "againL", "overflow": "againO"}[reason]
