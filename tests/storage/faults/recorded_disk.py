"""Plays a plan with one session and writes down every call that changes the disk; run as a process of its own.

It replaces calls of the system in its own process, which no test in pytest's process may do. Arguments: the plan and
the store's folder. Each line on stdout is one call as JSON, or a promise: what must be there from then on.
"""

import base64
import json
import os
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import anyio

from agent_core.kernel import SessionId, SystemClock
from agent_core.storage import SessionLog
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, header, user

CALLS = ("open", "write", "ftruncate", "fsync", "mkdir", "unlink", "link", "rename", "replace")
REAL: Mapping[str, Callable] = {name: getattr(os, name) for name in CALLS}


class RecordedDisk:
    """Stands before the system and keeps what was asked."""

    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []
        self._handles: dict[int, str] = {}
        self._numbers = count(1)

    def install(self) -> None:
        """Watch from now on."""
        for name in CALLS:
            setattr(os, name, getattr(self, name))

    def tell(self, call: str, **more: object) -> None:
        """Keep something."""
        self.told.append({"call": call, **more})

    def open(self, path, flags, *args, **options) -> int:
        fd = REAL["open"](path, flags, *args, **options)
        handle = f"{os.getpid()}.{next(self._numbers)}"
        self._handles[fd] = handle
        made = bool(flags & os.O_CREAT)
        self.tell(
            "open", path=str(path), handle=handle, made=made, emptied=bool(flags & os.O_TRUNC)
        )
        return fd

    def write(self, fd: int, data) -> int:
        written = REAL["write"](fd, data)
        if fd in self._handles:
            content = base64.b64encode(bytes(data)[:written]).decode()
            self.tell("write", handle=self._handles[fd], data=content)
        return written

    def ftruncate(self, fd: int, size: int) -> None:
        REAL["ftruncate"](fd, size)
        self.tell("ftruncate", handle=self._handles[fd], size=size)

    def fsync(self, fd: int) -> None:
        REAL["fsync"](fd)
        self.tell("fsync", handle=self._handles[fd])

    def mkdir(self, path, *args, **options) -> None:
        REAL["mkdir"](path, *args, **options)
        self.tell("mkdir", path=str(path))

    def unlink(self, path, *args, **options) -> None:
        REAL["unlink"](path, *args, **options)
        self.tell("unlink", path=str(path))

    def link(self, source, target, **options) -> None:
        REAL["link"](source, target, **options)
        self.tell("link", path=str(source), target=str(target))

    def replace(self, source, target, **options) -> None:
        REAL["replace"](source, target, **options)
        self.tell("rename", path=str(source), target=str(target))

    rename = replace


class Play:
    """A session that is written while the disk is watched; each message says its number."""

    def __init__(self, disk: RecordedDisk, folder: Path) -> None:
        self.store = JsonlStore(folder, SystemClock())
        self._disk = disk
        self._said = 0
        self._log: SessionLog | None = None
        self._after: str | None = None

    @property
    def log(self) -> SessionLog:
        assert self._log is not None
        return self._log

    async def create(self) -> None:
        self._log = await self.store.create(header())

    async def open(self) -> None:
        """Open the session and go on at its end."""
        opened = await self.store.open(SessionId("s1"))
        self._log = opened.log
        self._said = len(opened.entries)
        self._after = opened.entries[-1].id

    async def say(self, *sizes: int) -> None:
        """Append messages of so many characters, in one batch."""
        first = self._said + 1
        words = [f"{first + place} " + "ü" * size for place, size in enumerate(sizes)]
        made = chain(*map(user, words), after=self._after, first=first)
        await self.log.append(made)
        self._said += len(made)
        self._after = made[-1].id

    async def sync(self) -> None:
        """Sync; from here on everything said has to survive."""
        await self.log.sync()
        self._disk.tell("promise", messages=self._said)

    def expect_nothing(self) -> None:
        """Take back what was promised: somebody else destroyed it."""
        self._disk.tell("promise", messages=0)

    async def close(self) -> None:
        """Close, which syncs."""
        await self.log.close()
        self._disk.tell("promise", messages=self._said)


async def whole_life(play: Play) -> None:
    """A session from birth to close."""
    await play.create()
    await play.say(20, 30)
    await play.say(5)
    await play.sync()
    await play.say(60, 0, 7)
    await play.say(2_500)
    await play.sync()
    await play.say(10)
    await play.close()


async def birth_only(play: Play) -> None:
    """A process that dies before it ever synced."""
    await play.create()
    await play.say(20, 30)
    await play.say(5)


async def second_life(play: Play) -> None:
    """A session that another process left, opened again."""
    await play.open()
    await play.say(40)
    await play.sync()
    await play.say(3, 3)
    await play.sync()


async def deleted(play: Play) -> None:
    """The file is deleted while it is open, and written anew."""
    await play.create()
    await play.say(20)
    await play.sync()
    assert play.log.location is not None
    play.expect_nothing()
    os.unlink(play.log.location)  # noqa: PTH108 - the watched call
    await play.say(30)
    await play.sync()


PLANS: Mapping[str, Callable] = {
    "whole_life": whole_life,
    "birth_only": birth_only,
    "second_life": second_life,
    "deleted": deleted,
}


async def main(plan: str, folder: Path) -> None:
    """Play, then tell."""
    disk = RecordedDisk()
    disk.install()
    await PLANS[plan](Play(disk, folder))
    sys.stdout.write("".join(json.dumps(one) + "\n" for one in disk.told))
    sys.stdout.flush()
    os._exit(0)  # as a process that is killed: nothing is put in order


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]))
