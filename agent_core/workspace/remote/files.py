"""Files of a remote workspace, through shell scripts: each operation is one round trip."""

import secrets
import stat
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio import lowlevel

from agent_core.kernel.errors import (
    AccessRefused,
    EditUnverified,
    PathRefused,
    StaleText,
    WorkspaceError,
    WorkspaceUnreachable,
)
from agent_core.kernel.threads import run_in_thread
from agent_core.kernel.values import Value
from agent_core.workspace.files.disk.disk_files import (
    PathLocks,
    about_links,
    content_of,
    path_to_create,
)
from agent_core.workspace.files.disk.errors import (
    changed,
    deleted,
    foreign,
    gone_already,
    is_folder,
    is_special,
    missing,
    moved_away,
    no_folder,
    not_deleted,
    not_moved,
    shared,
    swapped,
    too_large,
    under_file,
)
from agent_core.workspace.files.paths import (
    check_new_name,
    is_inside,
    meanings,
    means_folder,
    name_variants,
    refusal,
    shown,
)
from agent_core.workspace.files.text import encode_text, sha256_of
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
from agent_core.workspace.remote import file_scripts as scripts
from agent_core.workspace.remote.transport import Remote, RemoteScript
from agent_core.workspace.remote.watch import watching

NANOSECONDS: Final = 1_000_000_000
REFUSALS: Mapping[str, tuple[str, str]] = {
    "EPROTECTED": (
        "Permission denied: {path} is write-protected (EACCES).",
        " Ask the user before changing that.",
    ),
    "EACCES": (
        "Permission denied: {path} (EACCES).",
        " Use another file, or ask the user to change its permissions.",
    ),
    "EROFS": (
        "Cannot write beside {path} (EROFS or ENOSPC): nothing was written.",
        " Use another folder, or tell the user.",
    ),
    "ENOSPC": (
        "No space for {path} (ENOSPC): nothing was written, what was there is as it was.",
        " Free some space first.",
    ),
}
"""Text and advice for codes of the scripts."""
MOST_AT_ONCE: Final = 6
"""Operations at once: a host allows ten sessions on one connection, and commands need some."""


class _Candidate(Value, frozen=True, kw_only=True):
    """A path as the other side sees it."""

    literal: Path
    real: Path
    flags: str
    there: Path
    """The nearest folder above the real path."""
    above: Path
    """The nearest thing above the literal path."""


