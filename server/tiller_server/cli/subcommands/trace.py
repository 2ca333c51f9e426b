"""`tiller trace`: keeps what an editor and a server say to each other, and says it again to another server."""

import argparse
import asyncio
import shlex
import sys
from pathlib import Path
from typing import Final

from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, FAILED, USAGE, complain
from tiller_server.cli.trace.file import TraceInvalid, TraceMessage, read_trace
from tiller_server.cli.trace.recorder import record
from tiller_server.cli.trace.replay import ReplayResult, replay

EXAMPLE: Final = (
    "examples: let the editor start «tiller trace record bug.trace -- tiller lsp» in the place of «tiller lsp» · "
    "tiller trace replay bug.trace"
)
CLI: Final = (sys.executable, "-P", "-m", "tiller_server.cli.entry")
RECORDED: Final = (*CLI, "lsp")
REPLAYED: Final = (*CLI, "lsp", "--in-process")
NOTE: Final = (
    "A trace holds the texts of documents and prompts; keys and tokens are taken out as far as they are known. Look "
    "through it before you give it away."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = f"{__doc__} {NOTE}"
    parser.epilog = EXAMPLE
    _ = parser.add_argument("action", choices=("record", "replay"), help="what to do")
    _ = parser.add_argument(
        "file", metavar="FILE", type=Path, help="the trace, one JSON line per message"
    )
    _ = parser.add_argument(
        "--prompts",
        action="store_true",
        help="replay: also send prompts and commands; they ask the model anew",
    )
    _ = parser.add_argument(
        "--real-time", action="store_true", help="replay: as slowly as it was recorded"
    )
    _ = parser.add_argument(
        "server",
        nargs=argparse.REMAINDER,
        help="-- and the server to start [tiller lsp; replay: --in-process]",
    )


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code: of the server, or 1 when a replay was answered otherwise."""
    given: list[str] = options.server
    server = tuple(given[1:] if given[:1] == ["--"] else given)
    try:
        if options.action == "record":
            return _record(options.file, server or RECORDED, environment)
        return _replay(options, server or REPLAYED, environment)
    except (OSError, TraceInvalid) as error:
        complain("trace", str(error))
        return USAGE


def _record(file: Path, server: tuple[str, ...], environment: Environment) -> int:
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    return asyncio.run(record(file, server, env=environment.variables, redactor=redactor))


def _replay(options: argparse.Namespace, server: tuple[str, ...], environment: Environment) -> int:
    trace = read_trace(options.file)
    replayed = asyncio.run(
        replay(
            trace,
            server,
            env=environment.variables,
            prompts="sent" if options.prompts else "leftOut",
            pace="real" if options.real_time else "fast",
        )
    )
    _show(trace, replayed, server)
    return FAILED if replayed.differences else DONE


def _show(trace: tuple[TraceMessage, ...], replayed: ReplayResult, server: tuple[str, ...]) -> None:
    for line in replayed.differences:
        print(line)  # noqa: T201 - what the command is for
    report = f"{replayed.compared} answers compared, {len(replayed.differences)} differences"
    if replayed.left_out:
        report += f", {replayed.left_out} prompts and commands left out (--prompts sends them)"
    print(f"{report}; {len(trace)} messages in the trace; server: {shlex.join(server)}")  # noqa: T201 - see above
