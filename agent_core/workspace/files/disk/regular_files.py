"""Files in open folders, so that no link can lead out between check and use. Blocking."""

import codecs
import os
import secrets
import stat
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO

from agent_core.kernel.errors import StaleText, WorkspaceError
from agent_core.workspace.files.disk.errors import (
    changed,
    deleted,
    foreign,
    missing,
    too_large,
)
from agent_core.workspace.files.disk.path_handle import (
    PathHandle,
    check_changeable,
    check_folder,
    check_in_place,
    check_regular,
    check_written_in_place,
)
from agent_core.workspace.files.text import sha256_of
from agent_core.workspace.port import READ_LIMIT_BYTES, FileBytes, FileText

PIECE_CHARS = 1_048_576
PRIVATE = 0o600
ANYONE = 0o666
"""Less the user's umask, which the system takes off."""
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a pipe must not wait for its other end, nor opening a terminal make it ours.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
SET_ID = stat.S_ISUID | stat.S_ISGID
RIGHTS = "security.capability"
OPEN_FILES = "/proc/self/fd"


def read_regular(place: PathHandle, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
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


def open_regular(place: PathHandle) -> FileIO:
    """Open a regular file for reading; the caller closes it. Never waits for a writer at the other end of a pipe.

    Raises:
        FileMissing: Nothing there.
        NotAFile: A folder or something special.
        OSError: The system says no.
    """
    if (found := place.look()) is None:
        raise missing(place.path)
    check_regular(found, place.path)
    opened = os.open(place.name, READ, dir_fd=place.folder)
    file = FileIO(opened, "rb")
    try:
        check_regular(os.fstat(opened), place.path)
    except BaseException:
        file.close()
        raise
    return file


def create(place: PathHandle, data: bytes) -> None:
    """Write a file that must not exist: whole or not at all.

    Raises:
        StaleText: Something is there.
        NotAFile: And it is no regular file.
        OSError: The system says no; nothing is left behind.
    """
    if (found := place.look()) is not None:
        check_regular(found, place.path)
        raise _exists(place)
    check_folder(place)
    temp = _write_beside(place, data, like=None)
    try:
        check_in_place(place)
        _name_new(place, temp)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
    sync_folder(place.folder)
    check_written_in_place(place)


def replace(place: PathHandle, data: bytes, *, base: FileText | FileBytes) -> os.stat_result:
    """Replace a file whole, if it is still what was read; gives what was there.

    Mode, owner and extended attributes stay.

    Raises:
        StaleText: It changed or went away.
        NotAFile: Something else is there now.
        AccessRefused: It is write-protected or somebody else's.
        EditUnverified: Its folder was moved in that moment.
        OSError: The system says no; the old file is as it was.
    """
    found = place.look()
    if found is None:
        raise deleted(place.path)
    check_regular(found, place.path)
    check_changeable(place, found)
    temp = _write_beside(place, data, like=found)
    try:
        if not _holds(place, base):
            check_unchanged(place, expected_sha256=base.sha256)
        check_in_place(place)
        os.replace(temp, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
        raise
    sync_folder(place.folder)
    check_written_in_place(place)
    return found


def _write_beside(place: PathHandle, data: bytes, *, like: os.stat_result | None) -> str:
    """Write a temporary file in the same folder and get it to the disk; gives its name.

    Where the system can, the file has no name until it is written: a process that is killed meanwhile leaves nothing behind.
    """
    temp = f".tiller-{secrets.token_hex(8)}.tmp"
    mode = ANYONE if like is None else PRIVATE
    if (unnamed := _open_unnamed(place, mode)) is not None:
        with os.fdopen(unnamed, "wb") as file:
            _fill(file, place, data, like=like)
            with suppress(OSError):  # no hard links on this file system
                os.link(f"{OPEN_FILES}/{unnamed}", temp, dst_dir_fd=place.folder)
                return temp
    opened = os.open(temp, NEW, mode, dir_fd=place.folder)
    try:
        with os.fdopen(opened, "wb") as file:
            _fill(file, place, data, like=like)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=place.folder)
        raise
    return temp


def _fill(
    file: BufferedWriter, place: PathHandle, data: bytes, *, like: os.stat_result | None
) -> None:
    _ = file.write(data)
    file.flush()
    if like is not None:
        _keep_attributes(file.fileno(), place, like)
    os.fsync(file.fileno())


def _open_unnamed(place: PathHandle, mode: int) -> int | None:
    """Open a file without a name on the file system of a folder; None: there it cannot be, and one with a name may say why."""
    if sys.platform != "linux" or not os.access(OPEN_FILES, os.X_OK):
        return None
    try:
        return os.open(".", os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode, dir_fd=place.folder)
    except OSError:
        return None


def _name_new(place: PathHandle, temp: str) -> None:
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
            os.close(os.open(place.name, NEW, PRIVATE, dir_fd=place.folder))
        except FileExistsError as error:
            raise _exists(place) from error
        try:
            os.replace(temp, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        except BaseException:
            os.unlink(place.name, dir_fd=place.folder)
            raise


def _keep_attributes(opened: int, place: PathHandle, like: os.stat_result) -> None:
    mine = os.fstat(opened)
    if mine.st_uid != like.st_uid:
        try:
            os.fchown(opened, like.st_uid, like.st_gid)
        except PermissionError as error:
            raise foreign(place.path, owner=like.st_uid) from error
    elif mine.st_gid != like.st_gid:
        with suppress(PermissionError):
            os.fchown(opened, -1, like.st_gid)
    if sys.platform == "linux":
        _keep_extended(opened, place)
    # What a program may do as somebody else was granted to the old text.
    os.fchmod(opened, stat.S_IMODE(like.st_mode) & ~SET_ID)


def _keep_extended(opened: int, place: PathHandle) -> None:
    """Copy extended attributes, access lists among them, as far as the system lets us."""
    with suppress(OSError, WorkspaceError), open_regular(place) as file:
        old = file.fileno()
        for name in os.listxattr(old):
            if name != RIGHTS:
                with suppress(OSError):
                    os.setxattr(opened, name, os.getxattr(old, name))


def _holds(place: PathHandle, base: FileText | FileBytes) -> bool:
    """Return, without hashing, whether a file holds a text; False: it may still hold it in another encoding."""
    if isinstance(base, FileBytes) or base.encoding != "utf-8":
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


def check_unchanged(place: PathHandle, *, expected_sha256: str) -> None:
    """Refuse when a file does not hold the expected bytes.

    Raises:
        StaleText: It changed or went away.
    """
    if place.look() is None:
        raise deleted(place.path)
    if sha256_of(read_regular(place)) != expected_sha256:
        raise changed(place.path)


def _exists(place: PathHandle) -> StaleText:
    return StaleText(f"{place.path} exists already: nothing was written. Read it first.")


def sync_folder(folder: int) -> None:
    """Get the new name to the disk too, where folders can be synced."""
    with suppress(OSError):
        opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
