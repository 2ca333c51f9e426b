"""Makes what was written survive a power cut."""

import os
import sys
from pathlib import Path

if sys.platform == "darwin":
    import fcntl

    def flush(fd: int) -> None:
        """Wait until a file's content is on the disk; plain fsync stops at the drive's cache on macOS."""
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(fd)  # a file system, mostly of another machine, that does not know the call

else:

    def flush(fd: int) -> None:
        """Wait until a file's content is on the disk."""
        os.fsync(fd)


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can do that."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # Windows cannot open folders; elsewhere a folder that we write to can be read
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
