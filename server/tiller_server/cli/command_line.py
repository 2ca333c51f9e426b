"""Parses the command line of `tiller` and starts the named command.

`--help`, `--version` and mistakes before a command need no command: up to there only argparse is imported.
"""

import argparse
import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from tiller_server import VERSION

DESCRIPTION = "Tiller: a coding agent for your editor (over LSP), your terminal and your scripts."
EPILOG = """\
tiller                        start a conversation in this folder
tiller "Fix the tests"        start one with this prompt
tiller -c                     continue the latest session; -r chooses one
tiller -p "Fix the tests"     answer one prompt and print it, as tiller run does
tiller COMMAND --help         show the options of a command
"""
USAGE = 2
COMMANDS: Mapping[str, str] = {
    "chat": "start a conversation in the terminal",
    "run": "answer one prompt and print the answer",
    "rpc": "serve a program that speaks pi's RPC protocol",
    "review": "review the changes between two commits",
    "eval": "run an agent on tasks with known solutions",
    "web": "serve your sessions to the browser on this machine",
    "lark": "serve your sessions to Feishu or Lark",
    "slack": "serve your sessions to Slack",
    "fleet": "run jobs for many repositories on one machine or many",
    "share": "share a session as a page behind a link that expires",
    "sessions": "list, search, show and export sessions",
    "memory": "list, add and remove what Tiller remembers",
    "costs": "show what model calls cost",
    "worktree": "list, compare, merge and remove worktrees",
    "auth": "sign in to model providers, and out",
    "models": "list models, choose the default, add a server",
    "config": "show and change settings",
    "policy": "list, add and remove permission rules",
    "mcp": "list, test, add, remove and switch MCP servers",
    "ext": "write, check, pack and install extension packages",
    "trust": "list, add and remove trusted folders",
    "doctor": "check this machine and suggest repairs",
    "daemon": "start, stop and inspect the background process",
    "trace": "record or replay an editor connection",
    "demo": "watch the agent repair a small project",
    "completion": "print a completion script for your shell",
}
"""Summaries of the commands. Each is the module of `subcommands` that has its name; it is imported when it is named."""
SERVERS: Mapping[str, str] = {
    "lsp": "serve an editor over standard input and output",
    "acp": "serve a client of the Agent Client Protocol, in the same way",
}
"""Commands that `cli/entry.py` starts by itself."""
PRINT = ("-p", "--print")


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors show the usage of the command that they belong to, and name the nearest option or word."""

    # `override` would import `typing`, which takes as long as all of this.
    def parse_known_args(  # pyright: ignore[reportImplicitOverride, reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments; one that is unknown is an error."""
        options, unknown = super().parse_known_args(args, namespace or argparse.Namespace())
        if unknown:
            first = unknown[0]
            word = first.partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {first!r}")
            self.error(f"unknown option {word}{did_you_mean(word, self._option_string_actions)}")
        return options, unknown

    def _check_value(  # pyright: ignore[reportImplicitOverride]
        self, action: argparse.Action, value: object
    ) -> None:
        """Raise an error that names the nearest choice."""
        choices = action.choices
        if choices is None or value in choices:
            return
        names = [str(one) for one in choices]
        hint = did_you_mean(str(value), names)
        raise argparse.ArgumentError(
            action, f"unknown value {str(value)!r}{hint} (choose from {', '.join(names)})"
        )


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return the end of an error message that names the nearest of the names; empty if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    nearest = get_close_matches(word, [*names], n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def expanded(arguments: Sequence[str], *, is_terminal: bool) -> list[str]:
    """Return a command line that begins with a command: without one, a prompt or options begin a conversation.

    Args:
        arguments: The words after `tiller`.
        is_terminal: A person types and reads; otherwise a prompt is answered as by `tiller run`.
    """
    first = arguments[0] if arguments else ""
    if first == "run" or first not in {*COMMANDS, *SERVERS, "help"}:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        left = [word for at, word in enumerate(arguments) if at >= end or word not in PRINT]
        if len(left) < len(arguments):
            return left if first == "run" else ["run", *left]
    if first == "help":
        return [*arguments[1:2], "--help"]
    if first in COMMANDS or first in {*SERVERS, "-h", "--help", "--version"}:
        return [*arguments]
    if is_terminal:
        return [*arguments] if _is_mistyped(first) else ["chat", *arguments]
    is_prompt = first.startswith("-") or len(first.split()) > 1
    return ["run", *arguments] if is_prompt else [*arguments]


def _is_mistyped(word: str) -> bool:
    """Return whether a word is nearly a command."""
    is_word = len(word.split()) == 1 and not word.startswith("-")
    return is_word and bool(did_you_mean(word, COMMANDS))


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    open_closed_streams()
    parser = CommandParser(
        prog="tiller",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _ = parser.add_argument("--version", action="version", version=f"tiller {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        for command, summary in COMMANDS.items():
            _ = commands.add_parser(command, help=summary)
        for command, summary in SERVERS.items():
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
