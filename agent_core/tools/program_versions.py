"""Versions of the programs that tools start by themselves: programs behave differently from version to version."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio import to_thread

from agent_core.kernel.errors import WorkspaceError
from agent_core.workspace import Processes

Version: TypeAlias = tuple[int, ...]
_Stamp: TypeAlias = tuple[int, int, int]

ANSWER_S: Final = 5.0
END_S: Final = 1.0
_VERSION = re.compile(r"\d+(?:\.\d+)+")


class ProgramVersions:
    """Versions by program. Each is asked for once, and again when its file is another."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[_Stamp | None, Version | None]] = {}

    async def of(
        self, program: str, *, processes: Processes, cwd: Path, env: Mapping[str, str]
    ) -> Version | None:
        """Return the version that a program reports with `--version`; None: it reports none in time."""
        stamp = await to_thread.run_sync(_stamp, program)
        cached = self._cache.get(program)
        if cached is None or cached[0] != stamp:
            version = await _ask(program, processes=processes, cwd=cwd, env=env)
            cached = self._cache[program] = (stamp, version)
        return cached[1]


def version_in(text: str) -> Version | None:
    """Return the first version in a text, as numbers."""
    found = _VERSION.search(text)
    return None if found is None else tuple(int(part) for part in found[0].split("."))


async def _ask(
    program: str, *, processes: Processes, cwd: Path, env: Mapping[str, str]
) -> Version | None:
    said = b""
    try:
        process = await processes.start((program, "--version"), cwd=cwd, env=env)
    except WorkspaceError:
        return None
    try:
        with anyio.move_on_after(ANSWER_S):
            while data := await process.read():
                said += data
    finally:
        with anyio.move_on_after(END_S, shield=True):
            _ = await process.end(grace_s=0)
    return version_in(said.decode("utf-8", "replace"))


def _stamp(program: str) -> _Stamp | None:
    try:
        found = os.stat(program)  # noqa: PTH116 - a path as it is started
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
