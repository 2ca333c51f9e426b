"""Drives one session through a disk that fails at its n-th call, for every n; run as a process of its own.

It replaces calls of the system in its own process, which no test in pytest's process may do.
"""

import errno
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import anyio

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import SessionNotFound, StorageUnavailable
from agent_core.storage import SessionLog
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import entry, header, user

CALLS = ("open", "write", "read", "lseek", "ftruncate", "fsync", "fstat", "stat")
REAL: Mapping[str, Callable] = {name: getattr(os, name) for name in CALLS}
TRIES = 4


class FaultyDisk:
    """Counts calls and lets one of them fail, or go half way."""

    def __init__(self, *, at: int, fault: str) -> None:
        self.calls = 0
        self._at = at
        self._fault = fault

    def __enter__(self) -> Self:
        for name in CALLS:
            setattr(os, name, self._faulty(name))
        return self

    def __exit__(self, *error: object) -> None:
        for name, call in REAL.items():
            setattr(os, name, call)

    def _faulty(self, name: str) -> Callable:
        def call(*args, **options):
            self.calls += 1
            if self.calls != self._at:
                return REAL[name](*args, **options)
            if self._fault == "short" and name == "write":
                return REAL[name](args[0], bytes(args[1])[: len(args[1]) // 2])
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return call


async def script(folder: Path) -> tuple[list[str], int]:
    """Append, sync, close, open again, append; gives what was acknowledged and how often an error was told."""
    store = JsonlStore(folder, SystemClock())
    log: SessionLog = await store.create(header())
    written: list[str] = []
    told = 0
    for number in range(6):
        parent = written[-1] if written else None
        batch = [
            entry(f"a{number}", user("x" * 50), parent=parent),
            entry(f"b{number}", user("y"), parent=f"a{number}"),
        ]
        for _ in range(TRIES):
            try:
                await log.append(batch)
            except StorageUnavailable:
                told += 1
            else:
                written += [one.id for one in batch]
                break
        try:
            await log.sync()
        except StorageUnavailable:
            told += 1
        if number == 3:
            await log.close()
            log, failed = await reopened(store)
            told += failed
    await log.close()
    return written, told


async def reopened(store: JsonlStore) -> tuple[SessionLog, int]:
    """Open the session, more than once if it fails."""
    for failed in range(TRIES):
        try:
            return (await store.open(SessionId("s1"))).log, failed
        except (StorageUnavailable, SessionNotFound):
            continue
    raise AssertionError("the session cannot be opened any more")


async def ids(folder: Path) -> list[str]:
    """Read what is in the file at the end, on a good disk."""
    opened = await JsonlStore(folder, SystemClock()).open(SessionId("s1"))
    await opened.log.close()
    return [one.id for one in opened.entries]


async def one(*, at: int, fault: str) -> tuple[int, list[str], list[str], int]:
    """Run the script with one fault."""
    with tempfile.TemporaryDirectory() as folder:
        with FaultyDisk(at=at, fault=fault) as disk:
            written, told = await script(Path(folder))
        return disk.calls, written, await ids(Path(folder)), told


async def main() -> None:
    """Print every place at which something was lost or not told."""
    for fault in ("error", "short"):
        calls, expected, _, _ = await one(at=0, fault=fault)
        told = 0
        for at in range(1, calls + 1):
            _, written, found, failed = await one(at=at, fault=fault)
            told += failed
            if not written == found == expected:
                sys.stdout.write(f"{fault} at call {at}: said {written}, found {found}\n")
        sys.stdout.write(f"{fault}: {'enough' if calls > 40 and told > 20 else (calls, told)}\n")


if __name__ == "__main__":
    anyio.run(main)
