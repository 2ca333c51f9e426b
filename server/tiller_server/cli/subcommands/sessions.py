"""`tiller sessions`: the stored conversations, to be listed, read, searched, copied out and in, and removed."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError, UsageError, WorkspaceMissing
from agent_core.kernel.json import encode
from agent_core.resources.paths import AppPaths, app_paths
from tiller_server.cli.environment import CommandParsers, Environment
from tiller_server.cli.exit_codes import code_of_error, complain
from tiller_server.cli.stored_sessions import (
    session_diff,
    session_files,
    session_list,
    session_tree,
    transcript_view,
)
from tiller_server.cli.terminal.stdio import speak_json

EXAMPLE: Final = "example: tiller sessions list --all"
FEW: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    verbs: CommandParsers = parser.add_subparsers(
        dest="verb", metavar="list|show|tree|diff|search|export|import|rm"
    )
    listing = verbs.add_parser("list", help="the sessions of this folder", epilog=EXAMPLE)
    for one in (parser, listing):
        _add_choice(one)
    parser.set_defaults(json=False, all=False, limit=FEW, workspace=".")
    _add_verbs(verbs)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    # Without defaults of their own, verbs keep what was said before them: `tiller sessions --json list`.
    add, unsaid = parser.add_argument, argparse.SUPPRESS
    add("--json", action="store_true", default=unsaid, help="as JSON")
    add("--all", action="store_true", default=unsaid, help="of all folders")
    add("--limit", type=int, default=unsaid, metavar="N", help=f"how many at most [{FEW}]")
    add("--workspace", default=unsaid, metavar="DIR", help="of this folder [.]")


def _add_verbs(verbs: CommandParsers) -> None:
    show = verbs.add_parser(
        "show", help="print a conversation", epilog="example: tiller sessions show 6af3bb | less"
    )
    tree = verbs.add_parser(
        "tree",
        help="draw the branches of a session",
        epilog="example: tiller sessions tree 6af3bb",
    )
    for one in (show, tree):
        one.add_argument(
            "session", metavar="ID", help="the id or number of a session as it is listed"
        )
        unsaid = argparse.SUPPRESS
        one.add_argument("--json", action="store_true", default=unsaid, help="as JSON")
    _add_diff(verbs)
    search = verbs.add_parser(
        "search",
        help="search the text of the stored sessions",
        epilog="example: tiller sessions search --all parser '\"unexpected end\"'",
    )
    search.add_argument(
        "query", nargs="+", metavar="WORD", help='all must be there; "…" holds words together'
    )
    _add_choice(search)
    export = verbs.add_parser(
        "export",
        help="write a session as a document",
        epilog="example: tiller sessions export 6af3bb --output talk.html",
    )
    export.add_argument(
        "session", metavar="ID", help="the id or number of a session as it is listed"
    )
    export.add_argument(
        "--format", choices=("jsonl", "md", "html"), help="[as FILE's ending says, else md]"
    )
    export.add_argument("--output", metavar="FILE", help="a new file; else standard output")
    taking = verbs.add_parser(
        "import",
        help="copy a session file into this folder's sessions",
        epilog="example: tiller sessions import talk.jsonl",
    )
    taking.add_argument("file", metavar="FILE", help="a session file, of this program or another")
    taking.add_argument(
        "--workspace", default=argparse.SUPPRESS, metavar="DIR", help="for this folder [.]"
    )
    removing = verbs.add_parser(
        "rm", help="remove sessions for good", epilog="example: tiller sessions rm 6af3bb"
    )
    removing.add_argument(
        "sessions", nargs="+", metavar="ID", help="ids or numbers as they are listed"
    )
    removing.add_argument("--yes", action="store_true", help="do not ask")


def _add_diff(verbs: CommandParsers) -> None:
    diff = verbs.add_parser(
        "diff",
        help="show what a session changed",
        epilog="example: tiller sessions diff 6af3bb --patch | git apply",
    )
    diff.add_argument("session", metavar="ID", help="the id or number of a session as it is listed")
    diff.add_argument("--patch", action="store_true", help="byte for byte, for git apply")
    diff.add_argument("--output", metavar="FILE", help="a new file, byte for byte")


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    try:
        return anyio.run(_run, options, environment, app_paths(environment.variables))
    except TillerError as error:
        if options.json:
            speak_json()
            body = {"type": "error", "error": {"kind": error.kind, "message": str(error)}}
            _ = sys.stdout.write(encode(body).decode() + "\n")
        complain("sessions", str(error))
        return code_of_error(error)


async def _run(options: argparse.Namespace, environment: Environment, paths: AppPaths) -> int:
    if options.limit < 1:
        message = f"--limit is {options.limit}: ask for one session at least"
        raise UsageError(message)
    async with open_library(paths, clock=SystemClock()) as library:
        await _find_numbers(options, library)
        code = await _command(options, environment, library)
        if library.problem is not None:
            complain("sessions", library.problem)
        return code


async def _find_numbers(options: argparse.Namespace, library: SessionLibrary) -> None:
    """Replace the numbers of the list by the ids of its sessions."""
    folder = _folder(options.workspace)
    if hasattr(options, "session"):
        options.session = await session_list.numbered(library, options.session, folder)
    if hasattr(options, "sessions"):
        options.sessions = [
            await session_list.numbered(library, one, folder) for one in options.sessions
        ]


async def _command(
    options: argparse.Namespace, environment: Environment, library: SessionLibrary
) -> int:
    colour = environment.colour(sys.stdout)
    match options.verb:
        case "show":
            return await transcript_view.show(library, options, colour=colour)
        case "tree":
            return await session_tree.tree(library, options, colour=colour)
        case "diff":
            return await session_diff.diff(library, options, colour=colour)
        case "search":
            return await session_list.search(library, options, _cwd(options), colour=colour)
        case "export" | "import" | "rm":
            return await _move(options, environment.variables, library)
        case _:
            return await session_list.listing(library, options, _cwd(options), colour=colour)


async def _move(
    options: argparse.Namespace, env: Mapping[str, str], library: SessionLibrary
) -> int:
    match options.verb:
        case "export":
            return await session_files.export(library, options, env)
        case "import":
            return await session_files.take(library, options, _folder(options.workspace))
        case _:
            return await session_files.remove(library, options)


def _cwd(options: argparse.Namespace) -> str | None:
    return None if options.all else _folder(options.workspace)


def _folder(name: str) -> str:
    """Return the folder as sessions name it: absolute and real."""
    try:
        found = Path(name).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        message = f"the folder {name!r} cannot be found: {error}"
        raise WorkspaceMissing(message) from error
    # Sessions of a folder that is gone can still be looked at.
    return str(found)
