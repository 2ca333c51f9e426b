"""One session file open for writing: whole lines go in, or nothing does.

Everything here blocks and belongs in a worker thread; one caller at a time.
"""

import errno
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType

from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.paths import (
    FILE_MODE,
    NEW_SUFFIX,
    Claim,
    claim,
    flush,
    flush_folder,
    hold,
    make_folder,
)
from agent_core.transcript.entries import LineLocation

_FLAGS: int = os.O_RDWR | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CHUNK = 1 << 16
"""Small enough that each block lies where the one before it lay: fresh memory costs more than another call."""
_MAKE_WRITABLE = "make it writable"
_ADVICE = MappingProxyType(
    {
        errno.ENOSPC: "free some disk space",
        errno.EDQUOT: "free some of your disk quota",
        errno.EFBIG: "raise the limit on the size of files",
        errno.EROFS: _MAKE_WRITABLE,
        errno.EACCES: _MAKE_WRITABLE,
        errno.EPERM: _MAKE_WRITABLE,
    }
)
_log = logging.getLogger(__name__)


class SessionFile:
    """A file that only grows by whole lines, claimed for this process."""

    def __init__(self, path: Path, *, fd: int, owned: Claim, size: int) -> None:
        self.path = path
        self._fd = fd
        self._claim = owned
        self._size = size
        """Bytes of the file that are good: the initial content, and every line whose write returned without error."""
        self._torn = False
        """Bytes of a failed write lie behind what is good and could not be taken back yet."""
        self._is_named = False
        """The folder's entry for the file is known to survive a power cut; the creator may have died before that."""

    @classmethod
    def born(cls, path: Path, content: bytes) -> "SessionFile":
        """Make a file with its first lines, in one write.

        Raises:
            StorageUnavailable: It could not be made; nothing is left of it.
            SessionLocked: Another process is just making it.
        """
        fd, owned = _made(path, content)
        return cls(path, fd=fd, owned=owned, size=len(content))

    @classmethod
    def opened(cls, path: Path) -> "SessionFile":
        """Open a file that is there.

        Raises:
            StorageUnavailable: It cannot be opened for writing.
            SessionLocked: Another writer has it.
        """
        try:
            fd = os.open(path, _FLAGS)
        except OSError as error:
            raise unavailable(path, "opened for writing", error) from error
        try:
            size = os.fstat(fd).st_size
            return cls(path, fd=fd, owned=_claimed(path, fd), size=size)
        except OSError as error:
            os.close(fd)
            raise unavailable(path, "read", error) from error
        except BaseException:
            os.close(fd)
            raise

    def blocks(self) -> Iterator[bytes]:
        """Read all that is good, block by block.

        Raises:
            OSError: It cannot be read.
        """
        return blocks_of(self._fd, self._size)

    def read_at(self, place: LineLocation) -> bytes:
        """Read one line; less of it when the file is shorter.

        Raises:
            OSError: It cannot be read.
        """
        os.lseek(self._fd, place.offset, os.SEEK_SET)
        return b"".join(_pieces(self._fd, place.size))

    def append(self, lines: Sequence[bytes]) -> tuple[LineLocation, ...]:
        """Write lines, each with one write; a newline comes first if the file lacks its last one.

        Args:
            lines: With their newlines.

        Returns:
            Where they are.

        Raises:
            StorageUnavailable: None of them is in the file, and the next call may succeed.
        """
        try:
            start = self._checked_size()
            lead = b"" if self._ends_clean(start) else b"\n"
        except OSError as error:
            raise unavailable(self.path, "written", error) from error
        end = start
        places: list[LineLocation] = []
        for line in lines:
            whole = lead + line
            self._write(whole, start=start)
            places.append(LineLocation(offset=end + len(lead), size=len(line) - 1))
            end += len(whole)
            lead = b""
        self._size = end
        return tuple(places)

    def cut(self, size: int) -> None:
        """Drop everything behind the first `size` bytes.

        Raises:
            OSError: It stays as it was.
        """
        os.ftruncate(self._fd, size)
        self._size = size

    def end_line(self) -> None:
        """Write the newline of the last line if it is missing; `append` does the same when it must.

        Raises:
            OSError: It stays as it was.
        """
        if not self._ends_clean(self._size):
            self._size += os.write(self._fd, b"\n")

    def rewrite(self, content: bytes, *, old: Path) -> None:
        """Replace the content of the file atomically, and keep the old file beside it.

        Raises:
            OSError: The file is as it was.
        """
        temporary = self.path.with_name(self.path.name + NEW_SUFFIX)
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, _FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            hold(fd)
            _write_all(fd, content)
            flush(fd)
            _keep(self.path, old)
            temporary.replace(self.path)
        except BaseException:
            os.close(fd)
            temporary.unlink(missing_ok=True)
            raise
        os.close(self._fd)
        self._fd, self._size, self._is_named = fd, len(content), False

    def sync(self) -> None:
        """Make everything survive a power cut.

        Raises:
            StorageUnavailable: It cannot be said to.
        """
        try:
            flush(self._fd)
            if not self._is_named:
                flush_folder(self.path.parent)
                self._is_named = True
        except OSError as error:
            raise unavailable(self.path, "written through to the disk", error) from error

    def close(self) -> None:
        """Close the file and release the claim; never raises. Nothing else may be called afterwards."""
        self._claim.release()
        try:
            os.close(self._fd)
        except OSError as error:
            _log.warning("closing the session file %r failed: %s", str(self.path), error)

    def _write(self, line: bytes, *, start: int) -> None:
        try:
            _write_all(self._fd, line)
        except OSError as error:
            self._take_back(start)
            raise unavailable(self.path, "written", error) from error

    def _take_back(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            self._torn, self._size = True, size
            _log.warning("a torn line stays in %r for now: %s", str(self.path), error)

    def _checked_size(self) -> int:
        """Return where the next line begins, after making sure that it would land in the file of that name."""
        if self._torn:
            os.ftruncate(self._fd, self._size)
            self._torn = False
        ours = os.fstat(self._fd)
        try:
            named = self.path.stat()
        except FileNotFoundError:
            self._write_anew()
            return self._size
        if not os.path.samestat(ours, named):
            raise self._changed("replaced by another file, which is left alone")
        if ours.st_size < self._size:
            how = f"shortened from {self._size} to {ours.st_size} bytes"
            raise self._changed(how)
        return ours.st_size

    def _changed(self, how: str) -> StorageUnavailable:
        return StorageUnavailable(
            f"the session file {str(self.path)!r} was {how}: put the old one back, or go on in a new session"
        )

    def _ends_clean(self, size: int) -> bool:
        if size == 0:
            return True
        os.lseek(self._fd, size - 1, os.SEEK_SET)
        return os.read(self._fd, 1) == b"\n"

    def _write_anew(self) -> None:
        """Bring back a file that was deleted while we had it open: its content is still ours."""
        _log.warning("the session file %r was deleted and is written anew", str(self.path))
        content = b"".join(self.blocks())
        self._claim.release()
        fd, owned = _made(self.path, content)
        os.close(self._fd)
        self._fd, self._claim, self._size, self._is_named = fd, owned, len(content), False


def blocks_of(fd: int, size: int) -> Iterator[bytes]:
    """Read the first `size` bytes of an open file, block by block; less when it is shorter.

    Raises:
        OSError: It cannot be read.
    """
    os.lseek(fd, 0, os.SEEK_SET)
    return _pieces(fd, size)


def _pieces(fd: int, left: int) -> Iterator[bytes]:
    while left > 0 and (piece := os.read(fd, min(left, _CHUNK))):
        yield piece
        left -= len(piece)


def unavailable(path: Path, what: str, error: OSError) -> StorageUnavailable:
    """Report that a session file could not be used, why, and what to do."""
    number = error.errno or 0
    name = errno.errorcode.get(number, str(number))
    why, advice = error.strerror or error, _ADVICE.get(number, "check the disk")
    return StorageUnavailable(
        f"the session file {str(path)!r} could not be {what}: {why} ({name}); {advice}, then try again"
    )


def _write_all(fd: int, content: bytes) -> None:
    """Write with one call; a second one only follows a short write, to learn why the rest does not go in."""
    written = os.write(fd, content)
    while written < len(content):
        more = os.write(fd, memoryview(content)[written:])
        if more == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += more


def _keep(path: Path, old: Path) -> None:
    try:
        old.hardlink_to(path)
    except FileExistsError:
        return  # an earlier attempt came this far
    except OSError:
        shutil.copyfile(path, old)  # a file system without links


def _made(path: Path, content: bytes) -> tuple[int, Claim]:
    try:
        make_folder(path.parent)
        fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except OSError as error:
        raise unavailable(path, "made", error) from error
    try:
        owned = _claimed(path, fd)
    except BaseException:
        _remove(path, fd)
        raise
    try:
        _write_all(fd, content)
    except OSError as error:
        owned.release()
        _remove(path, fd)
        raise unavailable(path, "made", error) from error
    return fd, owned


def _claimed(path: Path, fd: int) -> Claim:
    try:
        return claim(path, fd=fd)
    except OSError as error:
        raise unavailable(path, "locked", error) from error


def _remove(path: Path, fd: int) -> None:
    os.close(fd)
    path.unlink(missing_ok=True)
