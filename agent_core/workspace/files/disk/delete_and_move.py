"""Deletion and renaming of files, so that no file is lost to a race. Blocking."""

import errno
import hashlib
import os
import secrets
import sys

from msgspec.structs import replace

from agent_core.kernel.errors import AccessRefused, StaleText
from agent_core.workspace.files.disk.errors import (
    gone_already,
    missing,
    not_deleted,
    not_moved,
)
from agent_core.workspace.files.disk.path_handle import (
    PathHandle,
    check_changeable,
    check_folder,
    check_in_place,
    check_regular,
)
from agent_core.workspace.files.disk.regular_files import open_regular, sync_folder

CLAIM = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LINUX_NO_REPLACE = 1
MACOS_EXCLUSIVE = 4
NOT_HERE = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
"""Said by systems and file systems that cannot refuse to replace a name."""


def delete(place: PathHandle, *, expected_sha256: str) -> None:
    """Delete a file, if its bytes are still the expected ones.

    It is put aside under another name before it is looked at for the last time, so what others save under the
    old name is theirs to keep. Only what a program writes into the open file between that look and its end,
    some microseconds later, is lost.

    Raises:
        StaleText: It changed, and is still there; or it went away.
        NotAFile: Something else is there now.
        AccessRefused: It is write-protected or somebody else's.
        OSError: The system says no; the file is still there.
    """
    found = place.look()
    if found is None:
        raise gone_already(place.path)
    check_regular(found, place.path)
    check_changeable(place, found)
    _check_same(place, expected_sha256)
    temporary = replace(place, name=f".tiller-{secrets.token_hex(8)}.tmp")
    check_in_place(place)
    try:
        os.rename(place.name, temporary.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except FileNotFoundError as error:
        raise gone_already(place.path) from error
    try:
        _check_same(temporary, expected_sha256)
        os.unlink(temporary.name, dir_fd=place.folder)
    except BaseException as error:
        _put_back(place, temporary, error)
        raise
    sync_folder(place.folder)


def move(source: PathHandle, target: PathHandle) -> None:
    """Rename a file; the new name must be free, and everything else about the file stays the same.

    Raises:
        FileMissing: Nothing at the source.
        NotAFile: It is no regular file.
        StaleText: Something is at the target.
        AccessRefused: The target is on another file system, or everybody writes to one of the folders.
        OSError: The system refuses; the file is where it was.
    """
    check_movable(source)
    for place in (source, target):
        check_folder(place)
        check_in_place(place)
    try:
        _rename_to_free(source, target)
    except FileExistsError as error:
        raise not_moved(source.path, target.path) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        message = (
            f"{source.path} cannot be moved to {target.path}: that is on another file system (EXDEV). "
            "Write the text there, then delete this file."
        )
        raise AccessRefused(message) from error
    sync_folder(target.folder)
    sync_folder(source.folder)


def check_movable(source: PathHandle) -> None:
    """Refuse what is not there or no regular file.

    Raises:
        FileMissing: Nothing there.
        NotAFile: A folder or something special.
    """
    if (found := source.look()) is None:
        raise missing(source.path)
    check_regular(found, source.path)


def _check_same(place: PathHandle, expected_sha256: str) -> None:
    with open_regular(place) as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != expected_sha256:
            raise not_deleted(place.path)


def _put_back(place: PathHandle, temporary: PathHandle, why: BaseException) -> None:
    """Rename a set-aside file back to its name; if the name is taken by now, both files stay."""
    try:
        _rename_to_free(temporary, place)
    except FileExistsError:
        kept = place.path.with_name(temporary.name)
        message = f"{place.path} was replaced while it was to be deleted: that file is still there, what it had before is in {kept}."
        raise StaleText(message) from why


def _rename_to_free(source: PathHandle, target: PathHandle) -> None:
    """Rename, and never over something.

    Raises:
        FileExistsError: The name is taken.
        OSError: The system says no.
    """
    code = _rename_exclusively(source, target)
    if code in NOT_HERE:
        _rename_over_claim(source, target)
    elif code:
        raise OSError(code, os.strerror(code), str(target.path))


def _rename_exclusively(source: PathHandle, target: PathHandle) -> int:
    """Rename in one step of the system, which Python cannot name; gives its error number, 0 for none."""
    import ctypes  # noqa: PLC0415 - costs time to load, and is needed seldom

    library = ctypes.CDLL(None, use_errno=True)
    is_macos = sys.platform == "darwin"
    name = "renameatx_np" if is_macos else "renameat2"
    flag = MACOS_EXCLUSIVE if is_macos else LINUX_NO_REPLACE
    try:
        rename = library[name]
    except AttributeError:
        return errno.ENOSYS
    rename.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    )
    rename.restype = ctypes.c_int
    old, new = os.fsencode(source.name), os.fsencode(target.name)
    return ctypes.get_errno() if rename(source.folder, old, target.folder, new, flag) else 0


def _rename_over_claim(source: PathHandle, target: PathHandle) -> None:
    """Claim the new name with an empty file, then rename over that."""
    with os.fdopen(os.open(target.name, CLAIM, 0o600, dir_fd=target.folder), "wb") as claim:
        try:
            os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
        except BaseException:
            now, mine = target.look(), os.fstat(claim.fileno())
            if now is not None and os.path.samestat(now, mine) and mine.st_size == 0:
                os.unlink(target.name, dir_fd=target.folder)
            raise
