"""Parses the command line of `tiller` and hands it to the command that was named."""

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from agent_core.kernel.redaction import Redactor
from server import VERSION
from server.cli import (
    auth,
    config,
    daemon,
    demo,
    doctor,
    models,
    policy,
    run,
    sessions,
    trace,
    trust,
)
from server.cli.environment import Commands, Environment, read_environment
from server.cli.exits import FAILED, USAGE, complain
from server.cli.standard import abandon, complete
from server.lsp.crashes import log_crashes
from server.lsp.redacted_log import hide_in_log

DESCRIPTION = "Tiller: a coding agent that lives in the editor's own protocol."
EPILOG = "tiller COMMAND --help tells more of each. Editors start: tiller lsp"


class Command(Protocol):
    """A module that is a command."""

    def add_parser(self, commands: Commands) -> None:
        """Describe the command."""
        ...

    def main(self, options: argparse.Namespace, environment: Environment) -> int:
        """Run it; gives the exit code."""
        ...


COMMANDS: Final[Mapping[str, Command]] = {
    "run": run,
    "demo": demo,
    "sessions": sessions,
    "auth": auth,
    "models": models,
    "config": config,
    "policy": policy,
    "trust": trust,
    "doctor": doctor,
    "daemon": daemon,
    "trace": trace,
}


def main(arguments: Sequence[str]) -> int:
    """Run a command; gives its exit code."""
    complete()
    parser = argparse.ArgumentParser(prog="tiller", description=DESCRIPTION, epilog=EPILOG)
    _ = parser.add_argument("--version", action="version", version=f"tiller {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _ = commands.add_parser("lsp", help="serve an editor over standard input and output")
    for command in COMMANDS.values():
        command.add_parser(commands)
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
    command = COMMANDS.get(options.command)
    if command is None:
        parser.print_help()
        return USAGE
    return command.main(options, environment)
