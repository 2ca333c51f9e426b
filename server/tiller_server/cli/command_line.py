"""Parses the command line of `tiller` and hands it to the command that was named."""

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from agent_core.kernel.redaction.redactor import Redactor
from tiller_server import VERSION
from tiller_server.cli.environment import CommandParsers, Environment, read_environment
from tiller_server.cli.exit_codes import FAILED, USAGE, complain
from tiller_server.cli.fast_import import loading
from tiller_server.cli.terminal.stdio import abandon, complete
from tiller_server.process.crash_log import log_crashes
from tiller_server.process.redacted_log import hide_in_log

DESCRIPTION = "Tiller: a coding agent that lives in the editor's own protocol."
EPILOG = "tiller COMMAND --help tells more of each. Editors start: tiller lsp"


class CliCommand(Protocol):
    """A module that is a command."""

    def add_parser(self, commands: CommandParsers) -> None:
        """Describe the command."""
        ...

    def main(self, options: argparse.Namespace, environment: Environment) -> int:
        """Run it; gives the exit code."""
        ...


COMMANDS: Final[tuple[str, ...]] = (
    "run",
    "chat",
    "review",
    "demo",
    "sessions",
    "auth",
    "models",
    "config",
    "policy",
    "trust",
    "doctor",
    "daemon",
    "trace",
)
"""Each is the module of this package that has its name; only the one that was asked for is imported."""


def main(arguments: Sequence[str]) -> int:
    """Run a command; gives its exit code."""
    complete()
    parser = argparse.ArgumentParser(prog="tiller", description=DESCRIPTION, epilog=EPILOG)
    _ = parser.add_argument("--version", action="version", version=f"tiller {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _ = commands.add_parser("lsp", help="serve an editor over standard input and output")
    with loading():
        for name in _wanted(arguments):
            _command(name).add_parser(commands)
    options = parser.parse_args(arguments)
    logging.basicConfig(level="ERROR", format="%(levelname)s %(name)s: %(message)s")
    environment = read_environment()
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    hide_in_log(redactor)
    try:
        code = _run(parser, options, environment)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon()  # `tiller config show | head -1`: who closed the pipe has what was wanted
        return FAILED
    except Exception as error:
        if getattr(options, "debug", False):
            log_crashes()  # what is raised holds whatever went wrong, keys too
            raise
        what = f"internal error ({type(error).__name__}: {error}); run it again with --debug to see where"
        complain(str(options.command), redactor.text(what))
        return FAILED
    return code


def _run(
    parser: argparse.ArgumentParser, options: argparse.Namespace, environment: Environment
) -> int:
    if options.command not in COMMANDS:
        parser.print_help()
        return USAGE
    return _command(options.command).main(options, environment)


def _wanted(arguments: Sequence[str]) -> tuple[str, ...]:
    """Name the commands to describe: the one that is asked for, all when none is."""
    return (arguments[0],) if arguments and arguments[0] in COMMANDS else COMMANDS


def _command(name: str) -> CliCommand:
    module: Any = import_module(
        f"tiller_server.cli.subcommands.{name}"
    )  # a command is a module; `--help` of each is tested
    return module
