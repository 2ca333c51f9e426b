"""Paths of session files, flushes to the disk, and the lock of a session.

Two signs stand for one lock. The kernel's lock on the open session file is gone the moment its holder dies; a small
file beside it says who holds it, for people, for file systems without such locks and for other machines.
"""

import errno
import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import asdict

from agent_core.kernel import json, rfc3339
from agent_core.kernel.errors import SessionLocked, UsageError
from agent_core.kernel.values import Value
from agent_core.transcript.entries import Header

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


SUFFIX = ".jsonl"
EVENTS_SUFFIX = ".events.jsonl"
"""In the place of a session's suffix: its recorded events, which end like a session and are none."""
DAMAGED_SUFFIX = ".damaged"
"""Suffix after a session's name: the file with the bytes that were cut off its end."""
OLD_SUFFIX = ".old"
"""Behind a session's name: the file as it was before it was brought to today's format."""
NEW_SUFFIX = ".new"
"""Behind a session's name: the file that is about to take its place."""
OF_TASKS = "-of-tasks"
"""End of the name of the folder that holds the sessions of tasks."""
OF_ATTACHMENTS = "-attachments"
"""End of the name of the folder that holds the attachments of sessions and of tasks."""
NAME_BYTES = 255
"""Longest file name that a file system allows, in bytes."""
HASH_CHARS = 16
ID_CHARS = 128
FOLDER_MODE = 0o700
FILE_MODE = 0o600


def tasks_folder(sessions: Path) -> Path:
    """Return the folder of the sessions of tasks, beside that of the others."""
    return sessions.with_name(f"{sessions.name}{OF_TASKS}")


def attachments_folder(sessions: Path) -> Path:
    """Return the folder of the attachments of sessions and of their tasks, beside both."""
    return sessions.with_name(f"{sessions.name.removesuffix(OF_TASKS)}{OF_ATTACHMENTS}")


_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[/\\:]")


def slug(cwd: str) -> str:
    """Name the folder that holds the sessions of a workspace; one that is too long is cut and hashed."""
    inner = _SEPARATORS.sub("-", re.sub(r"^[/\\]", "", cwd))
    name = f"--{inner}--"
    if len(os.fsencode(name)) <= NAME_BYTES:
        return name
    mark = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:HASH_CHARS]
    room = NAME_BYTES - len(f"---{mark}--")
    head = os.fsencode(inner)[:room].decode("utf-8", "ignore")
    return f"--{head}-{mark}--"


def file_name(header: Header) -> str:
    """Name a session's file: by time, then id.

    Raises:
        UsageError: The id cannot be part of a file name.
    """
    if not can_name_a_file(header.id):
        message = (
            f"the session id {header.id!r:.200} cannot name a file: use at most {ID_CHARS} letters, digits, "
            "dots, dashes and underscores, beginning and ending with a letter or digit"
        )
        raise UsageError(message)
    stamp = rfc3339(header.at_ms).replace(":", "-").replace(".", "-")
    return f"{stamp}_{header.id}{SUFFIX}"


def can_name_a_file(session: str) -> bool:
    """Return whether an id can be part of a file name; one that was written into a file by hand may be anything."""
    return len(session) <= ID_CHARS and _ID.fullmatch(session) is not None


def session_files(folder: Path) -> Iterator[Path]:
    """Return every file that may be a session: in the folder and in the workspaces' folders below it."""
    subfolders: list[Path] = []
    for entry in _entries(folder):
        if entry.is_dir():
            subfolders.append(Path(entry.path))
        elif _is_session(entry):
            yield Path(entry.path)
    for subfolder in subfolders:
        yield from (Path(entry.path) for entry in _entries(subfolder) if _is_session(entry))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, for the user alone; their names survive a power cut."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
        flush_folder(one.parent)


def _is_session(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    return name.endswith(SUFFIX) and not name.endswith(EVENTS_SUFFIX) and _is_file(entry)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []  # not made yet, or not ours to read: it holds no session that we could open


LOCK_SUFFIX = ".lock"
PID_LIMIT = 1 << 31
OWNER_BYTES = 4_096
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TAKEN = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})


if sys.platform == "win32":

    def hold(fd: int) -> bool | None:
        """Report that there is no such thing here as a lock that dies with its holder and hinders no reader."""
        del fd

