"""An evaluation as text and as JSON."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object
from tiller_server.evaluation.result import Attempt, Evaluation, Rates, cost_of

FORMAT: Final = "tiller-evaluation/1"
"""The first key of the JSON; the number grows when an old reader would misread it."""
HEADS: Final = ("task", "kind", "passed", "turns", "tokens", "cost", "time")
NONE: Final = "-"


def as_json(evaluation: Evaluation) -> str:
    """Return an evaluation as JSON, with the rates that follow from its attempts. Pure."""
    rates = {kind: _fields(evaluation.rates(kind)) for kind in evaluation.kinds}
    score = evaluation.review()
    review = None
    if score is not None:
        derived = {
            "recall": score.recall,
            "precision": score.precision,
            "noise_per_1000": score.noise_per_1000,
        }
        review = {**_fields(score), **derived}
    usd, is_all = cost_of(evaluation.attempts)
    body = {
        "format": FORMAT,
        **_fields(evaluation),
        "rates": _fields(evaluation.rates()),
        "rates_by_kind": rates,
        "cost": {"usd": usd, "complete": is_all},
        "review": review,
    }
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _fields(value: object) -> JsonObject:
    return as_object(msgspec.to_builtins(value))


def as_table(evaluation: Evaluation) -> str:
    """Return an evaluation as a table of its tasks with a summary below. Pure."""
    rows = [HEADS, *(_row(evaluation, task) for task in _tasks(evaluation))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    lines = [_line(row, widths) for row in rows]
    reasons = [
        f"{one.task} #{one.number} {one.verdict}: {reason}"
        for one in evaluation.attempts
        for reason in one.reasons
    ]
    sections = [lines, reasons, _skipped(evaluation), list(summary(evaluation))]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _tasks(evaluation: Evaluation) -> Sequence[str]:
    return tuple(dict.fromkeys(one.task for one in evaluation.attempts))


def _row(evaluation: Evaluation, task: str) -> tuple[str, ...]:
    attempts = evaluation.of_task(task)
    counted = [one for one in attempts if one.verdict != "invalid"]
    passed = sum(one.verdict == "passed" for one in counted)
    count = len(attempts)
    return (
        task,
        attempts[0].kind,
        f"{passed}/{len(counted)}" if counted else "invalid",
        f"{sum(one.turns for one in attempts) / count:.0f}",
        f"{sum(one.tokens for one in attempts) / count:.0f}",
        cost_text(attempts),
        f"{sum(one.duration_s for one in attempts) / count:.1f} s",
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column < 2 else cell.rjust(width)  # noqa: PLR2004 - name and kind
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _skipped(evaluation: Evaluation) -> list[str]:
    return [f"{one.task} skipped: {one.reason}" for one in evaluation.skipped]


def cost_text(attempts: Sequence[Attempt]) -> str:
    """Return the cost of attempts; `≥` stands before one of which a part is unknown. Pure."""
    usd, is_all = cost_of(attempts)
    if is_all:
        return f"${usd:.4f}"
    return f"≥ ${usd:.4f}" if usd else "unknown"


def summary(evaluation: Evaluation) -> Iterator[str]:
    """Yield the lines of the summary. Pure."""
    for kind in evaluation.kinds:
        yield f"{kind}: {rates_text(evaluation.rates(kind), k=evaluation.k)}"
    yield f"all: {rates_text(evaluation.rates(), k=evaluation.k)}"
    score = evaluation.review()
    if score is not None:
        yield (
            f"reviews: recall {percent(score.recall)}, precision {percent(score.precision)}, "
            f"{counted(score.doubles, 'double')}, noise {decimal(score.noise_per_1000)} per 1,000 lines"
        )
    yield (
        f"model {evaluation.model}, cost {cost_text(evaluation.attempts)}, "
        f"{evaluation.duration_s:.0f} s, containment {evaluation.containment}"
    )


def rates_text(rates: Rates, *, k: int) -> str:
    """Return rates as a sentence. Pure."""
    text = f"pass@1 {percent(rates.pass_at_1)} of {counted(rates.tasks, 'task')}"
    if k > 1:
        text += f", pass@{k} {percent(rates.pass_at_k)}, pass^{k} {percent(rates.pass_hat_k)}"
    if rates.invalid:
        text += f", {counted(rates.invalid, 'attempt')} not counted"
    return text


def counted(count: int, noun: str) -> str:
    """Return a count with its noun. Pure."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def percent(share: float | None) -> str:
    """Return a share as a percentage. Pure."""
    return NONE if share is None else f"{100 * share:.1f} %"


def decimal(value: float | None) -> str:
    """Return a number with one digit. Pure."""
    return NONE if value is None else f"{value:.1f}"
