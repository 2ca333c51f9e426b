"""Files in memory, for scripts and tests: the same rules as on disk, without links."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from anyio import lowlevel

from agent_core.kernel.errors import FileMissing, NotAFile, StaleText
from agent_core.workspace.paths import check_new_name, is_inside, meanings, name_variants, refusal
from agent_core.workspace.port import Access, FileBytes, FileStat, FileText, Written
from agent_core.workspace.text import decode_text, encode_text, sha256_of


class MemoryFiles:
    """A small file system of its own."""

    def __init__(
        self, roots: Sequence[Path], home: Path, *, files: Mapping[Path, bytes] | None = None
    ) -> None:
        """Begin with some files, by absolute path."""
        self._roots = tuple(roots)
        self._home = home
        self._files = dict(files or {})

    def contents(self) -> Mapping[Path, bytes]:
        """Give what is in all files."""
        return dict(self._files)

    def put(self, path: Path, data: bytes) -> None:
        """Change a file behind everybody's back."""
        self._files[path] = data

    async def resolve(self, path: str, access: Access) -> Path:
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
        if access == "read":
            variants = [one for one in name_variants(inside[-1]) if self._exists(one)]
            return variants[0] if variants else inside[-1]
        target = inside[-1]
        there = next(parent for parent in target.parents if self._exists(parent))
        check_new_name(path, made=target.relative_to(there))
        return target

    async def read(self, path: Path) -> FileText | FileBytes:
        """Read a whole file."""
        await lowlevel.checkpoint()
        data = self._data(path)
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

    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        """Write a whole text, if what is there is still `base`."""
        await lowlevel.checkpoint()
        if not is_inside(path, self._roots):
            raise refusal(str(path), leads_to=path, roots=self._roots)
        self._check_place(path)
        if base is None and path in self._files:
            message = f"{path} exists already: nothing was written. Read it first."
            raise StaleText(message)
        if base is not None and (
            path not in self._files or sha256_of(self._files[path]) != base.sha256
        ):
            message = f"{path} changed since it was read: nothing was written. Read it again."
            raise StaleText(message)
        encoding, bom = ("utf-8", False) if base is None else (base.encoding, base.bom)
        data = encode_text(text, encoding=encoding, bom=bom)
        self._files[path] = data
        return Written(
            path=path, sha256=sha256_of(data), source="disk", saved=True, created=base is None
        )

    async def stat(self, path: Path) -> FileStat:
        """Say what a path is."""
        await lowlevel.checkpoint()
        if self._is_folder(path):
            return FileStat(path=path, kind="folder", size=0, mtime_ns=0)
        return FileStat(path=path, kind="file", size=len(self._data(path)), mtime_ns=0)

    def _data(self, path: Path) -> bytes:
        if not is_inside(path, self._roots):
            raise refusal(str(path), leads_to=path, roots=self._roots)
        if path in self._files:
            return self._files[path]
        self._check_place(path)
        message = f"File not found: {path} (ENOENT). Look for the right name first."
        raise FileMissing(message)

    def _check_place(self, path: Path) -> None:
        """Refuse a folder, and a file used as one."""
        if self._is_folder(path):
            message = f"Is a directory: {path} (EISDIR). Name a file inside it."
            raise NotAFile(message)
        for parent in path.parents:
            if parent in self._files:
                message = (
                    f"Not a directory: {parent} (ENOTDIR): a file is used as a folder in {path}"
                )
                raise NotAFile(message)

    def _is_folder(self, path: Path) -> bool:
        return path in self._roots or any(path in one.parents for one in self._files)

    def _exists(self, path: Path) -> bool:
        return path in self._files or self._is_folder(path)


def _plain(path: Path) -> Path:
    """Take `..` out by the letter, which is right where there are no links."""
    return Path(os.path.normpath(path))
