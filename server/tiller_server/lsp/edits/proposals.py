"""Edits that no editor could take: kept as patches in a folder of the user's own, for the user to apply."""

import json
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from anyio import Lock, to_thread

from agent_core.kernel.values import Value
from agent_core.workspace.diff.unified_diff import unified

MOST: Final = 50
"""So many patches of a session are kept; the oldest go first."""
_TEXTS: Final = ".json"

_log = logging.getLogger(__name__)


class Proposal(Value, frozen=True, kw_only=True):
    """An edit that waits."""

    id: str
    path: Path
    """The file that it is for."""
    patch: Path
    """Where the user can read it."""


def _ignore_proposal(path: Path, patch: Path) -> None:
    _ = path, patch


class Proposals:
    """The patches of one session. They outlive the process: beside each lie the texts, to do the edit again."""

    def __init__(self) -> None:
        """Begin without a folder: then nothing is kept."""
        self.on_kept: Callable[[Path, Path], None] = _ignore_proposal
        """Called with the file and its patch when one was kept."""
        self._folder: Path | None = None
        self._root = Path("/")
        self._all: Sequence[Proposal] | None = None
        self._turn = Lock()

    def keep_in(self, folder: Path, *, root: Path) -> None:
        """Keep patches in a folder, which is made when the first one comes.

        Args:
            folder: Of this session alone.
            root: Names in patches are relative to it.
        """
        self._folder, self._root = folder, root

    async def keep(self, path: Path, before: str, after: str) -> Path | None:
        """Keep an edit; give the file of its patch, None when it could not be written."""
        if self._folder is None:
            return None
        is_inside = path.is_relative_to(self._root)
        name = (path.relative_to(self._root) if is_inside else Path(path.name)).as_posix()
        async with self._turn:
            self._all = None
            try:
                patch = await to_thread.run_sync(_write, self._folder, name, path, (before, after))
            except OSError:
                return None
        self.on_kept(path, patch)
        return patch

    async def all(self) -> Sequence[Proposal]:
        """Return those that wait, the oldest first."""
        if self._folder is None:
            return ()
        async with self._turn:
            if self._all is None:
                self._all = await to_thread.run_sync(_waiting, self._folder)
            return self._all

    async def texts(self, proposal: Proposal) -> tuple[str, str] | None:
        """Return what an edit was made for and what it makes of that; None: that was not kept, or is damaged."""
        return await to_thread.run_sync(_read_texts, proposal.patch)

    async def forget(self, proposal: Proposal) -> None:
        """Keep an edit no longer."""
        async with self._turn:
            self._all = None
            await to_thread.run_sync(_remove, proposal.patch)


# ------------------------------------------------------------------ in a thread


def _write(folder: Path, name: str, path: Path, texts: tuple[str, str]) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    there = _patches(folder)
    for old in there[: max(0, len(there) - MOST + 1)]:
        _remove(old)
    number = int(there[-1].name.partition("-")[0]) + 1 if there else 1
    patch = folder / f"{number:06}-{Path(name).name[:80]}.diff"
    # The texts first: a patch that is there can be applied.
    rows = [json.dumps(one) for one in ({"v": 1, "path": str(path)}, *texts)]
    _put(patch.with_suffix(_TEXTS), "\n".join(rows).encode())
    _put(patch, unified(name, *texts).encode("utf-8", "surrogatepass"))
    return patch


def _put(path: Path, data: bytes) -> None:
    # Left over from a patch that could not be written.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        _ = file.write(data)


def _patches(folder: Path) -> Sequence[Path]:
    return sorted(one for one in folder.glob("*.diff") if one.name.partition("-")[0].isdecimal())


def _waiting(folder: Path) -> Sequence[Proposal]:
    found: list[Proposal] = []
    for patch in _patches(folder):
        try:
            with patch.with_suffix(_TEXTS).open("rb") as file:
                head: object = json.loads(file.readline())
        except (OSError, ValueError, RecursionError):
            continue
        match head:
            case {"v": 1, "path": str(path)} if Path(path).is_absolute():
                number = patch.name.partition("-")[0]
                found.append(Proposal(id=number, path=Path(path), patch=patch))
            case _:
                continue
    return found


def _read_texts(patch: Path) -> tuple[str, str] | None:
    try:
        _, *rows = patch.with_suffix(_TEXTS).read_bytes().splitlines()
        texts: list[object] = [json.loads(row) for row in rows]
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("The texts of %s cannot be read: %s.", patch, error)
        return None
    match texts:
        case [str(before), str(after)]:
            return before, after
        case _:
            return None


def _remove(patch: Path) -> None:
    for one in (patch, patch.with_suffix(_TEXTS)):
        one.unlink(missing_ok=True)
