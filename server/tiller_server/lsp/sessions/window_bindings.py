"""Which session each window had last, so that one that comes back gets its own again, also after a restart."""

import json
import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from tiller_server.lsp.jsonrpc.messages import as_array

FILE: Final = "windows.json"
MOST: Final = 1_000
"""Most bindings to keep; the least recently used one is dropped first."""
MOST_BYTES: Final = 1024 * 1024
MOST_ID_CHARACTERS: Final = 256
"""A longer `clientId` is remembered for nobody."""

_log = logging.getLogger(__name__)

WindowKey = tuple[str, str]


class Bindings:
    """Sessions by window and folder. A failure to read or write loses a window's session, nothing else."""

    def __init__(self, path: Path) -> None:
        """Begin without reading anything.

        Args:
            path: The file, of this user alone; its folder need not be there yet.
        """
        self._path = path
        self._bound: OrderedDict[WindowKey, str] | None = None
        self._turn = anyio.Lock()
        self._changed = 0
        self._written = 0

    async def get(self, client: str, folder: Path) -> str | None:
        """Return the session that a window had last in a folder."""
        return (await self._all()).get((client, str(folder)))

    async def bind(self, client: str, folder: Path, session: str) -> None:
        """Remember the session of a window; written before this returns, unless the disk fails."""
        if len(client) > MOST_ID_CHARACTERS:
            return
        bound = await self._all()
        key = (client, str(folder))
        if bound.get(key) == session:
            bound.move_to_end(key)
            return
        bound[key] = session
        bound.move_to_end(key)
        while len(bound) > MOST:
            _ = bound.popitem(last=False)
        await self._keep()

    async def forget(self, session: str) -> None:
        """Forget a session that is not there any more, or that its user has closed."""
        bound = await self._all()
        gone = [key for key, one in bound.items() if one == session]
        for key in gone:
            del bound[key]
        if gone:
            await self._keep()

    async def _all(self) -> OrderedDict[WindowKey, str]:
        async with self._turn:
            if self._bound is None:
                self._bound = await anyio.to_thread.run_sync(_read, self._path)
            return self._bound

    async def _keep(self) -> None:
        self._changed += 1
        mine = self._changed
        async with self._turn:
            # Windows that come together are written together.
            if self._written >= mine or self._bound is None:
                return
            self._written = self._changed
            text = json.dumps([[*key, session] for key, session in self._bound.items()])
            await anyio.to_thread.run_sync(_write, self._path, text)


def _read(path: Path) -> OrderedDict[WindowKey, str]:
    found: OrderedDict[WindowKey, str] = OrderedDict()
    try:
        if path.stat().st_size > MOST_BYTES:
            _log.warning("%s is too large and is left out: windows open the latest session.", path)
            return found
        parsed: object = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return found
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be read (%s): windows open the latest session.", path, error)
        return found
    for one in as_array(parsed) or ():
        match one:
            case [str(client), str(folder), str(session)]:
                found[client, folder] = session
            case _:
                continue
    return found


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _replace(path, text.encode())
    except OSError as error:
        _log.warning("%s cannot be written (%s): windows may lose their session.", path, error)


def _replace(path: Path, content: bytes) -> None:
    """Write a whole file that only its user can read."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    remove: Callable[[], None] = Path(name).unlink
    try:
        with os.fdopen(descriptor, "wb") as file:
            _ = file.write(content)
        _ = Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            remove()
        raise
