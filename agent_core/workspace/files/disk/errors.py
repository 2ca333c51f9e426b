"""System errors of files and programs, as errors that tell the model how to go on."""

import errno
from pathlib import Path

from agent_core.kernel.errors import (
    AccessRefused,
    EditUnverified,
    FileMissing,
    FileTooLarge,
    NotAFile,
    NotAFolder,
    PathRefused,
    StaleText,
    WorkspaceError,
)

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
REFUSED = frozenset({errno.EACCES, errno.EPERM})


def workspace_error(error: OSError, path: Path) -> WorkspaceError:
    """Name what went wrong with a file."""
    match error.errno:
        case errno.ENOENT:
            return missing(path)
        case errno.EISDIR:
            return is_folder(path)
        case errno.ENOTDIR:
            return under_file(path)
        case errno.ELOOP:
            return swapped(path)
        case _:
            return _refused(error, path)


def _refused(error: OSError, path: Path) -> AccessRefused:
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    if error.errno in FULL:
        return AccessRefused(
            f"No space for {path} ({code}): nothing was written, what was there is as it was. Free some space first."
        )
    if error.errno in REFUSED:
        return AccessRefused(
            f"Permission denied: {path} ({code}).",
            advice=" Use another file, or ask the user to change its permissions.",
        )
    if error.errno == errno.EROFS:
        return AccessRefused(
            f"Read-only: {path} lies on a disk that cannot be written to ({code}): nothing was written.",
            advice=" Use another folder, or tell the user.",
        )
    return AccessRefused(f"Cannot use {path}: {error.strerror} ({code})")


def missing(path: Path) -> FileMissing:
    """Make the error for a path with nothing there."""
    return FileMissing(
        f"File not found: {path} (ENOENT).", advice=" Look for the right name first."
    )


def is_folder(path: Path) -> NotAFile:
    """Make the error for a folder where a file was meant."""
    return NotAFile(f"Is a directory: {path} (EISDIR).", advice=" Name a file inside it.")


def is_special(path: Path) -> NotAFile:
    """Make the error for a device, pipe or socket."""
    return NotAFile(f"Not a regular file: {path} is a device, a pipe or a socket")


def under_file(path: Path) -> NotAFile:
    """Make the error for a path that goes on below a file."""
    return NotAFile(f"Not a directory (ENOTDIR): a file is used as a folder in {path}")


def no_folder(path: Path) -> NotAFolder:
    """Make the error for a file or device where a folder was meant."""
    return NotAFolder(f"Not a directory: {path} (ENOTDIR).", advice=" Name a folder.")


def too_large(path: Path, *, size: int) -> FileTooLarge:
    """Make the error for a file of too many bytes."""
    return FileTooLarge(
        f"{path} is too large to read whole ({size} bytes)",
        advice=": use bash with head, tail, sed or grep",
    )


def not_deleted(path: Path) -> StaleText:
    """Make the error for a file to delete that is not what it was."""
    return StaleText(
        f"{path} changed since it was read: it was not deleted.", advice=" Read it again."
    )


def gone_already(path: Path) -> StaleText:
    """Make the error for a file to delete that somebody else deleted."""
    return StaleText(f"{path} was deleted since it was read: there was nothing left to delete.")


def not_moved(source: Path, target: Path) -> StaleText:
    """Make the error for a new name that is taken."""
    return StaleText(
        f"{target} exists already: {source} was not moved.",
        advice=" Choose another name, or deal with that file first.",
    )


def swapped(path: Path) -> PathRefused:
    """Make the error for a path that has a link where there was none a moment ago, or one in a circle."""
    return PathRefused(
        f"{path} was refused: a symbolic link in it leads in a circle or changed while it was used (ELOOP). Try again."
    )


def changed(path: Path) -> StaleText:
    """Make the error for a text that somebody else has changed."""
    return StaleText(
        f"{path} changed since it was read: nothing was written.", advice=" Read it again."
    )


def deleted(path: Path) -> StaleText:
    """Make the error for a text that somebody else has deleted."""
    return StaleText(f"{path} was deleted since it was read: nothing was written.")


def foreign(path: Path, *, owner: int) -> AccessRefused:
    """Make the error for a file that belongs to another user."""
    return AccessRefused(
        f"{path} belongs to another user ({owner}): it was not changed.",
        advice=" Use another file, or ask the user to take it over.",
    )


def shared(path: Path) -> AccessRefused:
    """Make the error for a folder into which everybody may put files."""
    return AccessRefused(
        f"{path.parent} is a folder that all users of this machine share: nothing was changed in it.",
        advice=" Use a folder of the user's own.",
    )


def moved_away(path: Path) -> StaleText:
    """Make the error for a folder that was moved between check and use."""
    return StaleText(
        f"The folder of {path} was moved or replaced while it was used: nothing was written.",
        advice=" Look where it is now, and read the file again.",
    )


def written_elsewhere(path: Path) -> EditUnverified:
    """Make the error for a folder that was moved at the very moment of writing."""
    return EditUnverified(
        f"The folder of {path} was moved or replaced while it was written: the text is where that folder is now.",
        advice=" Look for it before going on.",
    )