class RemoteFiles:
    """Reads and writes below some folders of another machine or of a container."""

    def __init__(
        self, remote: Remote, roots: Sequence[Path], home: Path, *, locks: PathLocks | None = None
    ) -> None:
        """Create the files of a workspace.

        Args:
            remote: The other side.
            roots: Absolute and real there; the first is where relative paths start.
            home: Folder that `~` stands for.
            locks: Shared by all writers of the same files; None: there is no other writer.
        """
        self._remote = remote
        self._roots = tuple(roots)
        self._home = home
        self._locks = locks or PathLocks()
        self._limiter = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def resolve(self, path: str, access: PathAccess) -> Path:
        """Find the real path that a model means."""
        literal = meanings(path, root=self._roots[0], home=self._home)
        try:
            candidates = await self._candidates(literal)
        except (AccessRefused, UnicodeError) as error:
            message = (
                f"{shown(path)} cannot be a path here ({error}); name a file inside the workspace"
            )
            raise PathRefused(message) from error
        inside = [one for one in candidates if is_inside(one.real, self._roots)]
        if not inside:
            raise refusal(path, leads_to=candidates[-1].real, roots=self._roots)
        for one in inside:
            if "L" in one.flags:
                raise swapped(one.real)
            if "E" in one.flags:
                if "N" in one.flags or (means_folder(path) and "D" not in one.flags):
                    message = f"{shown(path)} cannot be a path here (Not a directory, ENOTDIR); name a file inside the workspace"
                    raise PathRefused(message)
                return one.real
        if not is_inside(candidates[-1].real, self._roots):
            raise refusal(path, leads_to=candidates[-1].real, roots=self._roots)
        if access == "read":
            return await self._variant(candidates[-1]) or inside[-1].real
        has_folder = {one.real for one in inside if "P" in one.flags}
        target = path_to_create([one.real for one in inside], has_folder=has_folder.__contains__)
        if means_folder(path):
            raise is_folder(target)
        there = next(one.there for one in inside if one.real == target)
        check_new_name(path, made=target.relative_to(there))
        return target

    async def stat(self, path: Path) -> FileStat:
        """Return what a path is."""
        root = self._root_of(path)
        folder, name = (path, ".") if path == root else (path.parent, path.name)
        status, _ = await self._run(path, scripts.STAT, str(folder), name)
        kind, size, mtime = status[1:4]
        return FileStat(
            path=path,
            kind="folder" if kind == "folder" else "file" if kind == "file" else "other",
            size=int(size),
            mtime_ns=int(mtime) * NANOSECONDS,
        )

    async def list(self, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return what is in a folder."""
        _ = self._root_of(path)
        _, output = await self._run(path, scripts.LIST, str(path), under=no_folder)
        entries, _, targets = output.partition(b"\0\0")
        # An empty folder has no entry before the empty one.
        if output.startswith(b"\0"):
            entries, targets = b"", output[1:]
        followed = {name: (mode, size) for mode, size, name in _entries(targets)}
        return tuple(
            _entry(name, mode, size, followed.get(name)) for mode, size, name in _entries(entries)
        )

    async def read(
        self, path: Path, *, limit_bytes: int = READ_LIMIT_BYTES
    ) -> FileText | FileBytes:
        """Read a whole file."""
        self._check_file(path)
        arguments = (str(path.parent), path.name, str(limit_bytes))
        _, data = await self._run(path, scripts.READ, *arguments)
        return await run_in_thread(content_of, path, data)

    @asynccontextmanager
    async def open(self, path: Path) -> AsyncGenerator[FileReader]:
        """Open a file to read it in pieces."""
        self._check_file(path)
        script = scripts.COMMON + scripts.READ
        async with self._remote.script(script, str(path.parent), path.name, "-") as running:
            running.finish()
            status = await running.status()
            if status[0] != "ok":
                raise _error(status, path, under=under_file)
            yield _RemoteReader(running, size=int(status[1]))

    async def buffers(self, folder: Path) -> tuple[FileText, ...]:
        """Return nothing: no editor is there."""
        del folder
        await lowlevel.checkpoint()
        return ()

    async def write(self, path: Path, text: str, *, base: FileText | None) -> WriteResult:
        """Write a whole text atomically, if what is there is still `base`."""
        self._check_file(path)
        encoding, bom = ("utf-8", False) if base is None else (base.encoding, base.bom)
        data = encode_text(text, encoding=encoding, bom=bom)
        digest = sha256_of(data)
        place = (str(path.parent), path.name, _temporary())
        async with self._locks.hold(path):
            try:
                if base is None:
                    status, _ = await self._run(path, scripts.CREATE, *place, digest, stdin=data)
                else:
                    arguments = (*place, base.sha256, digest)
                    status, _ = await self._run(
                        path, scripts.REPLACE, *arguments, stdin=data, gone=deleted
                    )
            except WorkspaceUnreachable as error:
                await self._check_written(path, digest, base, error)
                status = ("ok", "1")
        return WriteResult(
            path=path,
            sha256=digest,
            source="disk",
            saved=True,
            created=base is None,
            note=None if base is None else about_links(int(status[1])),
        )

    async def write_all(self, writes: Sequence[FileWrite], *, on_result: OnResult) -> None:
        """Write several texts, one after the other."""
        await write_one_by_one(self, writes, on_result=on_result)

    async def delete(self, path: Path, *, base: FileText | FileBytes) -> None:
        """Delete a file, if what is there is still `base`."""
        self._check_file(path)
        arguments = (str(path.parent), path.name, _temporary(), base.sha256)
        async with self._locks.hold(path):
            _ = await self._run(
                path, scripts.DELETE, *arguments, gone=gone_already, stale=not_deleted
            )

    async def move(self, source: Path, target: Path) -> None:
        """Rename a file; the new name must be free."""
        self._check_file(source)
        self._check_file(target)
        arguments = (str(source.parent), source.name, str(target.parent), target.name)
        async with self._locks.hold_all(source, target), self._limiter:
            status, _ = await self._remote.run(scripts.COMMON + scripts.MOVE, *arguments)
        if status[0] == "ok":
            return
        if status[1] == "EEXIST":
            raise not_moved(source, target)
        if status[1] == "EXDEV":
            message = f"{source} cannot be moved to {target}: there is no hard link between them (EXDEV). Write the text there, then delete this file."
            raise AccessRefused(message)
        raise _error(status, target if status[-1] == "target" else source, under=under_file)

    @asynccontextmanager
    async def watch(self, path: Path) -> AsyncGenerator[Changes]:
        """Watch a file, or what is directly in a folder."""
        found = await self.stat(path)
        folder = path if found.kind == "folder" else path.parent
        script = scripts.COMMON + scripts.WATCH
        async with self._remote.script(script, str(folder)) as running:
            status = await running.status()
            if status[0] != "ok":
                raise _error(status, path, under=under_file)
            async with watching(running, path, folder=folder) as changes:
                yield changes

    async def _run(
        self,
        path: Path,
        script: str,
        *arguments: str,
        stdin: bytes = b"",
        under: Callable[[Path], WorkspaceError] = under_file,
        gone: Callable[[Path], WorkspaceError] = missing,
        stale: Callable[[Path], WorkspaceError] = changed,
    ) -> tuple[Sequence[str], bytes]:
        """Run a script on a path; raises what its first line reports."""
        async with self._limiter:
            status, output = await self._remote.run(
                scripts.COMMON + script, *arguments, stdin=stdin
            )
        if status[0] == "ok":
            return status, output
        raise _error(status, path, under=under, gone=gone, stale=stale)

    async def _check_written(
        self, path: Path, digest: str, base: FileText | None, error: WorkspaceUnreachable
    ) -> None:
        """Return if a text was written although its confirmation was lost.

        Raises:
            WorkspaceUnreachable: It was not written.
            EditUnverified: That cannot be found out.
            StaleText: Something else is there now.
        """
        try:
            there = (await self.read(path)).sha256
        except WorkspaceUnreachable as again:
            message = f"The connection to {self._remote.name} was lost while {path} was written: it has either the old or the new text, whole."
            raise EditUnverified(message, advice=f" Read it before you go on. {again}") from error
        except WorkspaceError:
            there = None
        if there == digest:
            return
        if there == (None if base is None else base.sha256):
            message = f"{path} was not written: {error}"
            raise WorkspaceUnreachable(message) from error
        raise changed(path) from error

    async def _candidates(self, paths: Sequence[Path]) -> tuple[_Candidate, ...]:
        async with self._limiter:
            status, output = await self._remote.run(
                scripts.COMMON + scripts.RESOLVE, *(str(one) for one in paths)
            )
        if status[0] != "ok":
            raise _error(status, paths[0], under=under_file)
        fields = [one.decode("utf-8", "surrogateescape") for one in output.split(b"\0")]
        return tuple(
            _Candidate(
                literal=literal,
                real=Path(real),
                flags=flags,
                there=Path(there),
                above=Path(above),
            )
            for literal, real, flags, there, above in zip(
                paths, fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=False
            )
        )

    async def _variant(self, candidate: _Candidate) -> Path | None:
        """Return an existing path in another spelling."""
        rest = candidate.literal.relative_to(candidate.above)
        variants = [candidate.above / one for one in name_variants(rest)]
        if not variants:
            return None
        for one in await self._candidates(variants):
            if is_inside(one.real, self._roots) and "E" in one.flags and "L" not in one.flags:
                return one.real
        return None

    def _root_of(self, path: Path) -> Path:
        inside = [root for root in self._roots if path.is_relative_to(root)]
        if not inside:
            raise refusal(str(path), leads_to=path, roots=self._roots)
        return max(inside, key=lambda root: len(root.parts))

    def _check_file(self, path: Path) -> None:
        """Refuse a path outside of the roots, and a root."""
        if path == self._root_of(path):
            raise is_folder(path)


class _RemoteReader:
    """Reads a file that a script has open."""

    def __init__(self, running: RemoteScript, *, size: int) -> None:
        self._running = running
        self._size = size
        self._rest = b""
        self._is_over = False

    @property
    def size(self) -> int:
        """In bytes, when it was opened."""
        return self._size

    async def read(self, limit: int) -> bytes:
        """Return the next bytes, at most so many; empty at the end."""
        while len(self._rest) < limit and not self._is_over:
            data = await self._running.read()
            self._rest += data
            if not data:
                _ = await self._running.check_end()
                self._is_over = True
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        return piece


def _temporary() -> str:
    return f".tiller-{secrets.token_hex(8)}.tmp"


def _entries(output: bytes) -> list[tuple[int, int, str]]:
    """Read mode, size and name of entries."""
    found: list[tuple[int, int, str]] = []
    for line in output.split(b"\0"):
        mode, _, rest = line.partition(b" ")
        size, _, name = rest.partition(b" ")
        if name:
            text = name.removeprefix(b"./").decode("utf-8", "surrogateescape")
            found.append((int(mode, 16), int(size), text))
    return found


def _entry(name: str, mode: int, size: int, target: tuple[int, int] | None) -> DirectoryEntry:
    is_link = stat.S_ISLNK(mode)
    if is_link and target is None:
        return DirectoryEntry(name=name, kind="missing", size=0, is_link=True)
    if target is not None:
        mode, size = target
    kind = "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"
    return DirectoryEntry(name=name, kind=kind, size=size if kind == "file" else 0, is_link=is_link)


def _error(
    status: Sequence[str],
    path: Path,
    *,
    under: Callable[[Path], WorkspaceError],
    gone: Callable[[Path], WorkspaceError] = missing,
    stale: Callable[[Path], WorkspaceError] = changed,
) -> WorkspaceError:
    """Return the error that a script reports in its first line."""
    code, *more = (*status[1:], "EIO") if len(status) > 1 else ("EIO",)
    simple: dict[str, Callable[[Path], WorkspaceError]] = {
        "ENOENT": gone,
        "ENOTDIR": under,
        "EISDIR": is_folder,
        "ELOOP": swapped,
        "ESPECIAL": is_special,
        "ESTALE": stale,
        "EMOVED": moved_away,
        "ESHARED": shared,
    }
    if code in simple:
        return simple[code](path)
    figure = int(more[0]) if more[0].isdecimal() else 0
    match code:
        case "EFBIG":
            return too_large(path, size=figure)
        case "EOWNER":
            return foreign(path, owner=figure)
        case "EEXIST":
            return StaleText(
                f"{path} exists already: nothing was written.", advice=" Read it first."
            )
        case _:
            text, advice = REFUSALS.get(code, (f"Cannot use {{path}}: {code}", ""))
            return AccessRefused(text.format(path=path), advice=advice)
