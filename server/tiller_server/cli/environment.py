"""Environment variables of the command line's process: read here, once."""

import argparse
import os
from collections.abc import Mapping
from typing import Protocol

from agent_core.kernel.values import Value


class CommandParsers(Protocol):
    """Where commands describe themselves: argparse's subparsers."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,  # noqa: A002 - argparse names it so
        description: str | None = None,
        epilog: str | None = None,
    ) -> argparse.ArgumentParser:
        """Add a command."""
        ...


class Terminal(Protocol):
    """Something that may be a terminal."""

    def isatty(self) -> bool:
        """Return whether it is."""
        ...


class Environment(Value, frozen=True):
    """The environment variables of the process."""

    variables: Mapping[str, str]

    def colour(self, stream: Terminal) -> bool:
        """Return whether to use colours: on a terminal, unless NO_COLOR is set to anything."""
        return self.moves(stream) and not self.variables.get("NO_COLOR")

    def moves(self, stream: Terminal) -> bool:
        """Return whether what was shown can be drawn over: on a terminal that is not a dumb one."""
        return stream.isatty() and self.variables.get("TERM") != "dumb"


def read_environment() -> Environment:
    """Read the environment."""
    return Environment(dict(os.environ))  # noqa: TID251 - the one place of the command line
