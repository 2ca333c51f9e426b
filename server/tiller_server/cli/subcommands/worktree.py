"""`tiller worktree`: the worktrees of isolated runs, to be listed, compared, merged and removed."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from agent_core.assembly.workspace import open_worktrees
from agent_core.kernel import JsonObject, SystemClock, rfc3339
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import encode
from agent_core.resources.paths import app_paths
from agent_core.workspace.git.worktrees.service import Worktrees
from agent_core.workspace.git.worktrees.values import WorktreeStatus
from tiller_server.cli.environment import CommandParsers, Environment
from tiller_server.cli.exit_codes import DONE, code_of_error, complain
from tiller_server.cli.stored_sessions.session_diff import show_patch, write_patch
from tiller_server.cli.terminal.stdio import speak_json
from tiller_server.cli.terminal.text import moment, safe

EXAMPLE: Final = "example: tiller worktree diff 6af3bb12"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    parser.set_defaults(json=False, all=False, workspace=".")
    verbs: CommandParsers = parser.add_subparsers(dest="verb", metavar="list|diff|merge|remove")
    listing = verbs.add_parser("list", help="the worktrees of this repository")
    # Without defaults of their own, verbs keep what was said before them.
    for one in (parser, listing):
        add, unsaid = one.add_argument, argparse.SUPPRESS
        add("--json", action="store_true", default=unsaid, help="as JSON")
        add("--all", action="store_true", default=unsaid, help="of all repositories")
        add(
            "-C",
            "--workspace",
            metavar="DIR",
            default=unsaid,
            help="of the repository of this folder [.]",
        )
    diff = verbs.add_parser("diff", help="show what was changed in a worktree", epilog=EXAMPLE)
    merge = verbs.add_parser(
        "merge",
        help="apply the changes to the checkout it was made from; nothing is committed",
        epilog="example: tiller worktree merge 6af3bb12",
    )
    remove = verbs.add_parser(
        "remove",
        help="remove a worktree that holds nothing else",
        epilog="example: tiller worktree remove 6af3bb12",
    )
    for one in (diff, merge, remove):
        _ = one.add_argument("id", metavar="ID", help="the id of a worktree as it is listed")
    _ = diff.add_argument("--patch", action="store_true", help="byte for byte, for git apply")
    _ = remove.add_argument(
        "--force",
        action="store_true",
        help="also with changes and commits that only it has; a ref keeps them",
    )


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; return the exit code."""
    try:
        return anyio.run(_run, options, environment)
    except TillerError as error:
        if options.json:
            speak_json()
            body = {"type": "error", "error": {"kind": error.kind, "message": str(error)}}
            _ = sys.stdout.write(encode(body).decode() + "\n")
        complain("worktree", str(error))
        return code_of_error(error)


async def _run(options: argparse.Namespace, environment: Environment) -> int:
    paths = app_paths(environment.variables)
    worktrees = open_worktrees(paths, env=environment.variables, clock=SystemClock())
    match options.verb:
        case "diff":
            return await _diff(worktrees, options, colour=environment.colour(sys.stdout))
        case "merge":
            return await _merge(worktrees, options.id)
        case "remove":
            return await _remove(worktrees, options.id, force=options.force)
        case _:
            return await _list(worktrees, options)


async def _list(worktrees: Worktrees, options: argparse.Namespace) -> int:
    folder = None if options.all else Path(options.workspace)
    listed = await worktrees.list(folder)
    if options.json:
        speak_json()
        body: JsonObject = {"worktrees": [_as_json(one) for one in listed]}
        return _print([encode(body).decode()])
    if not listed:
        where = "" if options.all else " of this repository; --all shows those of others"
        _ = sys.stderr.write(f"there are no worktrees{where}\n")
    width = max((len(one.worktree.id) for one in listed), default=0)
    lines: list[str] = []
    for one in listed:
        lines.append(f"{one.worktree.id:{width}}  {moment(one.worktree.created_ms)}  {_state(one)}")
        lines.append(f"{'':{width}}  {one.worktree.path}")
    return _print(lines)


def _as_json(status: WorktreeStatus) -> JsonObject:
    worktree = status.worktree
    return {
        "id": worktree.id,
        "path": str(worktree.path),
        "repository": str(worktree.repository),
        "branch": worktree.branch,
        "base": worktree.base,
        "session": worktree.owner,
        "created": rfc3339(worktree.created_ms),
        "state": status.state,
        "active": status.active,
        "changedFiles": status.changed_files,
        "ownCommits": status.own_commits,
        "merged": status.is_merged,
        "problem": status.problem,
    }


def _state(status: WorktreeStatus) -> str:
    if status.problem is not None:
        return status.problem
    parts: list[str] = []
    if status.state == "missing":
        parts.append("its folder is missing")
    if status.active is not None:
        parts.append(f"{status.active} works in it")
    if status.changed_files:
        parts.append(_count(status.changed_files, "file") + " not committed")
    if status.own_commits:
        parts.append(_count(status.own_commits, "commit") + " of its own")
    if status.is_merged:
        parts.append("merged")
    return ", ".join(parts) or "nothing changed"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


async def _diff(worktrees: Worktrees, options: argparse.Namespace, *, colour: bool) -> int:
    patch = await worktrees.diff(options.id)
    if options.patch:
        write_patch(patch)
        return DONE
    if not patch:
        _ = sys.stderr.write(f"nothing was changed in {options.id}\n")
    show_patch(patch, colour=colour)
    return DONE


async def _merge(worktrees: Worktrees, id_: str) -> int:
    merged = await worktrees.merge(id_)
    lines = [f"merged {path!a}" for path in merged.written]
    lines += [f"already the same: {path!a}" for path in merged.unchanged]
    if not lines:
        return _print([f"nothing was changed in {id_}"])
    return _print(
        [*lines, f"nothing was committed; remove the worktree: tiller worktree remove {id_}"]
    )


async def _remove(worktrees: Worktrees, id_: str, *, force: bool) -> int:
    removed = await worktrees.remove(id_, force=force)
    lines = [
        f"removed {id_}; its content is kept in {removed.kept_ref} ({removed.kept_commit[:12]})"
    ]
    if removed.ignored:
        lines.append(f"ignored files and folders that were deleted and not kept: {removed.ignored}")
    if removed.leftover is not None:
        lines.append(f"some files could not be deleted; delete {str(removed.leftover)!r} yourself")
    return _print(lines)


def _print(lines: Sequence[str]) -> int:
    for line in lines:
        _ = sys.stdout.write(safe(line) + "\n")
    return DONE
