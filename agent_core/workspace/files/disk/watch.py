"""Watches a file, or what is directly in a folder, on disk."""

import errno
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from typing_extensions import override

from agent_core.kernel.errors import AccessRefused, WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace.files.disk.change_buffer import PathChangeBuffer
from agent_core.workspace.files.disk.errors import workspace_error
from agent_core.workspace.files.disk.folders import folder_of
from agent_core.workspace.files.disk.gate.folder_gate import FolderGate

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

LOOK_AGAIN_S = 1.0
"""Interval of the check that the watched folder still is the one of that name: no event reports a move."""
STOP_S = 5.0


@asynccontextmanager
async def watching(
    path: Path, *, root: Path, is_folder: bool, gate: FolderGate
) -> AsyncGenerator["DiskChanges"]:
    """Watch a path while the context is entered.

    Args:
        path: Real, the root or below it.
        root: Real.
        is_folder: Whether the path is a folder; else it is a name in one.
        gate: Opens the folders.

    Raises:
        WorkspaceError: There is no room for another watch, or its folder cannot be opened.
    """
    folder = path if is_folder or path == root else path.parent
    changes = DiskChanges(path, folder=folder, root=root, gate=gate)
    try:
        try:
            await to_thread.run_sync(changes.arm)
        except OSError as error:
            raise workspace_error(error, path) from error
        yield changes
    finally:
        with anyio.move_on_after(STOP_S, shield=True):
            await to_thread.run_sync(changes.disarm)


class _Armed(Value, frozen=True, kw_only=True):
    observer: "BaseObserver"
    identity: tuple[int, int]
    """Device and number of the folder that is watched."""


class DiskChanges:
    """Changes of a watched path. Its folder is watched, so a rename of another file over it is seen too."""

    def __init__(self, path: Path, *, folder: Path, root: Path, gate: FolderGate) -> None:
        self._path = path
        self._folder = folder
        self._root = root
        self._gate = gate
        self._news = PathChangeBuffer(path)
        self._armed: _Armed | None = None

    async def next(self) -> frozenset[Path]:
        """Wait for changes, and give the paths; the watched one when its folder went away or came back."""
        while True:
            paths: frozenset[Path] = frozenset()
            with anyio.move_on_after(LOOK_AGAIN_S):
                paths = await self._news.next()
            if await to_thread.run_sync(self._follow):
                paths |= {self._path}
            if paths:
                return paths

    def arm(self) -> None:
        """Begin to watch the folder as it is now. Blocking."""
        with folder_of(self._folder, root=self._root, gate=self._gate) as opened:
            self._armed = _Armed(
                observer=_observer(opened, self._folder, self._take), identity=_identity(opened)
            )

    def disarm(self) -> None:
        """Stop watching; idempotent. Blocking."""
        if self._armed is not None:
            _stop(self._armed.observer)
            self._armed = None

    def _follow(self) -> bool:
        """Watch another folder that has taken the name; tell whether the old one is gone."""
        now = self._identity_now()
        before = None if self._armed is None else self._armed.identity
        if now == before:
            return False
        self.disarm()
        if now is not None:
            try:
                self.arm()
            except (OSError, WorkspaceError):
                # It may come to be possible; until then it is as if the folder were not there.
                return before is not None
        return True

    def _identity_now(self) -> tuple[int, int] | None:
        try:
            with folder_of(self._folder, root=self._root, gate=self._gate) as opened:
                return _identity(opened)
        except (OSError, WorkspaceError):
            return None

    def _take(self, name: str) -> None:
        """Publish a change of a name in the folder, if the watch covers it; empty: the folder itself changed."""
        if not name:
            self._news.put(self._path)
        elif self._path == self._folder or name == self._path.name:
            self._news.put(self._folder / name)


def _identity(opened: int) -> tuple[int, int]:
    found = os.fstat(opened)
    return found.st_dev, found.st_ino


def _observer(opened: int, folder: Path, take: Callable[[str], None]) -> "BaseObserver":
    """Start to watch an open folder; `take` is called in a thread."""
    # Heavy, with threads of their own, and seldom needed.
    from watchdog import events  # noqa: PLC0415 - see above
    from watchdog.observers import Observer  # noqa: PLC0415 - see above

    # The folder that was opened, whatever its name means by now.
    watched = f"/proc/self/fd/{opened}" if sys.platform == "linux" else str(folder)

    class Handler(events.FileSystemEventHandler):
        @override
        def dispatch(self, event: "FileSystemEvent") -> None:
            for one in (event.src_path, event.dest_path):
                if place := os.fsdecode(one):
                    take("" if place == watched else Path(place).name)

    changes: list[type[FileSystemEvent]] = [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileAttribEvent,
        events.FileClosedEvent,
        events.FileDeletedEvent,
        events.FileMovedEvent,
        events.DirCreatedEvent,
        events.DirDeletedEvent,
        events.DirMovedEvent,
    ]
    try:
        observer = Observer()
    except OSError as error:
        raise _no_room(folder, error) from error
    try:
        observer.start()
        _ = observer.schedule(
            Handler(), watched, event_filter=changes, follow_symlink=sys.platform == "linux"
        )
    except BaseException as error:
        _stop(observer)
        if isinstance(
            error, OSError | RuntimeError
        ):  # the latter when there is no room for a thread
            raise _no_room(folder, error) from error
        raise
    return observer


def _stop(observer: "BaseObserver") -> None:
    observer.stop()
    if observer.is_alive():
        observer.join()


def _no_room(folder: Path, error: OSError | RuntimeError) -> AccessRefused:
    match error:
        case OSError(errno=errno.ENOSPC):
            advice = "The limit of watches is reached (ENOSPC): close programs that watch files, or raise fs.inotify.max_user_watches."
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            advice = "The limit of watchers or open files is reached (EMFILE): close programs, or raise fs.inotify.max_user_instances."
        case _:
            advice = f"The system says: {error}."
    return AccessRefused(f"{folder} cannot be watched. {advice}")
