"""Runs ripgrep in a folder of the workspace, with what every search wants of it."""

import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import anyio

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.tools.builtin.search.globs import EXCLUDE, IGNORE_FILES, ignore_text
from agent_core.tools.builtin.search.tree_walk import SearchedFolder
from agent_core.tools.port import ToolContext, Version
from agent_core.workspace import Process
from agent_core.workspace.permissions.policy.commands.programs import find_outside_program

ANY_DEPTH = "**"


async def is_misread(place: SearchedFolder) -> bool:
    """Return whether a line of an ignore file above the folder is about a path below it.

    For such a line ripgrep (seen in 14.1) leaves out the folders between the searched one and a file: with the line
    `src/build` it takes `src/x/build` for ignored in a search of `src`, and with `src/x/build` it does not.
    Lines that are about names alone are read rightly.
    """
    steps = place.folder.relative_to(place.top).parts
    for depth in range(len(steps)):
        above = place.top.joinpath(*steps[:depth])
        for name in (*IGNORE_FILES, EXCLUDE):
            text = await ignore_text(place.files, above / name)
            if any(_reaches(line, steps[depth:]) for line in text.splitlines()):
                return True
    return False


def _reaches(line: str, steps: tuple[str, ...]) -> bool:
    """Return whether a line may be about something below a folder, given by its steps from the line's own folder."""
    pattern_text = line.strip().removeprefix("!")
    if pattern_text.startswith("#") or "/" not in pattern_text.removeprefix(f"{ANY_DEPTH}/")[:-1]:
        return False
    pattern = pattern_text.strip("/").split("/")
    for wanted, step in zip(pattern, steps, strict=False):
        if wanted == ANY_DEPTH:
            return True
        if "\\" not in wanted and not fnmatchcase(step, wanted):
            return False
    return len(pattern) > len(steps)


PROGRAM = "rg"
OLDEST: Version = (14, 1)
"""Older ones answer otherwise: 13.0 finds nothing for a glob that is not valid, and reads ignore files outside of a
repository in another way."""
COMMON = (
    "--no-config",
    "--color=never",
    "--hidden",
    "--no-messages",
    "--no-ignore-messages",
    "--glob=!.git",
)
"""Files whose names begin with a dot are searched.

They come last, as the last of several globs prevails.
"""
HERE = "./"
"""The folder in which it runs."""
INPUT = "-"
END_GRACE_S = 0.05
END_BOUND_S = 6.0
FAILED = 2
SAID_CHARS = 2_000


class RipgrepRefused(Exception):
    """It did not search; the text is what it said."""


class RipgrepUnusable(Exception):
    """It is not there, too old, or cannot be used."""


class RipgrepRun:
    """One run of ripgrep."""

    def __init__(self, process: Process) -> None:
        """Wrap a running process; the caller ends it."""
        self._process = process

    async def read(self) -> bytes:
        """Wait for output; empty when there is no more."""
        return await self._process.read()

    async def check(self, said: str) -> None:
        """Wait for the end, after all output was read, and see that it did what it should.

        Args:
            said: Words among its output that are no findings.

        Raises:
            RipgrepRefused: It says what is wrong with the arguments.
            RipgrepUnusable: It could not run.
        """
        end = await self._process.wait()
        if end.exit_code is None or end.exit_code > FAILED:
            raise RipgrepUnusable(said)
        # It also ends with 2 when some file could not be read, and says nothing then.
        if end.exit_code == FAILED and said.strip():
            raise RipgrepRefused(said.strip()[:SAID_CHARS])


@asynccontextmanager
async def ripgrep(
    flags: Sequence[str],
    context: ToolContext,
    tree: SearchedFolder,
    *,
    target: str = HERE,
    stdin: bytes = b"",
) -> AsyncGenerator[RipgrepRun]:
    """Run ripgrep in a folder while the context is entered. On exit no process of it is left, also on cancellation.

    Args:
        flags: Flags of the operation.
        context: Context of the call.
        tree: The folder where it runs. Outside a repository .gitignore files apply too, but no
            repository ends their scope.
        target: Search target: `HERE`, a path that begins with it, or `INPUT`.
        stdin: Its input.

    Raises:
        RipgrepUnusable: ripgrep is missing or unusable, or would list wrong files.
    """
    if target == HERE and await is_misread(tree):
        raise RipgrepUnusable(PROGRAM)
    # Always a target: without one it decides for itself whether to read its input.
    outside = () if tree.in_repository else ("--no-require-git",)
    arguments = (*flags, *outside, *COMMON, "--", target)
    process = await _start(arguments, context, folder=tree.folder, stdin=stdin)
    try:
        yield RipgrepRun(process)
    finally:
        with anyio.move_on_after(END_BOUND_S, shield=True):
            _ = await process.end(grace_s=END_GRACE_S)


async def _start(
    arguments: Sequence[str], context: ToolContext, *, folder: Path, stdin: bytes
) -> Process:
    workspace = context.workspace
    programs: tuple[str, ...] = (PROGRAM,)
    if workspace.address is None:
        programs = await run_in_thread(ripgrep_programs, workspace.env, workspace.roots)
    for program in programs:
        version = await context.versions.of(
            program, processes=context.processes, cwd=folder, env=workspace.env
        )
        if version is not None and version >= OLDEST:
            return await _started((program, *arguments), context, folder=folder, stdin=stdin)
    raise RipgrepUnusable(PROGRAM)


def ripgrep_programs(env: Mapping[str, str], roots: Sequence[Path]) -> tuple[str, ...]:
    """Return every ripgrep that no workspace can exchange, in the order of the PATH, then what an extra installed.

    Args:
        env: Its PATH is searched.
        roots: The folders of the workspace.
    """
    # An installed extra puts it beside our Python.
    folders = [*env.get("PATH", os.defpath).split(os.pathsep), str(Path(sys.executable).parent)]
    programs: list[str] = []
    while folders:
        program = find_outside_program(PROGRAM, env_path=os.pathsep.join(folders), roots=roots)
        if program is None:
            break
        programs.append(program)
        at = [os.path.normpath(os.path.join(one, PROGRAM)) for one in folders].index(program)  # noqa: PTH118 - words of a PATH
        folders = folders[at + 1 :]
    return tuple(dict.fromkeys(programs))


async def _started(
    argv: tuple[str, ...], context: ToolContext, *, folder: Path, stdin: bytes
) -> Process:
    try:
        return await context.processes.start(
            argv, cwd=folder, env=context.workspace.env, stdin=stdin
        )
    except WorkspaceError as error:
        raise RipgrepUnusable(str(error)) from error
