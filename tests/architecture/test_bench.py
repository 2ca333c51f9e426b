"""Every benchmark is registered, and its figures come out as a table and as JSON."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from bench.__main__ import main
from bench.kit import Bar, Benchmark, Peer, Plan, Row, alternate, percentile
from bench.lab import Workshop
from bench.peers.agent import AgentFailedError
from bench.peers.contest import Figures, in_turns, row as comparison_row
from bench.registry import BENCHMARKS
from bench.report import Outcome, document, encode, table
from tests.support.harness.sources import sources

SAMPLES = (3.0, 1.0, 2.0)
JUDGED = Row(
    what="start",
    unit="ms",
    ours=SAMPLES,
    peer=Peer(name="bare", samples=(1.0, 1.0)),
    bar=Bar(of="ratio", at_most=1.3),
    note="two of both",
)


async def _nothing(_plan: Plan, _shop: Workshop) -> list[Row]:
    return []


def outcome(*rows: Row, failure: str | None = None) -> Outcome:
    benchmark = Benchmark(name="n", title="A title", run=_nothing)
    return Outcome(benchmark=benchmark, rows=rows, took_s=1.5, load=(0.5, 0.75), failure=failure)


def test_every_benchmark_is_registered_once() -> None:
    found = [
        import_module(source.module).BENCHMARK
        for source in sources("bench")
        if "\nBENCHMARK = " in source.text
    ]
    assert sorted(one.name for one in found) == sorted(one.name for one in BENCHMARKS)
    assert len({one.name for one in BENCHMARKS}) == len(BENCHMARKS)


def test_a_table_tells_range_peer_ratio_and_bar() -> None:
    words = [" ".join(line.split()) for line in table(outcome(JUDGED)).splitlines()]
    assert words == [
        "A title (load 0.5 to 0.8)",
        "start 2.00 [1.00..3.00] ms bar: ratio at most 1.3, MISSED",
        "bare 1.00 [1.00..1.00] ms ratio 2.00",
        "two of both",
    ]


def test_json_keeps_every_sample_and_what_the_bar_came_to() -> None:
    written = json.loads(encode(document([outcome(JUDGED)], about={"at": "now"})))
    assert (written["format"], written["at"], set(written["machine"])) == (
        1,
        "now",
        {"system", "release", "architecture", "python", "processors", "memory_gib"},
    )
    assert written["benchmarks"] == [
        {
            "name": "n",
            "title": "A title",
            "took_s": 1.5,
            "load": [0.5, 0.75],
            "failure": None,
            "rows": [
                {
                    "what": "start",
                    "unit": "ms",
                    "tiller": figures(SAMPLES, middle=2.0),
                    "peer": {"name": "bare", **figures((1.0, 1.0), middle=1.0)},
                    "ratio": 2.0,
                    "bar": {"of": "ratio", "at_most": 1.3, "measured": 2.0, "held": False},
                    "note": "two of both",
                }
            ],
        }
    ]


def figures(samples: Sequence[float], *, middle: float) -> Mapping[str, Any]:
    ends = {"median": middle, "min": min(samples), "max": max(samples), "p95": None}
    return {**ends, "samples": list(samples)}


def test_a_benchmark_that_failed_says_why_and_does_not_vanish() -> None:
    failed = outcome(failure="it would not start")
    assert table(failed).splitlines()[-1].strip() == "FAILED: it would not start"
    assert document([failed], about={})["benchmarks"][0]["failure"] == "it would not start"


@pytest.mark.parametrize(("percent", "expected"), [(1, 1), (50, 10), (95, 19), (96, 20), (100, 20)])
def test_a_percentile_is_one_of_the_samples(percent: float, expected: float) -> None:
    assert percentile(list(range(20, 0, -1)), percent) == expected


@pytest.mark.parametrize(
    ("bar", "verdict"),
    [
        (Bar(of="median", at_most=2.0), "bar: median at most 2 ms, held"),
        (Bar(of="p95", at_most=2.9), "bar: p95 at most 2.9 ms, MISSED"),
        (Bar(of="ratio", at_most=1.0), "bar: ratio at most 1, not measured"),
    ],
)
def test_a_bar_judges_its_own_statistic(bar: Bar, verdict: str) -> None:
    row = Row(what="w", unit="ms", ours=SAMPLES, bar=bar)
    assert table(outcome(row)).endswith(verdict)


def test_a_peer_without_a_figure_shows_why() -> None:
    dead = Peer(name="other", samples=(), why_none="the process ended")
    row = Row(what="w", unit="ms", ours=SAMPLES, others=(dead,))
    assert table(outcome(row)).splitlines()[-1].split() == [
        "other",
        "-",
        "(the",
        "process",
        "ended)",
    ]
    written = document([outcome(row)], about={})["benchmarks"][0]["rows"][0]
    assert written["others"][0]["why_none"] == "the process ended"
    assert written["others"][0]["median"] is None


def test_a_ratio_to_a_peer_without_a_figure_is_not_measured() -> None:
    row = Row(what="w", unit="ms", ours=SAMPLES, peer=Peer(name="other", samples=(), why_none="x"))
    assert row.ratio is None


async def test_a_peer_that_fails_is_not_tried_again_and_the_others_go_on() -> None:
    calls: list[str] = []

    async def way(name: str) -> float:
        calls.append(name)
        if name == "pi":
            raise AgentFailedError("it died")
        return 1.0

    ways = {name: partial(way, name) for name in ("floor", "pi", "tiller")}
    assert await in_turns(2, ways) == {
        "floor": Figures((1.0, 1.0)),
        "pi": Figures(why_none="it died"),
        "tiller": Figures((1.0, 1.0)),
    }
    assert calls == ["floor", "pi", "tiller", "tiller", "floor"]


async def test_a_failure_of_ours_ends_the_measurement() -> None:
    async def fail() -> float:
        raise AgentFailedError("it died")

    with pytest.raises(AgentFailedError):
        await in_turns(1, {"tiller": fail})


def test_the_row_of_a_comparison_has_its_bar_against_the_named_peer() -> None:
    figures = {
        "floor": Figures((0.5,)),
        "pi": Figures((4.0,)),
        "codex": Figures(why_none="no such tool"),
        "tiller": Figures((3.0,)),
    }
    made = comparison_row("a turn", "ms", figures, against="pi", at_most=0.8)
    assert (made.ratio, made.is_held) == (0.75, True)
    assert [peer.name for peer in made.others] == ["floor", "codex"]


def test_an_unknown_peer_is_refused_with_the_known_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--peers", "pi,nobody"])
    assert "no peer nobody; there are pi, codex" in capsys.readouterr().err


async def test_rounds_alternate_and_change_who_begins() -> None:
    order: list[str] = []

    async def run(name: str) -> int:
        order.append(name)
        return len(order)

    assert await alternate(3, lambda: run("A"), lambda: run("B")) == ([1, 4, 5], [2, 3, 6])
    assert "".join(order) == "ABBAAB"


def test_an_unknown_benchmark_is_refused_with_the_known_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert BENCHMARKS[0].name in capsys.readouterr().err
