"""The folders that one client has open, as it tells; stdlib only, for it is needed at once."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.jsonrpc.messages import as_array, as_object

MOST: Final = 1_000
"""More folders than anybody has open."""

_log = logging.getLogger(__name__)


class Folders:
    """Follows `workspaceFolders`. Never raises on a client's params: invalid entries are left out."""

    def __init__(self) -> None:
        self._open: dict[Path, None] = {}

    @property
    def paths(self) -> tuple[Path, ...]:
        """The folders as the client spells them, the first one first."""
        return tuple(self._open)

    @property
    def first(self) -> Path | None:
        """The folder that is meant when none is named; None: none is open."""
        return next(iter(self._open), None)

    def began(self, params: Mapping[str, object]) -> None:
        """Read the folders from `initialize`: `workspaceFolders`, else `rootUri` or `rootPath` of older clients."""
        self._open = dict.fromkeys(_paths(params.get("workspaceFolders")))
        if self._open:
            return
        root, legacy = params.get("rootUri"), params.get("rootPath")
        path = path_of(root) if isinstance(root, str) else None
        if path is None and isinstance(legacy, str) and legacy:
            path = Path(legacy)
        if path is not None:
            self._open[path] = None

    def changed(self, params: Mapping[str, object]) -> bool:
        """Apply `workspace/didChangeWorkspaceFolders`; return whether it changed anything."""
        event = as_object(params.get("event")) or {}
        before = self.paths
        for path in _paths(event.get("removed")):
            _ = self._open.pop(path, None)
        for path in _paths(event.get("added")):
            if len(self._open) < MOST:
                self._open[path] = None
        return self.paths != before


def canonical(folder: Path) -> Path:
    """Return the one name that stands for a folder: links followed, upper and lower case as on the disk. Blocking.

    Raises:
        OSError: It cannot be looked at.
    """
    real = folder.resolve()
    twin = Path(str(real).swapcase())
    try:
        # Only where both names lead to one folder does the spelling matter.
        if twin == real or not twin.samefile(real):
            return real
    except OSError:
        return real
    return _spelt_as_on_disk(real)


def reals(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return what `canonical` says of some folders, without those that cannot be looked at. Blocking."""
    found: list[Path] = []
    for folder in folders:
        try:
            found.append(canonical(folder))
        except (OSError, ValueError, RuntimeError) as error:
            _log.info("A folder was left out: %s", error)
    return tuple(found)


def spelt_as(name: str, names: Iterator[str]) -> str:
    """Return the one of a folder's names that is meant: the same, or the same but for case. Pure."""
    low, alike = name.casefold(), name
    for one in names:
        if one == name:
            return one
        if one.casefold() == low:
            alike = one
    return alike


def _spelt_as_on_disk(path: Path) -> Path:
    spelt = Path(path.anchor)
    for name in path.parts[1:]:
        try:
            spelt /= spelt_as(name, (one.name for one in spelt.iterdir()))
        except OSError:
            spelt /= name
    return spelt


def _paths(folders: object) -> Iterator[Path]:
    for folder in as_array(folders) or ():
        uri = (as_object(folder) or {}).get("uri")
        path = path_of(uri) if isinstance(uri, str) else None
        if path is not None:
            yield path
