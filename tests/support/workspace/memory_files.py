"""Files in memory for tests: the same rules as on disk, without links."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import lowlevel

from agent_core.kernel.errors import StaleText
from agent_core.kernel.values import Value
from agent_core.workspace.files.bytes_reader import BytesReader
from agent_core.workspace.files.disk.change_buffer import PathChangeBuffer
from agent_core.workspace.files.disk.errors import (
    changed,
    deleted,
    gone_already,
    is_folder,
    missing,
    no_folder,
    not_deleted,
    not_moved,
    too_large,
    under_file,
)
from agent_core.workspace.files.paths import (
    check_new_name,
    is_inside,
    meanings,
    name_variants,
    refusal,
)
from agent_core.workspace.files.text import decode_text, encode_text, sha256_of
from agent_core.workspace.files.write_sequence import write_one_by_one
from agent_core.workspace.port import (
    READ_LIMIT_BYTES,
    Changes,
    DirectoryEntry,
    FileBytes,
    FileReader,
    FileStat,
    FileText,
    FileWrite,
    OnResult,
    PathAccess,
    WriteResult,
)


class _Watch(Value, frozen=True, kw_only=True, eq=False):
    path: Path
    news: PathChangeBuffer


class MemoryFiles:  # noqa: PLR0904 - a port, and what stands in for the disk behind it
    """A small file system of its own."""

    def __init__(
        self, roots: Sequence[Path], home: Path, *, files: Mapping[Path, bytes] | None = None
    ) -> None:
        """Begin with some files, by absolute path."""
        self._roots = tuple(roots)
        self._home = home
        self._files: dict[Path, bytes] = {}
        self._folders = set(self._roots)
        self._watches: list[_Watch] = []
        for path, data in (files or {}).items():
            self._put(path, data)

    def contents(self) -> Mapping[Path, bytes]:
        """Return what is in all files."""
        return dict(self._files)

    def put(self, path: Path, data: bytes) -> None:
        """Change a file behind everybody's back."""
        self._put(path, data)

    def remove(self, path: Path) -> None:
        """Remove a file without any check, as another program would; watchers are notified."""
        del self._files[path]
        self._tell(path)

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Find the path that a model means."""
        await lowlevel.checkpoint()
        literal = meanings(path, root=self._roots[0], home=self._home)
        found = [_plain(one) for one in literal]
        inside = [one for one in found if is_inside(one, self._roots)]
        if not inside:
            raise refusal(path, leads_to=found[-1], roots=self._roots)
        there = [one for one in inside if self._exists(one)]
        if there:
            return there[0]
        if not is_inside(found[-1], self._roots):
            raise refusal(path, leads_to=found[-1], roots=self._roots)
        if access == "read":
            return self._variant(inside[-1]) or inside[-1]
        target = inside[-1]
        there = next(parent for parent in target.parents if self._exists(parent))
        check_new_name(path, made=target.relative_to(there))
        return target

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return what is in a folder."""
        await lowlevel.checkpoint()
        self._check_inside(path)
        if path not in self._folders:
            raise no_folder(path) if self._is_below_file(path) else missing(path)
        folders = [
            DirectoryEntry(name=one.name, kind="folder", size=0)
            for one in self._folders
            if one.parent == path != one
        ]
        files = [
            DirectoryEntry(name=one.name, kind="file", size=len(data))
            for one, data in self._files.items()
            if one.parent == path
        ]
        return (*folders, *files)

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a whole file."""
        await lowlevel.checkpoint()
        data = self._data(path)
        if len(data) > limit_bytes:
            raise too_large(path, size=len(data))
        decoded = decode_text(data)
        if decoded is None:
            return FileBytes(path=path, data=data, sha256=sha256_of(data))
        return FileText(
            path=path,
            text=decoded.text,
            source="disk",
            sha256=sha256_of(data),
            encoding=decoded.encoding,
            bom=decoded.bom,
        )

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file to read it in pieces."""
        await lowlevel.checkpoint()
        yield BytesReader(self._data(path))

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Return nothing: no editor is here."""
        del folder
        await lowlevel.checkpoint()
        return ()

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text, if what is there is still `base`."""
        await lowlevel.checkpoint()
        self._check_base(path, base)
        encoding, bom = ("utf-8", False) if base is None else (base.encoding, base.bom)
        data = encode_text(text, encoding=encoding, bom=bom)
        self._put(path, data)
        return WriteResult(
            path=path, sha256=sha256_of(data), source="disk", saved=True, created=base is None
        )

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several texts, one after the other."""
        await write_one_by_one(self, writes, on_result=on_result)

    async def put_bytes(
        self, path: Path, data: bytes, *, base: FileText | FileBytes | None
    ) -> None:
        """Write bytes, if what is there is still `base`; see `ByteFiles.put_bytes`."""
        await lowlevel.checkpoint()
        self._check_base(path, base)
        self._put(path, data)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if what is there is still `base`."""
        await lowlevel.checkpoint()
        self._check_inside(path)
        self._check_place(path)
        if path not in self._files:
            raise gone_already(path)
        if sha256_of(self._files[path]) != base.sha256:
            raise not_deleted(path)
        self.remove(path)

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file."""
        await lowlevel.checkpoint()
        self._check_inside(source)
        self._check_inside(target)
        data = self._data(source)
        if self._exists(target):
            raise not_moved(source, target)
        self._check_place(target)
        self.remove(source)
        self._put(target, data)

    @asynccontextmanager
    async def watch(self, path: Path) -> AsyncGenerator[Changes]:
        """Watch a file, or what is directly in a folder."""
        await lowlevel.checkpoint()
        self._check_inside(path)
        if not self._exists(path):
            raise missing(path)
        watch = _Watch(path=path, news=PathChangeBuffer(path))
        self._watches.append(watch)
        try:
            yield watch.news
        finally:
            self._watches.remove(watch)

    async def stat(self, path: Path) -> FileStat:
        """Return what a path is."""
        await lowlevel.checkpoint()
        if path in self._folders and is_inside(path, self._roots):
            return FileStat(path=path, kind="folder", size=0, mtime_ns=0)
        return FileStat(path=path, kind="file", size=len(self._data(path)), mtime_ns=0)

    def _variant(self, path: Path) -> Path | None:
        there = next(parent for parent in path.parents if self._exists(parent))
        names = name_variants(path.relative_to(there))
        return next((there / one for one in names if self._exists(there / one)), None)

    def _data(self, path: Path) -> bytes:
        self._check_inside(path)
        if path in self._files:
            return self._files[path]
        self._check_place(path)
        raise missing(path)

    def _put(self, path: Path, data: bytes) -> None:
        self._folders.update(path.parents)
        self._files[path] = data
        self._tell(path)

    def _tell(self, path: Path) -> None:
        for watch in self._watches:
            if watch.path in {path, path.parent}:
                watch.news.put(path)

    def _check_base(self, path: Path, base: FileText | FileBytes | None) -> None:
        self._check_inside(path)
        self._check_place(path)
        if base is None and path in self._files:
            message = f"{path} exists already: nothing was written. Read it first."
            raise StaleText(message)
        if base is not None and path not in self._files:
            raise deleted(path)
        if base is not None and sha256_of(self._files[path]) != base.sha256:
            raise changed(path)

    def _check_inside(self, path: Path) -> None:
        if not is_inside(path, self._roots):
            raise refusal(str(path), leads_to=path, roots=self._roots)

    def _check_place(self, path: Path) -> None:
        """Refuse a folder, and a file used as one."""
        if path in self._folders:
            raise is_folder(path)
        if self._is_below_file(path.parent):
            raise under_file(path)

    def _is_below_file(self, path: Path) -> bool:
        return path in self._files or any(parent in self._files for parent in path.parents)

    def _exists(self, path: Path) -> bool:
        return path in self._files or path in self._folders


def _plain(path: Path) -> Path:
    """Remove `..` lexically, which is correct where there are no links."""
    return Path(os.path.normpath(path))
