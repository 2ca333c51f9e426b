"""Figures as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.kit import Benchmark, Row, percentile

FORMAT = 1
MANY, SOME = 1000, 10
"""From there on no digit, and one digit, stands behind the point."""
P95_FROM = 20
"""From so many samples on, the 95th percentile means something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one benchmark."""

    benchmark: Benchmark
    rows: Sequence[Row]
    took_s: float
    load: tuple[float, float]
    """The machine's load average before and after."""
    failure: str | None = None


def table(outcome: Outcome) -> str:
    """Give the lines of one benchmark."""
    before, after = outcome.load
    lines = [f"{outcome.benchmark.title} (load {before:.1f} to {after:.1f})"]
    for row in outcome.rows:
        shown = f"{summary(row.ours)} {row.unit}"
        lines.append(f"  {row.what:<62} {shown:<34} {_verdict(row)}".rstrip())
        if row.peer is not None:
            floor = f"{summary(row.peer.samples)} {row.unit}"
            ratio = "" if row.ratio is None else f"ratio {row.ratio:.2f}"
            lines.append(f"    {row.peer.name:<60} {floor:<34} {ratio}".rstrip())
        if row.note:
            lines.append(f"    {row.note}")
    if outcome.failure is not None:
        lines.append(f"  FAILED: {outcome.failure}")
    return "\n".join(lines)


def summary(samples: Sequence[float]) -> str:
    """Give the median with the range, and the 95th percentile when there are enough samples."""
    if len(samples) == 1:
        return _number(samples[0])
    text = f"{_number(median(samples))} [{_number(min(samples))}..{_number(max(samples))}]"
    if len(samples) >= P95_FROM:
        text += f" p95 {_number(percentile(samples, 95))}"
    return text


def document(outcomes: Sequence[Outcome], *, about: Mapping[str, Any]) -> dict[str, Any]:
    """Give everything that was measured, samples included, as JSON."""
    return {
        "format": FORMAT,
        **about,
        "machine": machine(),
        "benchmarks": [
            {
                "name": outcome.benchmark.name,
                "title": outcome.benchmark.title,
                "took_s": round(outcome.took_s, 3),
                "load": list(outcome.load),
                "failure": outcome.failure,
                "rows": [_row(row) for row in outcome.rows],
            }
            for outcome in outcomes
        ],
    }


def encode(document: Mapping[str, Any]) -> str:
    """Give the text of the JSON file."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def machine() -> dict[str, Any]:
    """Say what the figures were measured on."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
    }


def _verdict(row: Row) -> str:
    if row.bar is None:
        return ""
    sign = "" if row.bar.of == "ratio" else f" {row.unit}"
    held = {True: "held", False: "MISSED", None: "not measured"}[row.is_held]
    return f"bar: {row.bar.of} at most {row.bar.at_most:g}{sign}, {held}"


def _number(value: float) -> str:
    if abs(value) >= MANY:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= SOME else f"{value:.2f}"


def _row(row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {"what": row.what, "unit": row.unit, "tiller": _figures(row.ours)}
    if row.peer is not None:
        shown["peer"] = {"name": row.peer.name, **_figures(row.peer.samples)}
        shown["ratio"] = row.ratio
    if row.bar is not None:
        shown["bar"] = {
            "of": row.bar.of,
            "at_most": row.bar.at_most,
            "measured": row.statistic(row.bar.of),
            "held": row.is_held,
        }
    if row.note:
        shown["note"] = row.note
    return shown


def _figures(samples: Sequence[float]) -> dict[str, Any]:
    return {
        "median": median(samples),
        "min": min(samples),
        "max": max(samples),
        "p95": percentile(samples, 95) if len(samples) >= P95_FROM else None,
        "samples": list(samples),
    }
