"""A model of a disk that loses what was not synced: from recorded calls to every state that a power cut could leave.

What a file got since its last sync survives up to some byte, or as zeros from there on. What happened to the names in
a folder since its last sync survives up to some point, in order, as journals of file systems do it. Files and folders
are independent of each other.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

PAGE_BYTES = 4_096

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a power cut leaves, and what had been promised by then."""

    files: Mapping[Path, bytes]
    folders: frozenset[Path]
    promised: int
    kind: str
    """`torn`: every file ends somewhere; `zeros`: zeros stand where bytes never came."""


@dataclass(slots=True)
class _File:
    """What a file holds, change by change."""

    contents: list[bytes] = field(default_factory=lambda: [b""])
    synced: int = 0
    """Which of the contents is the oldest that can come back."""

    @property
    def now(self) -> bytes:
        return self.contents[-1]

    def variants(self, *, step: int) -> Iterator[tuple[str, bytes]]:
        """Give what may be found: each content since the last sync, and each that was torn on the way there."""
        before = self.contents[self.synced]
        yield "torn", before
        for after in self.contents[self.synced + 1 :]:
            if len(after) > len(before):
                cuts = sorted({*range(len(before) + 1, len(after), step), len(after) - 1})
                for size in cuts:
                    yield "torn", after[:size]
                    yield "zeros", after[:size].ljust(len(after), b"\0")
            yield "torn", after
            before = after
        yield from self._with_holes()

    def _with_holes(self) -> Iterator[tuple[str, bytes]]:
        """Give the newest content with one page that never came, as far as it lies behind what was synced."""
        first, size = len(self.contents[self.synced]), len(self.now)
        for start in range(first, size, max(1, (size - first) // 5)):
            end = min(size, start + min(PAGE_BYTES, 200))
            yield "zeros", self.now[:start] + b"\0" * (end - start) + self.now[end:]


_Names = dict[str, "_File | None"]
"""A folder's names; None stands for a folder."""


@dataclass(slots=True)
class _Folder:
    """The names in a folder, change by change."""

    states: list[_Names] = field(default_factory=lambda: [{}])
    synced: int = 0

    @property
    def now(self) -> _Names:
        return self.states[-1]

    def change(self, *removed: str, **added: "_File | None") -> None:
        kept = {name: one for name, one in self.now.items() if name not in removed}
        self.states.append(kept | added)


class PowerCut:
    """Follows calls, and says what may be left after each."""

    def __init__(self, root: Path, *, steady_folders: bool = False) -> None:
        """Begin with what is in `root` now, which is safe.

        Args:
            steady_folders: The names of new folders are taken to survive; those of files are not.
        """
        self._root = root
        self._steady = steady_folders
        self._folders: dict[Path, _Folder] = {}
        self._handles: dict[str, _File | Path] = {}
        self._promised = 0
        self._find(root)

    def play(self, calls: Sequence[Call], *, step: int) -> Iterator[Left]:
        """Give every state that a power cut after each call may leave; none twice.

        Args:
            step: Every how many bytes a write is torn.
        """
        seen: set[object] = set()
        for call in calls:
            self._take(call)
            for left in self._left(step=step):
                key = (frozenset(left.files.items()), left.folders)
                known = (key, left.promised) in seen
                seen.add((key, left.promised))
                if not known:
                    yield left

    def _find(self, folder: Path) -> None:
        names: _Names = {}
        for path in folder.iterdir():
            if path.is_dir():
                names[path.name] = None
                self._find(path)
            else:
                names[path.name] = _File(contents=[path.read_bytes()])
        self._folders[folder] = _Folder(states=[names])

    def _take(self, call: Call) -> None:
        match call:
            case {"call": "promise", "messages": int(messages)}:
                self._promised = messages
            case {"handle": str(handle), "path": str(path)}:
                self._open(handle, Path(path), made=call["made"], emptied=call["emptied"])
            case {"handle": str(handle)}:
                self._change_file(call, self._handles[handle])
            case {"path": str(path)}:
                self._change_names(call, Path(path))
            case _:
                raise AssertionError(call)

    def _open(self, handle: str, path: Path, *, made: bool, emptied: bool) -> None:
        if path in self._folders:
            self._handles[handle] = path
            return
        folder = self._folders.get(path.parent)
        if folder is None:
            return  # not of this disk
        file = folder.now.get(path.name)
        if file is None:
            assert made, path
            file = _File()
            folder.change(**{path.name: file})
        elif emptied:
            file.contents.append(b"")
        self._handles[handle] = file

    def _change_file(self, call: Call, opened: "_File | Path") -> None:
        if isinstance(opened, Path):
            assert call["call"] == "fsync", call
            self._folders[opened].synced = len(self._folders[opened].states) - 1
            return
        match call["call"]:
            case "write":
                opened.contents.append(opened.now + base64.b64decode(call["data"]))
            case "ftruncate":
                opened.contents.append(opened.now[: call["size"]])
            case "fsync":
                opened.synced = len(opened.contents) - 1
            case _:
                raise AssertionError(call)

    def _change_names(self, call: Call, path: Path) -> None:
        folder = self._folders[path.parent]
        match call["call"]:
            case "mkdir":
                folder.change(**{path.name: None})
                self._folders[path] = _Folder()
                if self._steady:
                    folder.synced = len(folder.states) - 1
            case "unlink":
                folder.change(path.name)
            case "link":
                folder.change(**{Path(call["target"]).name: folder.now[path.name]})
            case "rename":
                folder.change(path.name, **{Path(call["target"]).name: folder.now[path.name]})
            case _:
                raise AssertionError(call)

    def _left(self, *, step: int) -> Iterator[Left]:
        paths = list(self._folders)
        spans = [range(one.synced, len(one.states)) for one in self._folders.values()]
        for chosen in product(*spans):
            names = {
                path: self._folders[path].states[place]
                for path, place in zip(paths, chosen, strict=True)
            }
            yield from self._filled(names, step=step)

    def _filled(self, names: Mapping[Path, _Names], *, step: int) -> Iterator[Left]:
        """Give the states with these names: each file at its worst and at its best, one of them anything between."""
        held = dict(self._reachable(self._root, names))
        files = {path: file for path, file in held.items() if file is not None}
        folders = frozenset(path for path, file in held.items() if file is None)
        oldest = {path: file.contents[file.synced] for path, file in files.items()}
        newest = {path: file.now for path, file in files.items()}
        for path, file in files.items():
            for others in (oldest, newest):
                for kind, content in file.variants(step=step):
                    yield Left(
                        files=others | {path: content},
                        folders=folders,
                        promised=self._promised,
                        kind=kind,
                    )
        if not files:
            yield Left(files={}, folders=folders, promised=self._promised, kind="torn")

    def _reachable(
        self, folder: Path, names: Mapping[Path, _Names]
    ) -> Iterator[tuple[Path, "_File | None"]]:
        for name, file in names[folder].items():
            yield folder / name, file
            if file is None:
                yield from self._reachable(folder / name, names)
