"""Reads the state of a git repository: its index, objects, refs and reflogs."""

import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from agent_core.kernel.errors import WorkspaceError
from agent_core.kernel.values import Value
from agent_core.workspace import Process, Processes
from agent_core.workspace.files.text import read_plain

MOST_INDEX_BYTES: Final = 67_108_864
HEAD: Final = struct.Struct(">4sLL")
ENTRY: Final = struct.Struct(">10L20sH")
"""Times of change and of modification (seconds, nanoseconds each), device, inode, mode, user, group, size, object, flags."""
EXTENDED: Final = 0x4000
NAME_BITS: Final = 0x0FFF
STAGE_BITS: Final = 0x3000
VERSIONS: Final = frozenset({2, 3})
ALIGNED: Final = 8


class _Head(NamedTuple):
    mark: bytes
    version: int
    entries: int


class _Entry(NamedTuple):
    ctime_s: int
    ctime_ns: int
    mtime_s: int
    mtime_ns: int
    device: int
    inode: int
    mode: int
    user: int
    group: int
    size: int
    object: bytes
    flags: int


class TrackedFile(Value, frozen=True):
    """A file as git knew it."""

    mtime_ns: int
    inode: int
    size: int
    object: bytes


def index_of(root: Path) -> bytes | None:
    """Read the index of a repository that begins at a folder. Blocks.

    Returns:
        None: There is none, or one that this cannot read.
    """
    try:
        opened = os.open(root / ".git" / "index", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with os.fdopen(opened, "rb") as file:
            found = os.fstat(opened)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_INDEX_BYTES:
                return None
            return file.read()
    except OSError:
        return None


def tracked_in(index: bytes, *, written_ns: int) -> Mapping[bytes, TrackedFile]:
    """Return the files of an index by their path, those of which git can be sure.

    Args:
        index: Its bytes.
        written_ns: When it was written: a file that was modified then or later may hold something else.
    """
    found: dict[bytes, TrackedFile] = {}
    if len(index) < HEAD.size:
        return found
    mark, version, entries = _Head(*HEAD.unpack_from(index))
    if mark != b"DIRC" or version not in VERSIONS:
        return found
    at = HEAD.size
    try:
        for _ in range(entries):
            at = _entry(index, at, found, written_ns)
    except (struct.error, ValueError):
        # Cut off, or of a kind that is not known here: what is not sure is not used.
        return {}
    return found


def _entry(index: bytes, at: int, found: dict[bytes, TrackedFile], written_ns: int) -> int:
    """Read one entry; gives where the next one begins."""
    fields = _Entry(*ENTRY.unpack_from(index, at))
    flags = fields.flags
    begin = at + ENTRY.size + (2 if flags & EXTENDED else 0)
    end = index.index(b"\0", begin)
    mtime_ns = fields.mtime_s * 1_000_000_000 + fields.mtime_ns
    if flags & NAME_BITS < NAME_BITS and end - begin != flags & NAME_BITS:
        message = "the index has objects of another size, or a format that is not known"
        raise ValueError(message)
    is_file = stat.S_ISREG(fields.mode)
    if is_file and not flags & STAGE_BITS and mtime_ns < written_ns:
        found[index[begin:end]] = TrackedFile(mtime_ns, fields.inode, fields.size, fields.object)
    return at + (end - at + ALIGNED) // ALIGNED * ALIGNED


PATIENCE_S: Final = 10.0
GRACE_S: Final = 0.1
MOST_OBJECT_BYTES: Final = 268_435_456


async def objects_of(
    root: Path,
    names: Sequence[bytes],
    *,
    roots: Sequence[Path],
    processes: Processes,
    env: Mapping[str, str],
) -> Mapping[bytes, bytes]:
    """Return objects by name; those that cannot be read are left out.

    Args:
        root: The folder of the repository.
        names: Hashes of blobs.
        roots: The folders of the workspace; no program of these is started.
        processes: Starts git, contained where that is possible.
        env: The environment of the user.
    """
    from agent_core.workspace.git.object_command import object_command  # noqa: PLC0415 - at first use

    command = await object_command(root, "cat-file", "--batch", env=env, roots=roots)
    if command is None:
        return {}
    found: dict[bytes, bytes] = {}
    asked = b"".join(name.hex().encode() + b"\n" for name in names)
    try:
        with anyio.move_on_after(PATIENCE_S):
            process = await processes.start(command.argv, cwd=root, env=command.env, stdin=asked)
            try:
                found = _read(await _output(process), names)
            finally:
                with anyio.move_on_after(1.0, shield=True):
                    _ = await process.end(grace_s=GRACE_S)
    except WorkspaceError:
        return {}  # no git here
    return found


async def _output(process: Process) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while data := await process.read():
        pieces.append(data)
        size += len(data)
        if size > MOST_OBJECT_BYTES:
            break
    return b"".join(pieces)


def _read(output: bytes, names: Sequence[bytes]) -> dict[bytes, bytes]:
    """Read what `cat-file --batch` wrote: a line of name, kind and size, the object, and a newline, for each."""
    found: dict[bytes, bytes] = {}
    at = 0
    for name in names:
        end = output.find(b"\n", at)
        if end < 0:
            break
        header = output[at:end].split()
        at = end + 1
        if len(header) != 3 or header[0] != name.hex().encode():  # noqa: PLR2004 - name, kind, size
            # `… missing`, or what stderr said; the next line may be right again.
            continue
        size = int(header[2])
        data = output[at : at + size]
        at += size + 1
        # Whatever else was written in between, nothing is taken for an object that it is not.
        if header[1] == b"blob" and _name_of(data) == name:
            found[name] = data
    return found


def _name_of(data: bytes) -> bytes:
    return sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).digest()


