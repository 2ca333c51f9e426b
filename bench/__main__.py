"""The command `python -m bench`: measures, prints a table, writes a JSON file. Judges nothing by its exit code."""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_core.kernel import SystemClock
from agent_core.kernel.clock import rfc3339
from bench.kit import FULL, QUICK, Benchmark, Plan
from bench.lab import ROOT, Workshop, prepare_bytecode
from bench.page import PAGE, PICTURE, write_page
from bench.peers.contest import PEERS
from bench.registry import BENCHMARKS
from bench.report import Outcome, document, encode, table

RESULTS = ROOT / "bench-results"
FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 1 when one of them could not be carried out."""
    options = _options(argv)
    if options.render is not None:
        write_page(json.loads(options.render.read_text(encoding="utf-8")))
        _say(f"written to {PAGE} and {PICTURE}")
        return 0
    plan = QUICK if options.quick else FULL
    peers: Sequence[str] = options.peers
    chosen = [
        one
        for one in BENCHMARKS
        if (one.name in options.only if options.only else one.with_peers == bool(peers))
    ]
    shop = Workshop(
        environ=dict(os.environ),  # noqa: TID251 - the one place; handed on to the measured programs
        profiles=options.profile,
        peers=peers,
    )
    if options.profile is not None:
        options.profile.mkdir(parents=True, exist_ok=True)
    at = rfc3339(SystemClock().now_ms())
    outcomes = asyncio.run(_run_all(chosen, plan, shop))
    about = {
        "at": at,
        "plan": plan.name,
        "commit": _commit(),
        "profiled": bool(options.profile),
        "peers": {name: PEERS[name]().title for name in peers},
    }
    path: Path = options.json or RESULTS / f"{at.replace(':', '-')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    measured = document(outcomes, about=about)
    path.write_text(encode(measured), encoding="utf-8")
    _say(f"written to {path}")
    if options.page:
        write_page(measured)
        _say(f"written to {PAGE} and {PICTURE}")
    return FAILED if any(outcome.failure for outcome in outcomes) else 0


async def _run_all(chosen: Sequence[Benchmark], plan: Plan, shop: Workshop) -> list[Outcome]:
    _say(f"{await prepare_bytecode(shop.environ)}\nmedian [min..max]; {plan.name} run\n")
    outcomes: list[Outcome] = []
    for benchmark in chosen:
        outcomes.append(await _run(benchmark, plan, shop))
        _say(table(outcomes[-1]) + "\n")
    return outcomes


async def _run(benchmark: Benchmark, plan: Plan, shop: Workshop) -> Outcome:
    began, before = time.monotonic(), os.getloadavg()[0]
    failure = None
    try:
        rows = await benchmark.run(plan, shop)
    except Exception as error:  # noqa: BLE001 - one that fails must not hide the figures of the others
        rows, failure = [], f"{type(error).__name__}: {error}"
    return Outcome(
        benchmark=benchmark,
        rows=rows,
        took_s=time.monotonic() - began,
        load=(before, os.getloadavg()[0]),
        failure=failure,
    )


def _options(argv: Sequence[str] | None) -> Any:
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument(
        "--only", action="append", choices=names, metavar="NAME", help=f"of {', '.join(names)}"
    )
    parser.add_argument(
        "--peers",
        type=_peers,
        default=(),
        metavar="NAMES",
        help=f"measure beside other agents, and nothing else: of {', '.join(PEERS)}, with commas",
    )
    parser.add_argument(
        "--page",
        action="store_true",
        help="write the figures beside other agents, and their chart, into docs/performance.md",
    )
    parser.add_argument(
        "--render", type=Path, metavar="FILE", help="measure nothing: write that page from FILE"
    )
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="DIR",
        help="run the servers under cProfile and leave its statistics there; the figures then mean little",
    )
    return parser.parse_args(argv)


def _peers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := sorted(set(names) - set(PEERS)):
        message = f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}"
        raise argparse.ArgumentTypeError(message)
    return names


def _commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    asked = [git, "describe", "--always", "--dirty", "--abbrev=12"]
    said = subprocess.run(  # noqa: S603 - git, with words of our own
        asked, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or None


def _say(text: str) -> None:
    _ = sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
