"""The figures of a comparison as a picture: one small bar chart a row, as SVG."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from bench.report import number

OURS = "Tiller"
NAMES: Mapping[str, str] = {"pi": "pi", "codex": "Codex", "tiller": OURS}
COLUMNS = 2
WIDTH = 440
MARGIN = 16
LABEL = 74
LENGTH = 232
"""Of the longest bar of each chart."""
LINE = 17
THICK = 11
HEAD = 26
GAP = 20
TOP = 50
LONGEST_REASON = 40
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 } .head { font-size: 15px; font-weight: 600 } .quiet { fill: #6e7781 }
.floor { fill: #d0d7de } .peer { fill: #9fb3c8 } .ours { fill: #1a7f64 }
.limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #8d96a0 }
  .floor { fill: #3d444d } .peer { fill: #57708c } .ours { fill: #2ea98a } .limit { stroke: #ff7b72 }
}
""".strip()


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One bar: the name of a program with its median, or with the reason why there is none."""

    name: str
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One row of a comparison."""

    title: str
    unit: str
    bars: tuple[ChartBar, ...]
    limit: float | None
    """The most that ours may be, in the unit of the chart; None: nothing is said of it."""


def charts(rows: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return a chart for each row in which another agent has a figure."""
    made = [_chart(row) for row in rows]
    others = set(NAMES.values()) - {OURS}
    return [
        chart
        for chart in made
        if any(bar.value is not None and bar.name in others for bar in chart.bars)
    ]


def limit_of(row: Mapping[str, Any]) -> float | None:
    """Return the most that our median may be, in the unit of the row; None without a bar or without its peer's figure."""
    bar = row.get("bar")
    if bar is None:
        return None
    if bar["of"] != "ratio":
        return float(bar["at_most"])
    peer = row.get("peer")
    if peer is None or peer["median"] is None:
        return None
    return float(bar["at_most"] * peer["median"])


def svg(rows: Sequence[Mapping[str, Any]], *, about: str) -> str:
    """Return the picture of the rows of a document."""
    drawn = charts(rows)
    heights = [HEAD + LINE * len(chart.bars) + GAP for chart in drawn]
    half = (len(drawn) + 1) // COLUMNS
    height = TOP + max(sum(heights[:half]), sum(heights[half:]), 0) + MARGIN
    width = COLUMNS * WIDTH + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape('Tiller beside other agents: medians, shorter is better')}</title>",
        f"<style>{STYLE}</style>",
        _text(MARGIN, 22, "Medians of one run; shorter is better", "head"),
        _text(MARGIN, 40, f"{about}. Dashed: the most that Tiller may take.", "quiet"),
    ]
    for place, chart in enumerate(drawn):
        column, first = divmod(place, half) if half else (0, 0)
        above = heights[column * half : column * half + first]
        lines += _drawn(chart, left=MARGIN + column * WIDTH, top=TOP + sum(above))
    return "\n".join([*lines, "</svg>", ""])


def _chart(row: Mapping[str, Any]) -> Chart:
    peers = [*([row["peer"]] if "peer" in row else []), *row.get("others", ())]
    figures = {peer["name"]: peer for peer in peers} | {"tiller": row["tiller"]}
    order = [*(name for name in figures if name not in NAMES), *NAMES]
    bars = tuple(
        ChartBar(NAMES.get(name, name), figures[name]["median"], figures[name].get("why_none", ""))
        for name in order
        if name in figures and (name in NAMES or figures[name]["median"] is not None)
    )
    return Chart(row["what"].replace("`", ""), row["unit"], bars, limit_of(row))


def _drawn(chart: Chart, *, left: int, top: int) -> Iterator[str]:
    yield _text(left, top + 14, chart.title, "title")
    most = max([*(bar.value or 0.0 for bar in chart.bars), chart.limit or 0.0, 1e-9])
    for place, bar in enumerate(chart.bars):
        y = top + HEAD + LINE * place
        baseline = y + THICK - 1
        yield _text(left, baseline, bar.name, "")
        if bar.value is None:
            yield _text(left + LABEL, baseline, _short(bar.reason), "quiet")
            continue
        length = max(bar.value / most * LENGTH, 1.0)
        kind = "ours" if bar.name == OURS else "peer" if bar.name in NAMES.values() else "floor"
        yield f'<rect class="{kind}" x="{left + LABEL}" y="{y}" width="{length:.1f}" height="{THICK}" rx="2"/>'
        end = left + LABEL + length + 6
        if bar.name == OURS and chart.limit is not None:
            at = left + LABEL + chart.limit / most * LENGTH
            yield f'<line class="limit" x1="{at:.1f}" y1="{y - 3}" x2="{at:.1f}" y2="{y + THICK + 3}"/>'
            end = max(end, at + 6)
        yield _text(end, baseline, f"{number(bar.value)} {chart.unit}", "quiet")


def _text(x: float, y: float, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _short(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else reason[: LONGEST_REASON - 1] + "…"
