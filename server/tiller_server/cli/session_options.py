"""Options of every command that opens a session: which session, where, with which model and tools, and its limits."""

import argparse
import sys
from math import isfinite
from pathlib import Path
from typing import Final

from agent_core.assembly import SessionRequest
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import UsageError
from tiller_server.cli.environment import Environment

MODES: Final = ("plan", "ask", "auto", "yolo")
MOST_DIGITS: Final = 15
"""Of a count: no more fit into a number of JSON without loss."""


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which session, where and how."""
    add = parser.add_argument
    add("--workspace", metavar="DIR", default=".", help="the folder to work in [.]")
    add("--model", metavar="PROVIDER/ID", help="the model to ask")
    add("--tools", metavar="SET", help="a preset or names: default, minimal, readonly, +grep …")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--session",
        metavar="ID",
        help="go on with this session, named as `sessions list` or a run does",
    )
    which.add_argument(
        "--continue", dest="latest", action="store_true", help="go on with the latest"
    )
    which.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    add(
        "--fork",
        action="store_true",
        help="go on in a copy; the session named by --session or --continue stays as it is",
    )
    add("--name", metavar="TITLE", help="name the session")
    add("--permission", choices=MODES, help="what may run without being asked")
    add("--trust", action="store_true", help="trust the workspace for this run")
    add(
        "--extension",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="use this extension too: a file or a folder; may be repeated",
    )
    add_budgets(parser)
    add("--debug", action="store_true", help="show tracebacks")


def add_budgets(parser: argparse.ArgumentParser) -> None:
    """Add what a run may use up; read it again with `budgets_of`."""
    add = parser.add_argument
    add("--budget-usd", type=_amount, metavar="N", help="end the run when it has cost so much")
    add("--max-tokens", type=_count, metavar="N", help="end it after so many tokens of all kinds")
    add("--max-turns", type=_count, metavar="N", help="end it after so many answers of the model")
    add("--max-minutes", type=_amount, metavar="N", help="end it after so many minutes")


def budgets_of(options: argparse.Namespace) -> dict[str, JsonValue]:
    """Return the budgets that were asked for, with the names of the settings."""
    asked = {
        "usd": options.budget_usd,
        "tokens": options.max_tokens,
        "turns": options.max_turns,
        "minutes": options.max_minutes,
    }
    return {name: value for name, value in asked.items() if value is not None}


def request_of(options: argparse.Namespace, environment: Environment) -> SessionRequest:
    """Return the session to open.

    Raises:
        UsageError: The options contradict one another.
    """
    if options.fork and not (options.session or options.latest):
        message = "--fork needs a session to copy; name it with --session ID, or add --continue"
        raise UsageError(message)
    permission: dict[str, JsonValue] = {}
    if options.permission:
        permission["mode"] = options.permission
    if not is_attended():
        # Nobody is there to be asked, so nobody is waited for.
        permission["fallback"] = "rules"
    groups = {"permission": permission, "budgets": budgets_of(options)}
    layer: dict[str, JsonValue] = {name: group for name, group in groups.items() if group}
    return SessionRequest(
        workspace=Path(options.workspace),
        trusted=True if options.trust else None,
        session=options.session or ("latest" if options.latest else "new"),
        env=environment.variables,
        settings={"request": layer} if layer else {},
        model=options.model,
        tools=options.tools,
        store="memory" if options.no_session else "files",
        extensions=[path.expanduser().absolute() for path in options.extension],
    )


def is_attended() -> bool:
    """Return whether a person can be asked: standard input and the stream of the question are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not isfinite(amount) or amount < 0:
        message = f"{text!r} is no amount; give a number from 0 on, as 0.5"
        raise argparse.ArgumentTypeError(message)
    return amount


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        message = f"{text!r} is no count; give a whole number from 0 on, as 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)
