"""`tiller costs`: shows the cost of model calls by day, model, provider, folder, session or purpose."""

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final, get_args

import anyio

from agent_core.assembly.library import read_costs
from agent_core.kernel import JsonObject, SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from agent_core.kernel.json import encode
from agent_core.resources.paths import app_paths
from agent_core.storage.ledger import CostQuery, CostReport, CostSum, Grouping, day_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, code_of_error, complain
from tiller_server.cli.model_table import tokens
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import safe

EXAMPLE: Final = "example: tiller costs --by model --since 7d"
GROUPINGS: Final[Sequence[Grouping]] = get_args(Grouping)
FIELDS: Final = (
    "calls",
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "reasoning",
    "usd",
    "unknown",
    "atMostUsd",
    "unpriced",
    "open",
)
_DAYS: Final = re.compile(r"(\d{1,4})d")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    add = parser.add_argument
    _ = add("--by", choices=GROUPINGS, default="day", help="group the calls by this [day]")
    _ = add("--since", metavar="DATE", help="only from this day on: 2026-11-28, or 7d for a week")
    _ = add("-C", "--workspace", metavar="DIR", help="only the calls for this folder")
    forms = parser.add_mutually_exclusive_group()
    _ = forms.add_argument("--json", action="store_true", help="as JSON")
    _ = forms.add_argument("--csv", action="store_true", help="as CSV")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; return the exit code."""
    try:
        folder = None if options.workspace is None else str(Path(options.workspace).resolve())
        query = CostQuery(by=options.by, since=first_day(options.since), folder=folder)
        report = anyio.run(read_costs, app_paths(environment.variables), query, SystemClock())
    except TillerError as error:
        if options.json:
            speak_json()
            body = {"type": "error", "error": {"kind": error.kind, "message": str(error)}}
            _ = sys.stdout.write(encode(body).decode() + "\n")
        complain("costs", str(error))
        return code_of_error(error)
    if options.json:
        speak_json()
        _ = sys.stdout.write(encode(report_json(report)).decode() + "\n")
    elif options.csv:
        _write_csv(report)
    else:
        _ = sys.stdout.writelines(f"{line}\n" for line in lines(report))
    if not options.json:
        _ = sys.stderr.writelines(f"{safe(problem)}\n" for problem in report.problems)
    return DONE


def first_day(text: str | None) -> str | None:
    """Return the first day that `--since` names.

    Raises:
        UsageError: It names none.
    """
    if text is None:
        return None
    today = date.fromisoformat(day_of(SystemClock().now_ms()))
    if days := _DAYS.fullmatch(text):
        back = min(int(days[1]), today.toordinal()) - 1
        return (today - timedelta(days=max(back, 0))).isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        message = f"--since {text!r} is no day: write 2026-11-28, or 7d for the last seven days"
        raise UsageError(message) from None


def report_json(report: CostReport) -> JsonObject:
    """Return a report as JSON; amounts are decimal numbers in strings."""
    return {
        "by": report.by,
        "sums": [_sum_json(one) for one in report.sums],
        "total": _sum_json(report.total),
        "problems": list(report.problems),
    }


def _sum_json(one: CostSum) -> JsonObject:
    return {
        "key": one.key,
        "calls": one.calls,
        "input": one.input,
        "output": one.output,
        "cacheRead": one.cache_read,
        "cacheWrite": one.cache_write,
        "reasoning": one.reasoning,
        "usd": f"{one.usd.normalize():f}",
        "unknown": one.unknown,
        "atMostUsd": f"{one.at_most_usd.normalize():f}",
        "unpriced": one.unpriced,
        "open": one.open,
    }


def _write_csv(report: CostReport) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow((report.by, *FIELDS))
    for one in report.sums:
        made = _sum_json(one)
        writer.writerow((one.key, *(made[name] for name in FIELDS)))


def lines(report: CostReport) -> Sequence[str]:
    """Return a report as lines for people."""
    if not report.total.calls:
        return ("no model calls are recorded",)
    names = [safe(one.key) for one in report.sums]
    width = max(map(len, (*names, report.by, "total")))
    head = f"{report.by.upper():<{width}}  {'CALLS':>5}  {'INPUT':>6}  {'CACHED':>6}  {'OUTPUT':>6}  {'USD':>10}"
    rows = [_line(name, one, width) for name, one in zip(names, report.sums, strict=True)]
    return (head, *rows, _line("total", report.total, width), *_unknown(report.total))


def _line(name: str, one: CostSum, width: int) -> str:
    usd = f"{'≥ ' if one.unknown else ''}{one.usd:.4f}"
    counts = (one.input + one.cache_write, one.cache_read, one.output)
    columns = "  ".join(f"{tokens(count) if count else '0':>6}" for count in counts)
    return f"{name:<{width}}  {one.calls:>5,}  {columns}  {usd:>10}"


def _unknown(total: CostSum) -> Sequence[str]:
    """Return what the sum does not hold."""
    found: list[str] = []
    if total.unpriced:
        found.append(
            f"{_calls(total.unpriced)} no known price: models.json can give the price of a model"
        )
    if ended := total.unknown - total.unpriced:
        found.append(
            f"{_calls(ended)} no known end or no count of tokens: at most {total.at_most_usd:.4f} US dollars more"
        )
    return found


def _calls(count: int) -> str:
    return f"{count:,} {'call has' if count == 1 else 'calls have'}"