else:
    import fcntl

    def hold(fd: int) -> bool | None:
        """Acquire the kernel's lock; False: another has it; None: the file system has no locks."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return False if error.errno in _TAKEN else None
        return True


class Owner(Value, frozen=True, kw_only=True):
    """A process, so that it can be told from another that got its number later."""

    pid: int
    host: str
    boot: str
    """Which start of the machine; empty where the system does not say."""
    start: str
    """When the process started, in the system's own terms; empty where it does not say."""


class Claim:
    """A session file that this process alone writes, until `release`."""

    def __init__(self, path: Path, *, written: bytes) -> None:
        self._path = path
        self._written = written

    def release(self) -> None:
        """Remove the lock file if it still names this claim; the caller closes the session file. Never raises."""
        try:
            if self._path.read_bytes() == self._written:
                self._path.unlink()
        except OSError:
            return  # it names a process that will be dead: whoever opens next takes over


def claim(path: Path, *, fd: int) -> Claim:
    """Claim an open session file for this process.

    A claim of a process that has ended, or from before the machine was started, is replaced.

    Args:
        path: The session file.
        fd: The open session file; the kernel's lock lasts as long as it is open.

    Raises:
        SessionLocked: Another writer has the file open, this process included.
        OSError: The file that names the owner cannot be written.
    """
    lock = path.with_name(path.name + LOCK_SUFFIX)
    locked = hold(fd)
    owner = _read_owner(lock)
    us = this_process()
    if locked is False or (owner is not None and _lives(owner, us=us, locked=locked is True)):
        raise SessionLocked(_refusal(path, owner, us=us))
    written = json.encode(asdict(us)) + b"\n"
    lock.unlink(missing_ok=True)
    try:
        _write(lock, written)
    except FileExistsError:
        raise SessionLocked(_refusal(path, _read_owner(lock), us=us)) from None
    return Claim(lock, written=written)


def this_process() -> Owner:
    """Return the identity of this process."""
    pid = os.getpid()
    return Owner(pid=pid, host=platform.node(), boot=_boot_id(), start=_start_of(pid) or "")


def is_written(path: Path) -> bool:
    """Return whether a living process, this one included, has a session file open for writing."""
    owner = _read_owner(path.with_name(path.name + LOCK_SUFFIX))
    return owner is not None and is_alive(owner)


def is_alive(owner: Owner) -> bool:
    """Return whether a process lives; one of another machine counts as living."""
    return _lives(owner, us=this_process(), locked=False)


def _lives(owner: Owner, *, us: Owner, locked: bool) -> bool:
    if owner.host != us.host:
        # Another machine's process cannot be looked up. Under the same kernel (another container)
        # it would hold the kernel's lock, and we have that.
        return not (locked and owner.boot and owner.boot == us.boot)
    if owner.boot != us.boot:
        return False
    start = _start_of(owner.pid)
    return start is not None and (not start or not owner.start or start == owner.start)


def _refusal(path: Path, owner: Owner | None, *, us: Owner) -> str:
    if owner is None:
        who = "by another process"
    elif (owner.pid, owner.host, owner.start) == (us.pid, us.host, us.start):
        who = f"by this very process ({owner.pid})"
    elif owner.host == us.host:
        who = f"by process {owner.pid}"
    else:
        who = f"by process {owner.pid} on {owner.host!r}"
    return (
        f"the session file {str(path)!r} is being written {who}: close it there first"
        f" (if nothing runs there any more, remove {path.name + LOCK_SUFFIX!r})"
    )


def _read_owner(lock: Path) -> Owner | None:
    """Read who holds a lock; None when nobody does or the file was left half written."""
    try:
        with lock.open("rb") as file:
            value = json.decode(file.read(OWNER_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    match value:
        case {"pid": int(pid), "host": str(host), "boot": str(boot), "start": str(start)} if (
            0 < pid < PID_LIMIT
        ):
            return Owner(pid=pid, host=host, boot=boot, start=start)
        case {"pid": int(pid)} if 0 < pid < PID_LIMIT:
            return Owner(pid=pid, host=platform.node(), boot=_boot_id(), start="")
        case _:
            return None


def _write(lock: Path, text: bytes) -> None:
    fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        os.write(fd, text)
    except OSError:
        lock.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _start_of(pid: int) -> str | None:
    """Return when a process started, in the system's terms; None: there is none (a zombie is none), empty: unknown."""
    # psutil's start time moves when somebody sets the clock: the kernel's own count does not.
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        state, *rest = fields.rpartition(")")[2].split()
        return None if state in {"Z", "X"} else rest[18]
    except (OSError, ValueError, IndexError):
        pass
    import psutil  # noqa: PLC0415 - 20 ms, where the kernel keeps no such file

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.Error:
        return ""
