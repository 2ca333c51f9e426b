"""Loads and executes the command of a command line, with what everything needs that is not the first look at it."""

import argparse
import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol

from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.threads import gc_paused
from tiller_server.cli.environment import Environment, read_environment
from tiller_server.cli.exit_codes import FAILED, complain
from tiller_server.cli.terminal.stdio import abandon
from tiller_server.process.logs import hide_in_log, log_crashes

PLUGINS: Final = "PYDANTIC_DISABLE_PLUGINS"
"""Read by pydantic; else it looks into every installed package for plugins, which takes as long as importing it."""
ALL: Final = "__all__"


@contextmanager
def loading() -> Generator[None]:
    """Import modules inside of this: no search for garbage, as they all stay, and none for pydantic's plugins.

    The environment is as before afterwards: the programs that a session starts may want their plugins.
    """
    environment = os.environ  # noqa: TID251 - pydantic looks nowhere else
    before = environment.get(PLUGINS)
    environment[PLUGINS] = ALL if before is None else before
    try:
        with gc_paused():
            yield
    finally:
        if before is None:
            del environment[PLUGINS]


class CliCommand(Protocol):
    """A module that is a command."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the description and the arguments of the command."""
        ...

    def main(self, options: argparse.Namespace, environment: Environment) -> int:
        """Run the command and return its exit code."""
        ...


def load_command(name: str) -> CliCommand:
    """Import a command."""
    with loading():
        module: Any = import_module(f"tiller_server.cli.subcommands.{name}")
    return module  # a command is a module; `--help` of each is tested


def run_command(command: CliCommand, options: argparse.Namespace) -> int:
    """Run a command and return its exit code."""
    logging.basicConfig(level="ERROR", format="%(levelname)s %(name)s: %(message)s")
    environment = read_environment()
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    hide_in_log(redactor)
    try:
        code = command.main(options, environment)
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
