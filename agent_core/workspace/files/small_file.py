"""Reads small files that somebody else may exchange for anything. Blocking."""

import os
import stat
from pathlib import Path


def read_plain(path: Path, *, most_bytes: int, follows_links: bool = False) -> bytes:
    """Return the content of a regular file. A pipe in its place is not waited for.

    Raises:
        OSError: It is not there, or it is a link and links are not followed.
        ValueError: It is no regular file, or has more bytes than that.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            message = f"{str(path)!r} is no plain file"
            raise ValueError(message)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        message = f"{str(path)!r} has more than {most_bytes:,} bytes"
        raise ValueError(message)
    return content
