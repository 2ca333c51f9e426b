"""Figures as a table for people and as JSON for programs."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil

from bench.kit import Benchmark, Peer, Row, percentile

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
            ratio = "" if row.ratio is None else f"ratio {row.ratio:.2f}"
            lines.append(f"{_beside(row.peer, row.unit)} {ratio}".rstrip())
        lines += [_beside(other, row.unit).rstrip() for other in row.others]
        if row.note:
            lines.append(f"    {row.note}")
    if outcome.failure is not None:
        lines.append(f"  FAILED: {outcome.failure}")
    return "\n".join(lines)


def _beside(peer: Peer, unit: str) -> str:
    figure = f"{summary(peer.samples)} {unit}" if peer.samples else f"- ({peer.why_none})"
    return f"    {peer.name:<60} {figure:<34}"


def summary(samples: Sequence[float]) -> str:
    """Give the median with the range, and the 95th percentile when there are enough samples."""
    if not samples:
        return "-"
    if len(samples) == 1:
        return number(samples[0])
    text = f"{number(median(samples))} [{number(min(samples))}..{number(max(samples))}]"
    if len(samples) >= P95_FROM:
        text += f" p95 {number(percentile(samples, 95))}"
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
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
    }


def _verdict(row: Row) -> str:
    if row.bar is None:
        return ""
    sign = "" if row.bar.of == "ratio" else f" {row.unit}"
    held = {True: "held", False: "MISSED", None: "not measured"}[row.is_held]
    return f"bar: {row.bar.of} at most {row.bar.at_most:g}{sign}, {held}"


def number(value: float) -> str:
    """Return a figure with as many digits as mean something."""
    if abs(value) >= MANY:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= SOME else f"{value:.2f}"


def _row(row: Row) -> dict[str, Any]:
    shown: dict[str, Any] = {"what": row.what, "unit": row.unit, "tiller": _figures(row.ours)}
    if row.peer is not None:
        shown["peer"] = _peer(row.peer)
        shown["ratio"] = row.ratio
    if row.others:
        shown["others"] = [_peer(other) for other in row.others]
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


def _peer(peer: Peer) -> dict[str, Any]:
    figures = {"name": peer.name, **_figures(peer.samples)}
    return {**figures, "why_none": peer.why_none} if peer.why_none else figures


def _figures(samples: Sequence[float]) -> dict[str, Any]:
    if not samples:
        return {"median": None, "samples": []}
    return {
        "median": median(samples),
        "min": min(samples),
        "max": max(samples),
        "p95": percentile(samples, 95) if len(samples) >= P95_FROM else None,
        "samples": list(samples),
    }
