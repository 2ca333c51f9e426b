"""Options of every command that opens a session: which session, where, with which model and tools, and its limits."""

import argparse
import shlex
import sys
from collections.abc import Callable
from math import isfinite
from os import defpath
from pathlib import Path
from typing import Final

from agent_core.assembly import SessionRequest
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import UsageError
from tiller_server.cli.environment import Environment

MODES: Final = ("plan", "ask", "auto", "yolo")
MOST_DIGITS: Final = 15
"""Of a count: no more fit into a number of JSON without loss."""


REMOTE: Final = ("ssh:", "docker:", "podman:", "devcontainer:")
"""Beginnings of the addresses of remote workspaces."""
REMOTE_FOLDER: Final = "remote"
"""Folder of the user's data with a folder for each remote workspace, to which its sessions belong."""
ADDRESS_FILE: Final = "address"
"""File of such a folder with the address."""
HERE: Final = "."
"""The workspace of a command line that names none."""
WORKSPACE_HELP: Final = "work in this folder [.]; also ssh:HOST:/path, docker:NAME:/path, podman:NAME:/path, devcontainer:FOLDER"
Placing = Callable[[SessionRequest], SessionRequest]
"""Function that moves a request to the workspace of the command line."""
CHOOSE: Final = "choose"
"""Value of `--resume` without an id: the user chooses from a list."""


def add_session_options(parser: argparse.ArgumentParser, *, can_choose: bool = False) -> None:
    """Add the options for the session, the workspace, the model and the limits.

    Args:
        parser: Gets the options.
        can_choose: `--resume` may stand without an id (`CHOOSE`).
    """
    add = parser.add_argument
    add("-C", "--workspace", metavar="DIR", default=HERE, help=WORKSPACE_HELP)
    add(
        "--add-dir",
        action="append",
        default=[],
        type=_folder,
        metavar="DIR",
        help="also work in this folder; can be repeated",
    )
    add("-m", "--model", metavar="PROVIDER/ID", help="use this model; a part of the name will do")
    add("--tools", metavar="SET", help="a preset or names: default, minimal, readonly, +grep …")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-r",
        "--resume",
        "--session",
        dest="session",
        metavar="ID",
        nargs="?" if can_choose else None,
        const=CHOOSE if can_choose else None,
        help="continue this session; ID or number as `tiller sessions list` prints it, or the session's file"
        + ("; without ID, choose from a list" if can_choose else ""),
    )
    which.add_argument(
        "-c",
        "--continue",
        dest="latest",
        action="store_true",
        help="continue the latest session of this folder",
    )
    which.add_argument("--no-session", action="store_true", help="keep the session in memory only")
    add("--fork", action="store_true", help="continue in a copy; leave the original unchanged")
    add("--name", metavar="TITLE", help="name the session")
    add(
        "--permission",
        choices=MODES,
        help="plan: read only; ask: ask before risky steps; auto: as ask, with your allow rules; yolo: ask only about protected files",
    )
    add("--trust", action="store_true", help="trust this folder for this run")
    add(
        "--extension",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="load this extension, a file or a folder; can be repeated",
    )
    add_budgets(parser)
    add("--debug", action="store_true", help="show tracebacks")


def add_allow_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for permission rules of one process; `read_allow_rules` reads it."""
    _ = parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="RULE",
        help="run commands that begin like this without a question, in this run or conversation only; as tiller policy allow, in one argument ('npm test'); can be repeated",
    )


def read_allow_rules(options: argparse.Namespace, environment: Environment) -> None:
    """Replace the texts of `--allow` by rules, pinned to the programs that they name now. Blocking.

    Raises:
        UsageError: One cannot be read, or no rule can hold for it.
    """
    if not options.allow:
        return
    from agent_core.workspace.permissions.policy.rules.command_rule import command_rule  # noqa: PLC0415 - seldom needed
    from agent_core.workspace.permissions.policy.rules.matching import RulesFileContext  # noqa: PLC0415 - as above

    folders = (Path(options.workspace).expanduser(), *options.add_dir)
    ground = RulesFileContext(
        origin="user",
        roots=tuple(folder.resolve() for folder in folders),
        env_path=environment.variables.get("PATH", defpath),
    )
    options.allow = [
        command_rule(_command(text), verdict="allow", scope="session", ground=ground)
        for text in options.allow
    ]


def _command(text: str) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(text))
    except ValueError as error:
        message = f"--allow {text!r} cannot be read: a quotation mark is not closed, or a backslash ends it"
        raise UsageError(message) from error
    if not argv:
        message = "--allow names no command. example: --allow 'npm test'"
        raise UsageError(message)
    return argv


def add_budgets(parser: argparse.ArgumentParser) -> None:
    """Add the budgets of a run; `budgets_of` reads them."""
    add = parser.add_argument
    add(
        "--budget-usd", type=_amount, metavar="N", help="stop the run when it has cost N US dollars"
    )
    add("--max-tokens", type=_count, metavar="N", help="stop the run after N tokens of all kinds")
    add("--max-turns", type=_count, metavar="N", help="stop the run after N answers of the model")
    add("--max-minutes", type=_amount, metavar="N", help="stop the run after N minutes")


def _folder(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_dir():
        message = f"{text!r} is not a folder"
        raise argparse.ArgumentTypeError(message)
    return path


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
        message = "--fork needs a session to copy: add --resume ID or --continue"
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
        folders=options.add_dir,
        trusted=True if options.trust else None,
        session=options.session or ("latest" if options.latest else "new"),
        env=environment.variables,
        traceparent=environment.variables.get("TRACEPARENT", ""),
        settings={"request": layer} if layer else {},
        rules=options.allow,
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
        message = f"invalid amount {text!r}: use a number from 0, for example 0.5"
        raise argparse.ArgumentTypeError(message)
    return amount


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS):
        message = f"invalid count {text!r}: use a whole number from 0, for example 20"
        raise argparse.ArgumentTypeError(message)
    return int(text)
