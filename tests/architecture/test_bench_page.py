"""The page and the chart of a comparison are made from the JSON of a run, and say what the run found."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.chart import charts, limit_of, svg
from bench.kit import Bar, Benchmark, Peer, Plan, Row
from bench.lab import Workshop
from bench.page import BEGIN, END, PAGE, PICTURE, PageError, bar_of, figures, verdict_of, write_page
from bench.report import Outcome, document

FLOOR = Peer(name="floor", samples=(0.5, 0.4, 0.6))
PI = Peer(name="pi", samples=(4.0, 5.0, 3.0))
CODEX = Peer(name="codex", samples=(), why_none="no such tool")
PYGLS = Peer(name="bare pygls", samples=(300.0,))
TO_PI = Row(
    what="a turn with one `read`",
    unit="ms",
    ours=(3.0, 2.0, 4.0),
    peer=PI,
    others=(FLOOR, CODEX),
    bar=Bar(of="ratio", at_most=0.7),
)
IN_MS = Row(what="cancel <now>", unit="ms", ours=(6.0,), bar=Bar(of="median", at_most=5))
TO_PYGLS = Row(what="start", unit="ms", ours=(270.0,), peer=PYGLS, bar=Bar(of="ratio", at_most=1.0))
TEXT = f"# Performance\n\n{BEGIN}\n\nolder figures\n\n{END}\n\nMore.\n"
WHERE = (
    "Measured on 2026-11-25 at abc123, full run, beside pi 0.73.1, Codex 0.169.0. "
    "2 cores, 8 GiB, Linux, Python 3.11.7"
)
OTHERS = "0.50 ms [0.40..0.60] | 4.00 ms [3.00..5.00] | no such tool"


async def _nothing(_plan: Plan, _shop: Workshop) -> list[Row]:
    return []


def run(*rows: Row, name: str = "peer-turns", failure: str | None = None) -> dict[str, Any]:
    benchmark = Benchmark(name=name, title="Turns", run=_nothing, with_peers=True)
    one = Outcome(benchmark=benchmark, rows=rows, took_s=1.0, load=(0.5, 1.25), failure=failure)
    about = {
        "at": "2026-11-25T10:00:00.000Z",
        "plan": "full",
        "commit": "abc123",
        "peers": {"pi": "pi 0.73.1", "codex": "Codex 0.169.0"},
    }
    machine = {"system": "Linux", "python": "3.11.7", "processors": 2, "memory_gib": 8}
    return {**document([one], about=about), "machine": machine}


def first(*rows: Row) -> dict[str, Any]:
    return run(*rows)["benchmarks"][0]["rows"][0]


def test_a_line_of_the_table_has_all_figures_the_bar_and_the_ratio() -> None:
    assert figures(run(TO_PI, IN_MS, TO_PYGLS)).splitlines() == [
        f"{WHERE}; load average 0.5 to 1.2.",
        "Each figure is the median with the range.",
        "",
        "| | Floor | pi | Codex | Tiller | Bar | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        f"| a turn with one `read` | {OTHERS} | **3.00 ms [2.00..4.00]** | 0.7 × pi | 0.75 ×, missed |",
        "| cancel <now> |  |  |  | **6.00 ms** | 5 ms | missed |",
        "| start | bare pygls 300.0 ms |  |  | **270.0 ms** | 1 × bare pygls | 0.90 ×, held |",
    ]


def test_a_comparison_that_failed_is_named_below_the_table() -> None:
    last = figures(run(failure="it would not start")).splitlines()[-1]
    assert last == "Turns could not be measured: it would not start"


@pytest.mark.parametrize(
    ("row", "bar", "verdict", "limit"),
    [
        (TO_PI, "0.7 × pi", "0.75 ×, missed", 2.8),
        (IN_MS, "5 ms", "missed", 5.0),
        (replace(TO_PI, bar=None), "", "", None),
        (replace(TO_PI, peer=replace(PI, samples=())), "0.7 × pi", "not measured", None),
    ],
)
def test_a_bar_in_words_and_as_a_limit(
    row: Row, bar: str, verdict: str, limit: float | None
) -> None:
    shown = first(row)
    assert (bar_of(shown), verdict_of(shown)) == (bar, verdict)
    assert limit_of(shown) == (limit if limit is None else pytest.approx(limit))


def test_the_chart_has_a_bar_for_each_figure_and_the_reason_for_each_other() -> None:
    (chart,) = charts([first(TO_PI)])
    assert (chart.title, chart.unit) == ("a turn with one read", "ms")
    assert [(bar.name, bar.value, bar.reason) for bar in chart.bars] == [
        ("floor", 0.5, ""),
        ("pi", 4.0, ""),
        ("Codex", None, "no such tool"),
        ("Tiller", 3.0, ""),
    ]


def test_a_row_without_another_agent_is_not_drawn() -> None:
    assert charts([first(IN_MS), first(TO_PYGLS)]) == []


def test_the_picture_is_well_formed_and_drawn_to_scale() -> None:
    texts, lengths, limits = _drawn(svg([first(TO_PI)], about="2 cores & more"))
    assert texts == [
        "Medians of one run; shorter is better",
        "2 cores & more. Dashed: the most that Tiller may take.",
        "a turn with one read",
        *("floor", "0.50 ms"),
        *("pi", "4.00 ms"),
        *("Codex", "no such tool"),
        *("Tiller", "3.00 ms"),
    ]
    assert [length / lengths[1] for length in lengths] == pytest.approx([0.125, 1.0, 0.75])
    assert limits == 1


def test_a_picture_of_nothing_is_still_a_picture() -> None:
    texts, lengths, _ = _drawn(svg([], about="2 cores"))
    assert (len(texts), lengths) == (2, [])


def test_writing_the_page_replaces_the_figures_and_nothing_else(tmp_path: Path) -> None:
    page, picture = tmp_path / "performance.md", tmp_path / "pictures/performance.svg"
    page.write_text(TEXT, encoding="utf-8")
    for row in (IN_MS, TO_PI):
        write_page(run(row), page=page, picture=picture)
    text = page.read_text(encoding="utf-8")
    assert text == f"# Performance\n\n{BEGIN}\n\n{figures(run(TO_PI))}\n{END}\n\nMore.\n"
    assert _drawn(picture.read_text(encoding="utf-8"))[1] != []


def test_a_run_without_other_agents_does_not_empty_the_page(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(TEXT, encoding="utf-8")
    with pytest.raises(PageError, match="make bench PEERS=pi,codex"):
        write_page(run(TO_PI, name="shim"), page=page, picture=tmp_path / "p.svg")
    assert page.read_text(encoding="utf-8") == TEXT


def test_a_page_that_has_lost_its_marks_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text("# Performance\n", encoding="utf-8")
    with pytest.raises(PageError, match="no part between"):
        write_page(run(TO_PI), page=page, picture=tmp_path / "p.svg")


def test_the_page_of_this_repository_can_be_written_again() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.index(BEGIN) < text.index(END)
    assert f"pictures/{PICTURE.name}" in text
    assert _drawn(PICTURE.read_text(encoding="utf-8"))[0] != []


def _drawn(picture: str) -> tuple[list[str], list[float], int]:
    """Return the texts, the lengths of the bars, and the number of limits."""
    tree = ET.fromstring(picture)  # noqa: S314 - the picture is our own
    name = "{http://www.w3.org/2000/svg}"
    texts = ["".join(element.itertext()) for element in tree.iter(f"{name}text")]
    lengths = [float(element.attrib["width"]) for element in tree.iter(f"{name}rect")]
    return texts, lengths, len(list(tree.iter(f"{name}line")))
