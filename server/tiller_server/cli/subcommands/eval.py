"""`tiller eval`: runs an agent on tasks with known solutions, and reports how many it solves."""

import argparse
from pathlib import Path
from typing import Final

import anyio

from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import Environment

EXAMPLE: Final = "example: tiller eval bench/tasks --model anthropic/claude-sonnet-4-5 -k 3"
RESULTS: Final = "eval-results"
MOST: Final = 1000
KINDS: Final = ("repair", "feature", "refactor", "resume", "forbidden", "review")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR", help="a folder of tasks, or one task")
    add(
        "-m",
        "--model",
        default="scripted",
        metavar="PROVIDER/ID",
        help="the model; scripted plays the reference solutions [scripted]",
    )
    add("-k", type=_count, default=1, metavar="N", help="try each task so many times [1]")
    add("--task", action="append", default=[], metavar="NAME", help="only this task; repeatable")
    add(
        "--kind",
        action="append",
        default=[],
        choices=KINDS,
        help="only tasks of this kind; repeatable",
    )
    add("--jobs", type=_count, default=1, metavar="N", help="so many tasks at a time [1]")
    add("--check", action="store_true", help="only check that the tasks can be used; ask no model")
    add(
        "--output",
        type=Path,
        default=Path(RESULTS),
        metavar="DIR",
        help=f"write the reports, and the sessions of failures, there [{RESULTS}]",
    )
    add("--keep", action="store_true", help="keep the sessions of attempts that pass, too")
    add("--json", action="store_true", help="print the report as JSON")
    add(
        "--uncontained",
        action="store_true",
        help="run commands without containment; only in a machine that can be lost",
    )
    add("--debug", action="store_true", help="show tracebacks")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    from tiller_server.cli.evaluation.command import run_evaluation  # noqa: PLC0415 - it needs what no other command does

    def work() -> int:
        return anyio.run(run_evaluation, options, environment)

    return code_of("eval", work, debug=options.debug, as_json=options.json)


def _count(text: str) -> int:
    count = int(text) if text.isascii() and text.isdecimal() else 0
    if not 1 <= count <= MOST:
        message = f"invalid count {text!r}: use a whole number from 1 to {MOST}"
        raise argparse.ArgumentTypeError(message)
    return count
