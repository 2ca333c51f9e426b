"""`tiller rpc`: a program drives Tiller with the commands of pi's RPC mode, JSON lines over standard input and output."""

import argparse
from typing import Final

from tiller_server.cli.command_exit import code_of
from tiller_server.cli.environment import Environment
from tiller_server.cli.session_options import add_session_options
from tiller_server.process.memory_privacy import forbid_ptrace

EXAMPLE: Final = """example: echo '{"type": "get_state"}' | tiller rpc --no-session"""
THINKING: Final = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    add_session_options(parser)
    add = parser.add_argument
    add("--provider", metavar="ID", help="the provider of --model, where that has no provider")
    add("--thinking", choices=THINKING, help="use this thinking level")
    add(
        "--compat",
        choices=("0.73", "1.5"),
        default="1.5",
        help="send events in the form of this release of pi [1.5]",
    )
    add("--in-process", action="store_true", help="run the agent in this process")
    # Programs that start pi name its mode.
    add("--mode", choices=("rpc",), help=argparse.SUPPRESS)
    add("--no-themes", action="store_true", help=argparse.SUPPRESS)


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    forbid_ptrace(environment.variables)

    def work() -> int:
        from tiller_server.cli.shared_session.rpc_client import serve  # noqa: PLC0415 - takes long to load

        return serve(options, environment)

    return code_of("rpc", work, debug=options.debug)
