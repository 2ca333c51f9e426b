"""Reads what files held from git's objects. Git is started contained, with nothing that could make it start programs."""

from collections.abc import Mapping, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Final

import anyio

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import Process, Processes
from agent_core.workspace.git.object_command import object_command

PATIENCE_S: Final = 10.0
GRACE_S: Final = 0.1
MOST_BYTES: Final = 268_435_456


async def objects_of(
    root: Path,
    names: Sequence[bytes],
    *,
    roots: Sequence[Path],
    processes: Processes,
    env: Mapping[str, str],
) -> Mapping[bytes, bytes]:
    """Return objects by name; those that cannot be read are left out.

    Args:
        root: The folder of the repository.
        names: Hashes of blobs.
        roots: The folders of the workspace; no program of these is started.
        processes: Starts git, contained where that is possible.
        env: The environment of the user.
    """
    command = await object_command(root, "cat-file", "--batch", env=env, roots=roots)
    if command is None:
        return {}
    found: dict[bytes, bytes] = {}
    asked = b"".join(name.hex().encode() + b"\n" for name in names)
    try:
        with anyio.move_on_after(PATIENCE_S):
            process = await processes.start(command.argv, cwd=root, env=command.env, stdin=asked)
            try:
                found = _read(await _output(process), names)
            finally:
                with anyio.move_on_after(1.0, shield=True):
                    _ = await process.end(grace_s=GRACE_S)
    except WorkspaceError:
        return {}  # no git here
    return found


async def _output(process: Process) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while data := await process.read():
        pieces.append(data)
        size += len(data)
        if size > MOST_BYTES:
            break
    return b"".join(pieces)


def _read(output: bytes, names: Sequence[bytes]) -> dict[bytes, bytes]:
    """Read what `cat-file --batch` wrote: a line of name, kind and size, the object, and a newline, for each."""
    found: dict[bytes, bytes] = {}
    at = 0
    for name in names:
        end = output.find(b"\n", at)
        if end < 0:
            break
        header = output[at:end].split()
        at = end + 1
        if len(header) != 3 or header[0] != name.hex().encode():  # noqa: PLR2004 - name, kind, size
            # `… missing`, or what stderr said; the next line may be right again.
            continue
        size = int(header[2])
        data = output[at : at + size]
        at += size + 1
        # Whatever else was written in between, nothing is taken for an object that it is not.
        if header[1] == b"blob" and _name_of(data) == name:
            found[name] = data
    return found


def _name_of(data: bytes) -> bytes:
    return sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).digest()
