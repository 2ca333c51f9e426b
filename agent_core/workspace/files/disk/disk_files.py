"""The files of a workspace on this machine's disk."""

import errno
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio import lowlevel
from msgspec import Struct

from agent_core.kernel.errors import PathRefused
from agent_core.kernel.threads import run_in_thread
from agent_core.workspace.files.disk.errors import (
    deleted,
    gone_already,
    is_folder,
    missing,
    swapped,
    workspace_error,
)
from agent_core.workspace.files.paths import (
    check_new_name,
    is_inside,
    meanings,
    means_folder,
    name_variants,
    real_path,
    refusal,
    shown,
)
from agent_core.workspace.files.text import decode_text, encode_text, hashing, sha256_of
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

if TYPE_CHECKING:
    from agent_core.workspace.files.disk.gate.folder_gate import FolderGate


class _Turn(Struct):
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    users: int = 0


class PathLocks:
    """Locks by path, kept only while somebody holds or awaits them."""

    def __init__(self) -> None:
        self._turns: dict[Path, _Turn] = {}

    @asynccontextmanager
    async def hold(self, path: Path) -> AsyncGenerator[None]:
        """Hold a path; others wait in the order in which they came."""
        turn = self._turns.setdefault(path, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if turn.users == 0:
                del self._turns[path]

    @asynccontextmanager
    async def hold_all(self, *paths: Path) -> AsyncGenerator[None]:
        """Hold several paths; always in the same order, so that two holders never wait for one another."""
        async with AsyncExitStack() as stack:
            for path in sorted(set(paths)):
                await stack.enter_async_context(self.hold(path))
            yield


class DiskFiles:
    """Reads and writes below some folders. All users of one object share its one-writer-per-path rule."""

    def __init__(
        self,
        roots: Sequence[Path],
        home: Path,
        *,
        read_roots: Sequence[Path] = (),
        locks: PathLocks | None = None,
        gate: "FolderGate | None" = None,
    ) -> None:
        """Create the files of a workspace.

        Args:
            roots: Absolute and real; the first is where relative paths start. Read again at each use.
            home: Folder that `~` stands for.
            read_roots: Absolute; more folders that may be read, not written. They need not exist yet.
            locks: Shared by all writers of the same files; None: there is no other writer.
            gate: Opens folders; None: the best gate for this machine.
        """
        self._roots = roots
        self._read_roots = read_roots
        self._home = home
        self._locks = locks or PathLocks()
        self._chosen_gate = gate

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Find the real path that a model means."""
        try:
            return await run_in_thread(self._resolve, path, access)
        except (ValueError, OSError) as error:
            raise _no_path(path, error) from error

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return what is in a folder."""
        try:
            return await run_in_thread(self._list, path)
        except OSError as error:
            raise workspace_error(error, path) from error

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a whole file."""
        try:
            return await run_in_thread(self._read, path, limit_bytes)
        except OSError as error:
            raise workspace_error(error, path) from error

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file to read it in pieces."""
        try:
            file, size = await run_in_thread(self._open, path)
        except OSError as error:
            raise workspace_error(error, path) from error
        with file:
            yield _DiskReader(file, path, size=size)

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Return nothing: no editor is here."""
        del folder
        await lowlevel.checkpoint()
        return ()

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text atomically, if what is there is still `base`."""
        async with self._locks.hold(path):
            try:
                return await run_in_thread(self._write, path, text, base)
            except OSError as error:
                raise workspace_error(error, path) from error

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several texts, one after the other."""
        from agent_core.workspace.files.write_sequence import write_one_by_one  # noqa: PLC0415 - at first use

        await write_one_by_one(self, writes, on_result=on_result)

    async def put_bytes(
        self, path: Path, data: bytes, *, base: FileText | FileBytes | None
    ) -> None:
        """Write bytes atomically, if what is there is still `base`; see `ByteFiles.put_bytes`."""
        async with self._locks.hold(path):
            try:
                await run_in_thread(self._put, path, data, base)
            except OSError as error:
                raise workspace_error(error, path) from error

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if what is there is still `base`."""
        async with self._locks.hold(path):
            try:
                await run_in_thread(self._delete, path, base.sha256)
            except OSError as error:
                raise workspace_error(error, path) from error

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file; the new name must be free."""
        async with self._locks.hold_all(source, target):
            try:
                await run_in_thread(self._move, source, target)
            except OSError as error:
                what = source if error.errno == errno.ENOENT else target
                raise workspace_error(error, what) from error

    @asynccontextmanager
    async def watch(self, path: Path) -> AsyncGenerator[Changes]:
        """Watch a file, or what is directly in a folder."""
        from agent_core.workspace.files.disk.watch import watching  # noqa: PLC0415 - at first use

        is_folder = (await self.stat(path)).kind == "folder"
        root = await run_in_thread(self._root_of, path, "read")
        async with watching(path, root=root, is_folder=is_folder, gate=self._gate) as changes:
            yield changes

    async def stat(self, path: Path) -> FileStat:
        """Return what a path is."""
        try:
            return await run_in_thread(self._stat, path)
        except OSError as error:
            raise workspace_error(error, path) from error

    # In a thread

    @property
    def _gate(self) -> "FolderGate":
        from agent_core.workspace.files.disk.gate.folder_gate import best_gate  # noqa: PLC0415 - at first use

        # Not tried before it is needed: that takes time.
        return self._chosen_gate or best_gate()

    def _resolve(self, path: str, access: PathAccess) -> Path:
        from agent_core.workspace.files.windows_names import windows_refusal  # noqa: PLC0415 - at first use

        allowed = self._allowed(access)
        if sys.platform == "win32" and (why := windows_refusal(path)):
            message = f"{shown(path)} {why}; name a file inside the workspace"
            raise PathRefused(message)
        literal = meanings(path, root=self._roots[0], home=self._home)
        found = [real_path(one) for one in literal]
        inside = [one for one in found if is_inside(one, allowed)]
        if not inside:
            raise refusal(path, leads_to=found[-1], roots=allowed)
        for lexical_path, one in zip(literal, found, strict=True):
            if not is_inside(one, allowed):
                continue
            if one.is_symlink():
                raise swapped(one)
            if os.path.lexists(one):
                _check_way(path, lexical_path, leads_to=one)
                return one
        if not is_inside(found[-1], allowed):
            raise refusal(path, leads_to=found[-1], roots=allowed)
        if access == "read":
            return _variant(literal[-1], allowed) or inside[-1]
        target = path_to_create(inside, has_folder=lambda path: path.parent.is_dir())
        if means_folder(path):
            raise is_folder(target)
        there = next(parent for parent in target.parents if parent.is_dir())
        check_new_name(path, made=target.relative_to(there))
        return target

    def _list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        from agent_core.workspace.files.disk.folders import entries_of  # noqa: PLC0415 - at first use

        return entries_of(path, root=self._root_of(path, "read"), gate=self._gate)

    def _open(self, path: Path) -> tuple[FileIO, int]:
        from agent_core.workspace.files.disk.path_handle import place_of  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.regular_files import open_regular  # noqa: PLC0415 - at first use

        with place_of(path, root=self._root_of(path, "read"), gate=self._gate) as place:
            file = open_regular(place)
            return file, os.fstat(file.fileno()).st_size

    def _read(self, path: Path, limit_bytes: int) -> FileText | FileBytes:
        from agent_core.workspace.files.disk.path_handle import place_of  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.regular_files import read_regular  # noqa: PLC0415 - at first use

        with place_of(path, root=self._root_of(path, "read"), gate=self._gate) as place:
            data = read_regular(place, limit_bytes=limit_bytes)
        return content_of(path, data)

    def _write(self, path: Path, text: str, base: FileText | None) -> WriteResult:
        from agent_core.workspace.files.disk.path_handle import place_made, place_of  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.regular_files import create, replace  # noqa: PLC0415 - at first use

        root = self._root_of(path, "write")
        if base is None:
            data = encode_text(text, encoding="utf-8", bom=False)
            with place_made(path, root=root, gate=self._gate) as place:
                create(place, data)
            return WriteResult(
                path=path, sha256=sha256_of(data), source="disk", saved=True, created=True
            )
        data = encode_text(text, encoding=base.encoding, bom=base.bom)
        digest = hashing(data)
        try:
            with place_of(path, root=root, gate=self._gate) as place:
                before = replace(place, data, base=base)
        except FileNotFoundError as error:
            raise deleted(path) from error
        return WriteResult(
            path=path,
            sha256=digest(),
            source="disk",
            saved=True,
            created=False,
            note=about_links(before.st_nlink),
        )

    def _put(self, path: Path, data: bytes, base: FileText | FileBytes | None) -> None:
        from agent_core.workspace.files.disk.path_handle import place_made, place_of  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.regular_files import create, replace  # noqa: PLC0415 - at first use

        root = self._root_of(path, "write")
        if base is None:
            with place_made(path, root=root, gate=self._gate) as place:
                create(place, data)
            return
        try:
            with place_of(path, root=root, gate=self._gate) as place:
                _ = replace(place, data, base=base)
        except FileNotFoundError as error:
            raise deleted(path) from error

    def _delete(self, path: Path, expected_sha256: str) -> None:
        from agent_core.workspace.files.disk.delete_and_move import delete  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.path_handle import place_of  # noqa: PLC0415 - at first use

        try:
            with place_of(path, root=self._root_of(path, "write"), gate=self._gate) as place:
                delete(place, expected_sha256=expected_sha256)
        except FileNotFoundError as error:
            raise gone_already(path) from error

    def _move(self, source: Path, target: Path) -> None:
        from agent_core.workspace.files.disk.delete_and_move import check_movable, move  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.path_handle import place_made, place_of  # noqa: PLC0415 - at first use

        from_root, to_root = self._root_of(source, "write"), self._root_of(target, "write")
        with ExitStack() as stack:
            # Looked at before folders are made for nothing.
            try:
                old = stack.enter_context(place_of(source, root=from_root, gate=self._gate))
                check_movable(old)
            except OSError as error:
                raise workspace_error(error, source) from error
            move(old, stack.enter_context(place_made(target, root=to_root, gate=self._gate)))

    def _stat(self, path: Path) -> FileStat:
        from agent_core.workspace.files.disk.folders import kind_of  # noqa: PLC0415 - at first use
        from agent_core.workspace.files.disk.path_handle import place_of  # noqa: PLC0415 - at first use

        root = self._root_of(path, "read")
        if path == root:
            found = root.stat()
        else:
            with place_of(path, root=root, gate=self._gate) as place:
                if (seen := place.look()) is None:
                    raise missing(path)
                found = seen
        kind = kind_of(found.st_mode)
        return FileStat(path=path, kind=kind, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def _allowed(self, access: PathAccess) -> tuple[Path, ...]:
        if access == "write":
            return tuple(self._roots)
        return (*self._roots, *(real_path(root) for root in self._read_roots))

    def _root_of(self, path: Path, access: PathAccess) -> Path:
        allowed = self._allowed(access)
        for root in sorted(allowed, key=lambda one: len(one.parts), reverse=True):
            if path.is_relative_to(root):
                return root
        raise refusal(str(path), leads_to=path, roots=allowed)


def _check_way(path: str, lexical_path: Path, *, leads_to: Path) -> None:
    """Refuse a path that goes through a file as if it were a folder; `real_path` would leave that out.

    Raises:
        NotADirectoryError: It does.
    """
    if means_folder(path) and not leads_to.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    # What is not there is left out too: many write `new/../file`, and mean the file.
    with suppress(FileNotFoundError):
        _ = lexical_path.stat()


def _no_path(path: str, error: ValueError | OSError) -> PathRefused:
    why = str(error)
    if isinstance(error, OSError):
        why = f"{error.strerror}, {errno.errorcode.get(error.errno or 0, error.errno)}"
    return PathRefused(
        f"{shown(path)} cannot be a path here ({why}); name a file inside the workspace"
    )


def content_of(path: Path, data: bytes) -> FileText | FileBytes:
    """Return the content of a file as text, or as bytes if it is none. Blocking."""
    digest = hashing(data)
    decoded = decode_text(data)
    if decoded is None:
        return FileBytes(path=path, data=data, sha256=digest())
    return FileText(
        path=path,
        text=decoded.text,
        source="disk",
        sha256=digest(),
        encoding=decoded.encoding,
        bom=decoded.bom,
    )


def _variant(path: Path, allowed: Sequence[Path]) -> Path | None:
    there = next(parent for parent in path.parents if os.path.lexists(parent))
    for variant in name_variants(path.relative_to(there)):
        real = real_path(there / variant)
        if is_inside(real, allowed) and real.exists():
            return real
    return None


def path_to_create(inside: Sequence[Path], *, has_folder: Callable[[Path], bool]) -> Path:
    """Choose between the literal and the usual meaning of a path: the literal only in a folder that is there."""
    usual = inside[-1]
    for one in inside[:-1]:
        if one.parent != usual.parent and has_folder(one):
            return one
    return usual


def about_links(links: int) -> str | None:
    """Return a note on the hard links that a file had before it was replaced; None: it had one."""
    if links == 1:
        return None
    return f"The file had {links} hard links; only this name has the new text, the others keep the old one."


class _DiskReader:
    """Reads an open file in threads. The caller that opened the file closes it."""

    def __init__(self, file: FileIO, path: Path, *, size: int) -> None:
        """Wrap an open file.

        Args:
            file: Open for reading, not buffered.
            path: Its name, for messages.
            size: In bytes, when it was opened.
        """
        self._file = file
        self._path = path
        self._size = size

    @property
    def size(self) -> int:
        """In bytes, when it was opened."""
        return self._size

    async def read(self, limit: int) -> bytes:
        """Return the next bytes, at most so many; empty at the end."""
        try:
            return await run_in_thread(self._file.read, max(limit, 0))
        except OSError as error:
            raise workspace_error(error, self._path) from error
