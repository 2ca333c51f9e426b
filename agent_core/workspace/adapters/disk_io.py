"""Files below a folder, opened step by step so that no link can lead out between check and use. Blocking."""

import codecs
import os
import secrets
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from agent_core.kernel.errors import AccessRefused, StaleText, WorkspaceError
from agent_core.workspace.adapters.disk_errors import (
    changed,
    deleted,
    is_folder,
    is_special,
    missing,
    swapped,
    too_large,
)
from agent_core.workspace.port import READ_LIMIT_BYTES, FileText
from agent_core.workspace.text import sha256_of

PIECE_CHARS = 1_048_576
PRIVATE = 0o600
ANYONE = 0o666
"""Less the user's umask, which the system takes off."""
FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Passing through a folder needs no right to list it.
PASS = FOLDER | (os.O_PATH if sys.platform == "linux" else os.O_RDONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A name inside an open folder."""

    folder: int
    name: str
    path: Path
    """The same, for messages."""

    def look(self) -> os.stat_result | None:
        """Say what is there; None: nothing.

        Raises:
            PathRefused: A link, which `path` was not when it was resolved.
        """
        try:
            found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise swapped(self.path)
        return found


@contextmanager
def place_of(path: Path, *, root: Path, make: bool) -> Generator[Place]:
    """Open the folder of a real path, from the root down.

    Args:
        path: Real, below the root.
        root: Real.
        make: Make the folders that are missing.

    Raises:
        PathRefused: A folder on the way has become a link.
        NotAFile: The root itself, or a file stands where a folder is needed.
        OSError: The system says no, or a folder is missing and is not to be made.
    """
    parts = path.relative_to(root).parts
    if not parts:
        raise is_folder(path)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts[:-1]):
            step = _enter(folder, part, at=root.joinpath(*parts[: index + 1]), make=make)
            os.close(folder)
            folder = step
        yield Place(folder=folder, name=parts[-1], path=path)
    finally:
        os.close(folder)


def _enter(folder: int, name: str, *, at: Path, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    try:
        return os.open(name, PASS, dir_fd=folder)
    except NotADirectoryError as error:
        # Linux says so of links too.
        _ = Place(folder=folder, name=name, path=at).look()
        raise NotADirectoryError(error.errno, error.strerror, str(at)) from error


def read_regular(place: Place, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
    """Read a regular file.

    Raises:
        FileTooLarge: It has more bytes than the limit.
        WorkspaceError, OSError: As `open_regular` does.
    """
    with open_regular(place) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit_bytes:
            raise too_large(place.path, size=size)
        return file.readall()


def open_regular(place: Place) -> FileIO:
    """Open a regular file for reading; the caller closes it. Never waits for a writer at the other end of a pipe.

    Raises:
        FileMissing: Nothing there.
        NotAFile: A folder or something special.
        OSError: The system says no.
    """
    if (found := place.look()) is None:
        raise missing(place.path)
    check_regular(found, place.path)
    opened = os.open(
        place.name,
        os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
        dir_fd=place.folder,
    )
    file = FileIO(opened, "rb")
    try:
        check_regular(os.fstat(opened), place.path)
    except BaseException:
        file.close()
        raise
    return file


def create(place: Place, data: bytes) -> None:
    """Write a file that must not exist: whole or not at all.

    Raises:
        StaleText: Something is there.
        NotAFile: And it is no regular file.
        OSError: The system says no; nothing is left behind.
    """
    if (found := place.look()) is not None:
        check_regular(found, place.path)
        raise _exists(place)
    temp = _write_beside(place, data, like=None)
    try:
        _name_new(place, temp)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
    sync_folder(place.folder)


def replace(place: Place, data: bytes, *, base: FileText) -> os.stat_result:
    """Replace a file whole, if it is still what was read; gives what was there.

    Mode, owner and extended attributes stay.

    Raises:
        StaleText: It changed or went away.
        NotAFile: Something else is there now.
        AccessRefused: It is write-protected.
        OSError: The system says no; the old file is as it was.
    """
    found = place.look()
    if found is None:
        raise deleted(place.path)
    check_regular(found, place.path)
    check_writable(place)
    temp = _write_beside(place, data, like=found)
    try:
        if not _holds(place, base):
            check_unchanged(place, expected_sha256=base.sha256)
        os.replace(temp, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
        raise
    sync_folder(place.folder)
    return found


def _write_beside(place: Place, data: bytes, *, like: os.stat_result | None) -> str:
    """Write a temporary file in the same folder and get it to the disk; gives its name."""
    temp = f".tiller-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(temp, flags, ANYONE if like is None else PRIVATE, dir_fd=place.folder)
    try:
        with os.fdopen(opened, "wb") as file:
            _ = file.write(data)
            file.flush()
            if like is not None:
                _keep_attributes(opened, place, like)
            os.fsync(opened)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
        raise
    return temp


def _name_new(place: Place, temp: str) -> None:
    try:
        os.link(
            temp,
            place.name,
            src_dir_fd=place.folder,
            dst_dir_fd=place.folder,
            follow_symlinks=False,
        )
    except FileExistsError as error:
        raise _exists(place) from error
    except OSError:
        # No hard links on this file system: claim the name, then put the file in its place.
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(place.name, flags, PRIVATE, dir_fd=place.folder))
        except FileExistsError as error:
            raise _exists(place) from error
        try:
            os.replace(temp, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            os.unlink(place.name, dir_fd=place.folder)
            raise


def _keep_attributes(opened: int, place: Place, like: os.stat_result) -> None:
    # The owner goes first: changing it takes set-uid bits away.
    mine = os.fstat(opened)
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(opened, like.st_uid, like.st_gid)
        except PermissionError:
            with suppress(PermissionError):
                os.fchown(opened, -1, like.st_gid)
    if sys.platform == "linux":
        _keep_extended(opened, place)
    os.fchmod(opened, stat.S_IMODE(like.st_mode))


def _keep_extended(opened: int, place: Place) -> None:
    """Copy extended attributes, access lists among them, as far as the system lets us."""
    with suppress(OSError):
        old = os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place.folder)
        try:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(opened, name, os.getxattr(old, name))
        finally:
            os.close(old)


def check_regular(found: os.stat_result, path: Path) -> None:
    """Refuse what is no regular file.

    Raises:
        NotAFile: A folder or something special.
    """
    if stat.S_ISDIR(found.st_mode):
        raise is_folder(path)
    if not stat.S_ISREG(found.st_mode):
        raise is_special(path)


def _holds(place: Place, base: FileText) -> bool:
    """Tell, without hashing, whether a file holds a text; no: it may hold it in another encoding."""
    if base.encoding != "utf-8":
        return False
    # A time of change would be cheaper, but what is written through a memory map changes it late.
    with suppress(OSError, WorkspaceError), open_regular(place) as file:
        if base.bom and file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            return False
        for start in range(0, len(base.text), PIECE_CHARS):
            piece = base.text[start : start + PIECE_CHARS].encode()
            if file.read(len(piece)) != piece:
                return False
        return file.read(1) == b""
    return False


def check_unchanged(place: Place, *, expected_sha256: str) -> None:
    """Refuse when a file does not hold the expected bytes.

    Raises:
        StaleText: It changed or went away.
    """
    if place.look() is None:
        raise deleted(place.path)
    if sha256_of(read_regular(place)) != expected_sha256:
        raise changed(place.path)


def check_writable(place: Place) -> None:
    """Refuse to replace a write-protected file, which a rename alone could do."""
    other_user = os.geteuid() != os.getuid()  # not every system can be asked about that
    if not os.access(place.name, os.W_OK, dir_fd=place.folder, effective_ids=other_user):
        message = f"Permission denied: {place.path} is write-protected (EACCES). Ask the user before changing that."
        raise AccessRefused(message)


def _exists(place: Place) -> StaleText:
    return StaleText(f"{place.path} exists already: nothing was written. Read it first.")


def sync_folder(folder: int) -> None:
    """Get the new name to the disk too, where folders can be synced."""
    with suppress(OSError):
        opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