MOST_REFS: Final = 2_000
"""Of a repository with more, those beyond are not known."""
MOST_REF_BYTES: Final = 4_096
MOST_PACKED_BYTES: Final = 1_048_576
PARTS: Final = ("HEAD", "config", "index", "objects", "refs", "logs", "worktrees")
"""Entries of the `.git` folder that are reported when they are deleted, or, for files, emptied."""
PACKED: Final = re.compile(r"([0-9a-f]{40,64}) (refs/\S+)")
NAMED: Final = re.compile(r"[0-9a-f]{40,64}|ref: refs/\S+")


class RepositorySnapshot(Value, frozen=True, kw_only=True):
    """State of the `.git` folder of a root; all fields are empty if there is none."""

    folder: Path
    parts: frozenset[Path]
    refs: Mapping[Path, str]
    """Targets of the refs, `HEAD` included, by path; refs that git could not read are left out."""
    logs: Mapping[Path, int]
    """The sizes of reflogs, by the path of their ref."""


def look_at_repository(root: Path) -> RepositorySnapshot:
    """Return what a root's repository holds; a `.git` that is no folder counts as none."""
    git = root / ".git"
    if git.is_symlink() or not git.is_dir():
        return RepositorySnapshot(folder=git, parts=frozenset(), refs={}, logs={})
    parts = {git, *(git / name for name in PARTS if _holds_something(git / name))}
    refs = _packed(git)
    for path in (git / "HEAD", *_files(git / "refs")):
        text = _text(path, MOST_REF_BYTES).strip()
        if NAMED.fullmatch(text):
            refs[path] = text
        else:
            _ = refs.pop(path, None)
    logs: dict[Path, int] = {}
    for path in _files(git / "logs"):
        with suppress(OSError):
            logs[git / path.relative_to(git / "logs")] = path.lstat().st_size
    return RepositorySnapshot(folder=git, parts=frozenset(parts), refs=refs, logs=logs)


def lost_refs(before: RepositorySnapshot, now: RepositorySnapshot) -> Iterator[tuple[Path, str]]:
    """Yield what is gone, the outermost alone, each with the object that it named, or an empty text.

    A ref that names something else counts if no reflog tells what it named; a reflog, if it is shorter.
    """
    gone = before.parts - now.parts
    outermost = {path for path in gone if gone.isdisjoint(path.parents)}
    yield from ((path, before.refs.get(path, "")) for path in sorted(outermost))
    renamed = {named for path, named in now.refs.items() if path not in before.refs}
    for path, named in sorted(before.refs.items()):
        is_kept = now.refs.get(path) == named or (path in now.refs and path in now.logs)
        is_kept = is_kept or (path not in now.refs and named in renamed)
        is_head = path.name == "HEAD" and path in now.refs
        if not is_kept and not is_head and gone.isdisjoint((path, *path.parents)):
            yield path, named
    logs = before.folder / "logs"
    for path, size in sorted(before.logs.items()):
        if logs not in gone and path in now.refs and now.logs.get(path, 0) < size:
            yield logs / path.relative_to(before.folder), ""


def _holds_something(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir() or path.lstat().st_size > 0
    return False


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for at, _, names in os.walk(folder):
        for name in names:
            if count >= MOST_REFS:
                return
            if not name.endswith(".lock"):
                count += 1
                yield Path(at, name)


def _packed(git: Path) -> dict[Path, str]:
    lines = (
        PACKED.fullmatch(line)
        for line in _text(git / "packed-refs", MOST_PACKED_BYTES).splitlines()
    )
    return {git / line[2]: line[1] for line in lines if line is not None}


def _text(path: Path, most_bytes: int) -> str:
    with suppress(OSError, ValueError):
        return read_plain(path, most_bytes=most_bytes).decode("utf-8")
    return ""
