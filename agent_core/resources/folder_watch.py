"""Watcher of the user's own folders: reports changes once, after a quiet period."""

import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio import from_thread, to_thread
from anyio.lowlevel import current_token
from msgspec import Struct
from typing_extensions import override

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver

QUIET_S: Final = 0.2
"""An editor writes a file in several steps; for so long nothing more must happen."""


class FolderChanges:
    """Paths that changed in watched folders since the last call of `next`."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._lock = threading.Lock()
        self._something = anyio.Event()
        self._token = current_token()

    async def next(self, *, quiet_s: float = QUIET_S) -> frozenset[Path]:
        """Wait until something has changed and it has been quiet since; gives the paths."""
        await self._something.wait()
        while True:
            self._something = anyio.Event()
            with anyio.move_on_after(quiet_s):
                await self._something.wait()
                continue
            with self._lock:
                paths, self._paths = frozenset(self._paths), set()
            return paths

    def put(self, path: Path) -> None:
        """Record a changed path and wake the waiting task. Called in any thread."""
        with self._lock:
            self._paths.add(path)
        try:
            from_thread.run_sync(self._tell, token=self._token)
        except RuntimeError:
            # The loop is gone, and whoever watched with it.
            return

    def _tell(self) -> None:
        self._something.set()


class FolderWatches:
    """Watches folders for the sessions of a process: each folder once, for the system has few watches to give."""

    def __init__(self) -> None:
        self._watched: dict[Path, _Watched] = {}
        self._lock = threading.Lock()

    @asynccontextmanager
    async def watch(self, folders: Collection[Path]) -> AsyncGenerator[FolderChanges]:
        """Watch what is directly in folders while the context is entered; those that are not there are left out.

        Raises:
            OSError: The system has no room for another watch.
        """
        news = FolderChanges()
        try:
            await to_thread.run_sync(self._join, frozenset(folders), news)
            yield news
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._leave, news)

    def _join(self, folders: Collection[Path], news: FolderChanges) -> None:
        with self._lock:
            for folder in folders:
                watched = self._watched.get(folder)
                if watched is None:
                    observer = _observer(folder, partial(self._tell, folder))
                    watched = self._watched[folder] = _Watched(observer=observer)
                watched.readers.append(news)

    def _leave(self, news: FolderChanges) -> None:
        ended: list[BaseObserver] = []
        with self._lock:
            for folder, watched in tuple(self._watched.items()):
                watched.readers = [one for one in watched.readers if one is not news]
                if not watched.readers:
                    ended.append(self._watched.pop(folder).observer)
        # Not with the lock: its thread may be about to tell something.
        for observer in ended:
            _stop(observer)

    def _tell(self, folder: Path, path: Path) -> None:
        with self._lock:
            watched = self._watched.get(folder)
            readers = () if watched is None else tuple(watched.readers)
        for news in readers:
            news.put(path)


class _Watched(Struct, kw_only=True):
    """One folder, and who wants to hear of it."""

    observer: "BaseObserver"
    readers: list[FolderChanges] = msgspec.field(default_factory=list[FolderChanges])


def _observer(folder: Path, take: Callable[[Path], None]) -> "BaseObserver":
    # Heavy, with threads of its own, and many sessions watch nothing.
    from watchdog import events  # noqa: PLC0415 - see above
    from watchdog.observers import Observer  # noqa: PLC0415 - see above

    class Handler(events.FileSystemEventHandler):
        @override
        def dispatch(self, event: "FileSystemEvent") -> None:
            for one in (event.src_path, event.dest_path):
                if place := os.fsdecode(one):
                    take(Path(place))

    changes: list[type[FileSystemEvent]] = [
        events.FileCreatedEvent,
        events.FileModifiedEvent,
        events.FileClosedEvent,
        events.FileDeletedEvent,
        events.FileMovedEvent,
        events.DirCreatedEvent,
        events.DirDeletedEvent,
        events.DirMovedEvent,
    ]
    observer = Observer()
    try:
        observer.start()
        if folder.is_dir():
            _ = observer.schedule(Handler(), str(folder), event_filter=changes)
    except BaseException:
        _stop(observer)
        raise
    return observer


def _stop(observer: "BaseObserver") -> None:
    observer.stop()
    if observer.is_alive():
        observer.join()
