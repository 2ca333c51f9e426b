"""Opens a folder with `openat2` of Linux 5.6 and later, which refuses links and ways out in one step. Blocking."""

import errno
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import cast

NUMBER = 437
"""Of the call, the same on all machines."""
HERE = -100
"""AT_FDCWD. Paths from there are absolute, so it does not matter what it is."""
NO_MAGIC_LINKS = 0x02
NO_LINKS = 0x04
BENEATH = 0x08  # decision 0020
TRIES = 8
"""It may ask to be called again when something is renamed meanwhile (EAGAIN)."""


class OpenAt2Gate:
    """See `Gate`."""

    def enter(self, folder: int | None, names: Sequence[str]) -> int:
        """Open a folder below another."""
        below = "/".join(names)
        if folder is None:
            return _opened(HERE, f"/{below}", NO_LINKS | NO_MAGIC_LINKS)
        return _opened(folder, below or ".", BENEATH | NO_LINKS | NO_MAGIC_LINKS)


def has_openat2() -> bool:
    """Try it: an old system does not know it, and a container may forbid it."""
    try:
        os.close(_opened(HERE, "/", NO_LINKS))
    except OSError:
        return False
    return True


def _opened(folder: int, path: str, resolve: int) -> int:
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    call = _call()
    code = errno.EAGAIN
    for _ in range(TRIES):
        opened, code = call(folder, os.fsencode(path), flags, resolve)
        if opened >= 0:
            return opened
        if code not in {errno.EAGAIN, errno.EINTR}:
            break
    # What leads out (EXDEV) or never rests is no better than a link.
    code = errno.ELOOP if code in {errno.EXDEV, errno.EAGAIN} else code
    raise OSError(code, os.strerror(code), path)


@cache
def _call() -> Callable[[int, bytes, int, int], tuple[int, int]]:
    """Return the system's call, which Python cannot name: folder, path, flags, resolve -> descriptor, error number.

    The number counts only when the descriptor is below 0.
    """
    import ctypes  # noqa: PLC0415 - costs time to load

    class How(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    syscall.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(How),
        ctypes.c_size_t,
    )

    def call(folder: int, path: bytes, flags: int, resolve: int) -> tuple[int, int]:
        how = How(flags=flags, mode=0, resolve=resolve)
        args = (NUMBER, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        opened = cast("int", syscall(*args))  # its restype is an integer
        return opened, ctypes.get_errno()

    return call
