"""Figures of a replayed day beside the arithmetic of docs/fleet.md."""

from collections.abc import Sequence
from typing import Final

from bench.fleet.day import DayResult
from bench.fleet.outcome import CALLS, OutcomeWriter
from bench.kit import percentile

MEAN_REVIEW_S: Final = 184
PEAK: Final = 6
DAY_S: Final = 24 * 60 * 60


def report(
    result: DayResult,
    *,
    repositories: int,
    places: int,
    real_s: float,
    size: int,
    outcomes: OutcomeWriter,
) -> str:
    """Return a table: figure, replay, arithmetic."""
    peak = result.pushes / DAY_S * PEAK
    rows = [
        ("pushes", f"{result.pushes:,}", f"{repositories * 5:,}"),
        ("reviews done", f"{result.done:,}", "-"),
        ("superseded before they began", f"{result.superseded_queued:,}", "-"),
        ("superseded at work", f"{result.superseded_running:,}", "-"),
        ("deferred by a limit", f"{result.deferrals:,}", "-"),
        ("places for reviews", f"{places:,}", f"{peak * MEAN_REVIEW_S:,.0f} at the peak"),
        ("most reviews at once", f"{result.most_running:,}", f"{peak * MEAN_REVIEW_S:,.0f}"),
        (
            "reviews at once, mean",
            f"{result.busy_ms / DAY_S / 1000:,.1f}",
            f"{result.pushes / DAY_S * MEAN_REVIEW_S:,.1f}",
        ),
        (
            "age in the queue p50 / p95 / most, s",
            " / ".join(f"{one / 1000:,.0f}" for one in _ages(result.queue_ages_ms)),
            "-",
        ),
        ("model calls", f"{result.model_calls:,}", f"{result.pushes * CALLS:,}"),
        ("submit, median / p95, ms", _ms(result.times.submit), "< 50"),
        ("admit, median / p95, ms", _ms(result.times.admit), "< 50"),
        ("advance and finish, median / p95, ms", _ms(result.times.finish), "-"),
        ("reviews whose session and posts were written", f"{result.written:,}", "-"),
        ("of these: all posts of a review, median / p95, ms", _ms(result.times.post), "-"),
        ("requests to the forge a review", _each(outcomes.requests, result.written), "12"),
        ("posts made a review", _each(outcomes.posts, result.written), "-"),
        ("comments that a finding has twice", f"{outcomes.doubled:,}", "0"),
        ("database, MB", f"{size / 1e6:,.0f}", "-"),
        ("database, KB a written review", _each(size / 1000, result.written), "50"),
        ("end of the last job, h", f"{result.ended_ms / 3.6e6:.1f}", "24"),
        ("real time, s", f"{real_s:,.0f}", "-"),
    ]
    heads = ("figure", "replay", "arithmetic")
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(3)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in [heads, *rows]
    ]
    return "\n".join(lines) + "\n"


def _ages(ages: Sequence[int]) -> tuple[float, float, float]:
    if not ages:
        return (0, 0, 0)
    return (percentile(ages, 50), percentile(ages, 95), max(ages))


def _ms(times: Sequence[float]) -> str:
    if not times:
        return "-"
    return f"{percentile(times, 50) * 1000:.1f} / {percentile(times, 95) * 1000:.1f}"


def _each(total: float, count: int) -> str:
    return f"{total / count:,.1f}" if count else "-"
