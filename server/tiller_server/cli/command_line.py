"""Parses the command line of `tiller` and starts the named command.

`--help`, `--version` and mistakes before a command need no command: up to there only argparse is imported.
"""

import argparse
import io
import os
import sys
from collections.abc import Mapping, Sequence

from tiller_server import VERSION

DESCRIPTION = "Tiller: a coding agent that lives in the editor's own protocol."
EPILOG = "tiller COMMAND --help tells more of each. Editors start: tiller lsp"
USAGE = 2
COMMANDS: Mapping[str, str] = {
    "run": "answer one prompt, without an editor",
    "chat": "talk, and steer while it works",
    "review": "look at the changes between two commits",
    "demo": "watch the agent repair a small project",
    "sessions": "look through stored sessions",
    "auth": "log in to providers and out",
    "models": "list models, and choose one",
    "config": "where settings lie and what they are",
    "policy": "what the permission rules decide about a command",
    "trust": "which workspaces may configure Tiller and be changed by it",
    "doctor": "what works on this machine, and what to do about what does not",
    "daemon": "start, stop or look at the process that serves this user's editors",
    "trace": "record a connection for a bug report, or replay one",
}
"""Summaries of the commands. Each is the module of `subcommands` that has its name; it is imported when it is named."""


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    open_closed_streams()
    parser = argparse.ArgumentParser(prog="tiller", description=DESCRIPTION, epilog=EPILOG)
    _ = parser.add_argument("--version", action="version", version=f"tiller {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _ = commands.add_parser("lsp", help="serve an editor over standard input and output")
    name = next((word for word in arguments if not word.startswith("-")), "")
    if name not in COMMANDS:
        for command, summary in COMMANDS.items():
            _ = commands.add_parser(command, help=summary)
        _ = parser.parse_args(arguments)  # exits on --help, --version and mistakes
        parser.print_help()
        return USAGE
    from tiller_server.cli import command_execution  # noqa: PLC0415 - see above

    command = command_execution.load_command(name)
    command.add_arguments(commands.add_parser(name, help=COMMANDS[name]))
    return command_execution.run_command(command, parser.parse_args(arguments))


def open_closed_streams() -> None:
    """Open the null device in place of closed standard streams, and replace characters that cannot be coded.

    A closed descriptor would otherwise be reused for the next file that is opened, for example a session's.
    """
    for number in (0, 1, 2):
        try:
            _ = os.fstat(number)
        except OSError:
            _ = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdin = sys.stdin or _opened(0, "r")
    sys.stdout = sys.stdout or _opened(1, "w")
    sys.stderr = sys.stderr or _opened(2, "w")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _opened(number: int, mode: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(number, mode, closefd=False), encoding="utf-8")
