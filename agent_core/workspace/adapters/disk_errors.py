"""What the system says about files and programs, as errors that tell the model how to go on."""

import errno
from pathlib import Path

from agent_core.kernel.errors import (
    AccessRefused,
    FileMissing,
    NotAFile,
    PathRefused,
    WorkspaceError,
)

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def workspace_error(error: OSError, path: Path) -> WorkspaceError:
    """Name what went wrong with a file."""
    match error.errno:
        case errno.ENOENT:
            return missing(path)
        case errno.EISDIR:
            return is_folder(path)
        case errno.ENOTDIR:
            return NotAFile(f"Not a directory (ENOTDIR): a file is used as a folder in {path}")
        case errno.ELOOP:
            return swapped(path)
        case _:
            return AccessRefused(_refused(error, path))


def _refused(error: OSError, path: Path) -> str:
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    if error.errno in FULL:
        return f"No space for {path} ({code}): nothing was written, what was there is as it was. Free some space first."
    if error.errno in REFUSED:
        return f"Permission denied: {path} ({code}). Use another file, or ask the user to change its permissions."
    return f"Cannot use {path}: {error.strerror} ({code})"


def missing(path: Path) -> FileMissing:
    """Make the error for a path with nothing there."""
    return FileMissing(f"File not found: {path} (ENOENT). Look for the right name first.")


def is_folder(path: Path) -> NotAFile:
    """Make the error for a folder where a file was meant."""
    return NotAFile(f"Is a directory: {path} (EISDIR). Name a file inside it.")


def is_special(path: Path) -> NotAFile:
    """Make the error for a device, pipe or socket."""
    return NotAFile(f"Not a regular file: {path} is a device, a pipe or a socket")


def swapped(path: Path) -> PathRefused:
    """Make the error for a path that has a link where there was none a moment ago, or one in a circle."""
    return PathRefused(
        f"{path} was refused: a symbolic link in it leads in a circle or changed while it was used (ELOOP). Try again."
    )
