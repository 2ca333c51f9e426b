"""`tiller chat`: a conversation in the terminal. A message typed while the model works steers the run."""

import argparse
import sys
from typing import Final

import anyio

from agent_core.kernel.errors import UsageError
from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.session_options import (
    add_allow_option,
    add_session_options,
    read_allow_rules,
)
from tiller_server.process.memory_privacy import forbid_ptrace

EXAMPLE: Final = "example: tiller chat --continue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = f"{EXAMPLE}; /help lists the commands"
    _ = parser.add_argument(
        "prompt",
        nargs="*",
        metavar="PROMPT",
        help="send this prompt first; @FILE attaches a file or picture",
    )
    add_session_options(parser, can_choose=True)
    add_allow_option(parser)


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    forbid_ptrace(environment.variables)

    def work() -> int:
        _check_terminal(environment)
        read_allow_rules(options, environment)
        from tiller_server.cli.chat.conversation import converse  # noqa: PLC0415 - takes long to load

        return anyio.run(converse, options, environment)

    return code_of("chat", work, debug=options.debug)


def _check_terminal(environment: Environment) -> None:
    if not (sys.stdin.isatty() and environment.moves(sys.stdout)):
        message = "tiller chat needs a terminal. For one prompt in a script: tiller run PROMPT"
        raise UsageError(message)
