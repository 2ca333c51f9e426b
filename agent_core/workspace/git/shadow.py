"""Private git folder beside a repository: it has the same commits, and nothing that could make git run a program.

Git obeys the configuration of its folder: filters, monitors, pagers, transports, other settings files. The names of
filters are the repository's own, so no list of switches covers them. Here git gets a folder with a configuration of
ours, a copy of the refs and the index, and the repository's objects to read. Git also writes its files to this folder.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.git.repository import (
    CONFIG,
    GitRepository,
    RepositoryUnusable,
    read_part,
)
from agent_core.workspace.git.settings import passed_on, written

HEADS: Final = ("HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD")
INFO: Final = ("exclude", "attributes", "sparse-checkout")
"""Lists of patterns. The attributes may name filters, which nothing defines here."""
SHARED_INDEX: Final = "sharedindex."
OWN_REFS: Final = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs that each linked worktree has for itself."""
MOST_LIST_BYTES: Final = 16_777_216
MOST_PACKED_BYTES: Final = 268_435_456
MOST_REF_BYTES: Final = 1_024
MOST_HEAD_BYTES: Final = 1_048_576
MOST_LOOSE_REFS: Final = 100_000
_REF: Final = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64}|ref: refs/[^\x00-\x20\x7f~^:?*\[\\]+)\s*")


class ShadowRepository(Value, frozen=True, kw_only=True):
    """A git folder of ours for somebody's repository."""

    repository: GitRepository
    git_dir: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that have git use it, with the repository's files as its work tree."""
        return {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.repository.root)}

    @property
    def index(self) -> Path:
        """The copy of the index."""
        return self.git_dir / "index"


def write_shadow(
    repository: GitRepository, folder: Path, *, chosen: Mapping[str, str]
) -> ShadowRepository:
    """Write a shadow of a repository. Blocking.

    Args:
        repository: The repository that git works on.
        folder: Is created, in a private temporary folder.
        chosen: Settings of the user, by name; those of the repository override them.

    Raises:
        RepositoryUnusable: A part of it is a link or no plain file, or is too large.
        OSError: The repository cannot be read, or the shadow cannot be written.
    """
    source, common = repository.git_dir, repository.common_dir
    (folder / "objects" / "info").mkdir(parents=True)
    (folder / "info").mkdir()
    values = {**chosen, **passed_on(repository.values)}
    _ = (folder / CONFIG).write_text(written(values), "utf-8", "surrogateescape")
    objects = _folder_in(common, "objects")
    _ = (folder / "objects" / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
    _write_refs(repository, folder)
    for name in HEADS:
        _copy(source / name, folder / name, most_bytes=MOST_HEAD_BYTES)
    if _REF.fullmatch((folder / "HEAD").read_bytes()) is None:
        message = f"{str(source / 'HEAD')!r} names neither a branch nor a commit"
        raise RepositoryUnusable(message)
    for name in ("shallow", "packed-refs"):
        _copy(common / name, folder / name, most_bytes=MOST_PACKED_BYTES)
    for name in INFO:
        # The patterns of a sparse checkout are each work tree's own.
        whose = source if name == "sparse-checkout" else common
        _copy(whose / "info" / name, folder / "info" / name, most_bytes=MOST_LIST_BYTES)
    _leave_out(folder, repository.root)
    for name in ("index", *_shared_indices(source)):
        _copy_whole(source / name, folder / name)
    return ShadowRepository(repository=repository, git_dir=folder)


def _write_refs(repository: GitRepository, folder: Path) -> None:
    """Copy the loose refs: a link among them could show another repository's."""
    (folder / "refs").mkdir()
    for base in dict.fromkeys((repository.common_dir, repository.git_dir)):
        for name, content in _loose_refs(base):
            if base != repository.common_dir and not name.startswith(OWN_REFS):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _ = target.write_bytes(content)


def _loose_refs(base: Path) -> Iterator[tuple[str, bytes]]:
    count = 0
    for at, folders, files in os.walk(_folder_in(base, "refs")):
        folders[:] = [name for name in folders if not (Path(at) / name).is_symlink()]
        for file in files:
            count += 1
            if count > MOST_LOOSE_REFS:
                message = f"{str(base)!r} has more than {MOST_LOOSE_REFS:,} loose refs; `git pack-refs --all` packs them"
                raise RepositoryUnusable(message)
            path = Path(at) / file
            try:
                content = read_part(path, most_bytes=MOST_REF_BYTES)
            except (OSError, RepositoryUnusable):
                continue  # git does without a broken one too
            if _REF.fullmatch(content):
                yield path.relative_to(base).as_posix(), content


def _folder_in(base: Path, name: str) -> Path:
    """Return a folder of the repository.

    Raises:
        RepositoryUnusable: It is a link: that could lead to somebody else's.
    """
    path = base / name
    if path.is_symlink():
        message = f"{str(path)!r} is a link, which is not followed, so the repository is not read"
        raise RepositoryUnusable(message)
    return path


def _copy(source: Path, target: Path, *, most_bytes: int) -> None:
    try:
        content = read_part(source, most_bytes=most_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(source, error) from error
    _ = target.write_bytes(content)


def _copy_whole(source: Path, target: Path) -> None:
    """Copy a file of any length with its time: by that git tells which files may have changed since it was written.

    Raises:
        RepositoryUnusable: It is a link or no plain file.
    """
    try:
        opened = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(source, error) from error
    with open(opened, "rb") as file, target.open("xb") as copy:  # noqa: PTH123 - a descriptor
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            message = f"{str(source)!r} is no plain file, so the repository is not read"
            raise RepositoryUnusable(message)
        shutil.copyfileobj(file, copy, 1 << 20)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _unreadable(path: Path, error: OSError) -> RepositoryUnusable:
    why = "it is a link" if path.is_symlink() else error.strerror
    return RepositoryUnusable(f"{str(path)!r} cannot be read ({why}), so the repository is not")


def _shared_indices(git_dir: Path) -> Sequence[str]:
    with os.scandir(git_dir) as entries:
        return [entry.name for entry in entries if entry.name.startswith(SHARED_INDEX)]


def _leave_out(folder: Path, root: Path) -> None:
    """Keep our own files out of what git sees, should the temporary folder lie in the work tree."""
    own = Path(os.path.realpath(folder.parent))
    if own != root and own.is_relative_to(root):
        with (folder / "info" / "exclude").open("ab") as file:
            _ = file.write(b"\n/" + os.fsencode(own.relative_to(root)) + b"/\n")


def _quoted(path: Path) -> bytes:
    """Return a path as git reads it in a list of alternates."""
    plain = os.fsencode(os.path.realpath(path))
    escaped = plain.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'
