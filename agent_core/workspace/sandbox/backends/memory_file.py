"""Files in memory for data to a started process: its arguments are limited in size, and every process can read them."""

import os
from collections.abc import Callable


def memory_file(name: str, content: bytes) -> int:
    """Return a descriptor of a file in memory with a content, at its beginning; the caller closes it. Linux alone."""
    opened = os.memfd_create(name)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(opened, left) :]
        _ = os.lseek(opened, 0, os.SEEK_SET)
    except BaseException:
        os.close(opened)
        raise
    return opened


def closing(*descriptors: int | None) -> Callable[[], None]:
    """Return what closes descriptors, once."""
    left = [one for one in descriptors if one is not None]

    def close() -> None:
        while left:
            os.close(left.pop())

    return close
