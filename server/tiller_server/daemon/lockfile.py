"""Lock of the daemon: the process that holds it is the daemon, for as long as it lives. Blocking."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, cast

from tiller_server.daemon.errors import CannotServe

OWN: Final = 0o600


class Ownership:
    """A lock on a file; the system lets it go when the process ends, however it ends."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Acquire the lock; None when another process holds it.

        Raises:
            CannotServe: The system has no such locks, or the file cannot be opened.
        """
        try:
            import fcntl  # noqa: PLC0415 - not every system has it

            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, OWN)
        except (ImportError, AttributeError) as error:
            message = "this system has no locks of the kind that the daemon needs; use tiller lsp --in-process"
            raise CannotServe(message) from error
        except OSError as error:
            message = f"the lock {str(path)!r} cannot be opened ({error.strerror})"
            raise CannotServe(message) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # decision 0024
        except OSError:
            os.close(fd)
            return None
        return cls(fd, path)

    def describe(self, about: Mapping[str, object]) -> None:
        """Write down who has the lock, for people and for `tiller daemon status`."""
        content = json.dumps(about).encode() + b"\n"
        os.ftruncate(self._fd, 0)
        _ = os.pwrite(self._fd, content, 0)

    def release(self) -> None:
        """Release the lock. The file stays: another process may have opened it already, to wait for the lock."""
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def owner(path: Path) -> Mapping[str, object] | None:
    """Return what the holder of the lock wrote down, {} when it has not yet; None when nobody holds it."""
    if not path.exists():
        return None
    free = Ownership.take(path)
    if free is not None:
        free.release()
        return None
    try:
        decoded: object = json.loads(path.read_bytes() or b"{}")
    except (OSError, ValueError):
        return {}
    return cast("dict[str, object]", decoded) if isinstance(decoded, dict) else {}
