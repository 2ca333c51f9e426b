"""Detection of files whose current content is committed in git; committed content needs no review."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.threads import run_in_thread
from agent_core.workspace import Processes
from agent_core.workspace.git.command import GitCommand
from agent_core.workspace.git.object_command import object_command

GIT_S: Final = 5.0
"""How long git may take."""
MOST_BYTES: Final = 4_194_304
"""How much it may say."""
SHA1_CHARS: Final = 40


async def committed(
    files: Mapping[Path, Callable[[], bytes]],
    *,
    root: Path,
    roots: Sequence[Path],
    since_ms: int,
    processes: Processes,
    env: Mapping[str, str],
) -> frozenset[Path]:
    """Return those files that the newest commit has just so; none without git, or when it says nothing in time.

    Args:
        files: Absolute paths, each with what gives its bytes.
        root: The folder of the repository.
        roots: The folders of the workspace; no program of these is started.
        since_ms: An older commit counts for nothing, in Unix milliseconds.
        processes: Starts git, which only reads.
        env: The environment of processes.
    """
    names = {path.relative_to(root).as_posix(): path for path in files if path.is_relative_to(root)}
    if not names:
        return frozenset()

    async def said(*arguments: str) -> bytes:
        command = await object_command(root, *arguments, env=env, roots=roots)
        return b"" if command is None else await _output(command, root, processes)

    with anyio.move_on_after(GIT_S):
        # Not `git log`: the repository's own configuration could let that start programs.
        when = (await said("rev-list", "--timestamp", "-1", "HEAD")).partition(b" ")[0]
        if not when.isdigit() or (int(when) + 1) * 1000 < since_ms:
            return frozenset()
        listed = await said("ls-tree", "-z", "--full-name", "HEAD", "--", *names)
        prefix = await said("rev-parse", "--show-prefix")
        objects = _objects(listed, prefix.removesuffix(b"\n"))
        return await run_in_thread(_alike, files, names, objects)
    return frozenset()


def _objects(listed: bytes, prefix: bytes) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for row in listed.split(b"\0"):
        about, _, name = row.partition(b"\t")
        fields = about.split()
        if len(fields) == 3 and fields[1] == b"blob":  # noqa: PLR2004 - mode, kind, object
            with suppress(UnicodeDecodeError):
                found[name.removeprefix(prefix).decode()] = fields[2].decode("ascii")
    return found


def _alike(
    files: Mapping[Path, Callable[[], bytes]],
    names: Mapping[str, Path],
    objects: Mapping[str, str],
) -> frozenset[Path]:
    return frozenset(
        path
        for name, path in names.items()
        if name in objects and _blob_id(files[path](), objects[name]) == objects[name]
    )


def _blob_id(data: bytes, like: str) -> str:
    made = hashlib.sha1 if len(like) == SHA1_CHARS else hashlib.sha256
    return made(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


async def _output(command: GitCommand, cwd: Path, processes: Processes) -> bytes:
    """Run a program; nothing when it cannot be started, fails or says too much."""
    try:
        process = await processes.start(command.argv, cwd=cwd, env=command.env)
    except WorkspaceError:
        return b""
    said = bytearray()
    try:
        while len(said) <= MOST_BYTES and (chunk := await process.read()):
            said += chunk
        ended = await process.wait() if len(said) <= MOST_BYTES else None
    finally:
        with anyio.CancelScope(shield=True):
            _ = await process.end(grace_s=0)
    return bytes(said) if ended is not None and ended.exit_code == 0 else b""
