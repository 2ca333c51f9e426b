"""Finds the repository around a folder without asking git, which would obey its configuration on the way."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import UsageError
from agent_core.kernel.values import Value
from agent_core.workspace.files.text import read_plain
from agent_core.workspace.git.settings import read_values
from agent_core.workspace.sandbox.guards.git import git_folders

MARKER: Final = ".git"
WORKTREES: Final = "worktrees"
"""The folder of a repository that has a folder for each linked worktree."""
CEILINGS: Final = "GIT_CEILING_DIRECTORIES"
CONFIG: Final = "config"
WORKTREE_CONFIG: Final = "config.worktree"
MOST_CONFIG_BYTES: Final = 1_048_576


class RepositoryUnusable(UsageError):
    """There is no repository around a folder, or none that can be read safely; the text says why."""


class GitRepository(Value, frozen=True, kw_only=True):
    """A repository with a work tree."""

    root: Path
    """The top folder of the work tree, without links."""
    git_dir: Path
    """Has HEAD and the index."""
    common_dir: Path
    """Has the objects and the refs; another folder than `git_dir` in a linked worktree."""
    values: Mapping[str, str]
    """The plain settings of its configuration: read by us, and never by git."""


def find_repository(folder: Path, env: Mapping[str, str]) -> GitRepository:
    """Return the repository around a folder. Blocking.

    A `.git` that leads out of its folder counts only if the folder that it leads to names this one back, as
    those of worktrees and submodules do.

    Args:
        folder: Where the search begins; it goes upwards.
        env: The environment of the user, for `GIT_CEILING_DIRECTORIES`.

    Raises:
        RepositoryUnusable: There is none, or it cannot be read.
    """
    start = Path(os.path.realpath(folder))
    if not start.is_dir():
        message = f"the folder {str(folder)!r} was not found; name one that is there"
        raise RepositoryUnusable(message)
    ceilings = {os.path.realpath(one) for one in env.get(CEILINGS, "").split(os.pathsep) if one}
    for top in (start, *start.parents):
        if top != start and str(top) in ceilings:
            break
        marker = top / MARKER
        if is_git_folder(top):
            message = f"{str(folder)!r} is in the Git folder {str(top)!r}, which has no files; run it in a work tree"
            raise RepositoryUnusable(message)
        if marker.is_file() or is_git_folder(marker):
            return _repository(top, start)
    message = f"{str(folder)!r} is in no Git repository with files; run it inside one"
    raise RepositoryUnusable(message)


def registered_worktree(root: Path, *, git_dir: Path, common_dir: Path) -> GitRepository:
    """Return the repository of a linked worktree by its place in the repository; its folder may be missing. Blocking.

    Args:
        root: The top folder of the worktree, without links. Its `.git` is not read.
        git_dir: The folder of the repository that belongs to the worktree.
        common_dir: The folder of the repository.

    Raises:
        RepositoryUnusable: The repository is not there, or it does not have this worktree.
    """
    if not is_git_folder(common_dir):
        message = f"the repository {str(common_dir)!r} of the worktree is not there"
        raise RepositoryUnusable(message)
    if git_dir.parent != common_dir / WORKTREES or Path(os.path.realpath(git_dir)) != git_dir:
        message = f"{str(git_dir)!r} is no place that Git has for a worktree"
        raise RepositoryUnusable(message)
    try:
        named = read_part(git_dir / "gitdir", most_bytes=MOST_CONFIG_BYTES)
        _ = read_part(git_dir / "HEAD", most_bytes=MOST_CONFIG_BYTES)
    except OSError as error:
        message = f"the repository {str(common_dir)!r} does not know the worktree {str(root)!r} any more ({error.strerror})"
        raise RepositoryUnusable(message) from error
    if os.fsdecode(named.strip()) != str(root / MARKER):
        message = f"{str(git_dir)!r} belongs to another worktree ({os.fsdecode(named.strip())!r})"
        raise RepositoryUnusable(message)
    values = _values(git_dir, common_dir)
    return GitRepository(root=root, git_dir=git_dir, common_dir=common_dir, values=values)


def is_git_folder(path: Path) -> bool:
    """Return whether a folder has what makes it one of git's."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def read_part(path: Path, *, most_bytes: int) -> bytes:
    """Return the content of a plain file of a repository; links are not followed.

    Raises:
        OSError: It is not there, or it is a link.
        RepositoryUnusable: It is no plain file, or too large.
    """
    try:
        return read_plain(path, most_bytes=most_bytes)
    except ValueError as error:
        message = f"{error}, so the repository is not read"
        raise RepositoryUnusable(message) from error


def _repository(top: Path, start: Path) -> GitRepository:
    folders = git_folders(top)
    if not folders:
        message = f"the {MARKER} of {str(top)!r} leads to a folder that does not name this one back; it is not followed. `git worktree repair` mends a worktree that was moved"
        raise RepositoryUnusable(message)
    common, git_dir = folders[0].path, folders[-1].path
    if not is_git_folder(common) or not (git_dir / "HEAD").is_file():
        message = (
            f"{str(git_dir)!r} is no Git folder that can be read: HEAD, objects or refs is missing"
        )
        raise RepositoryUnusable(message)
    _check_owner(git_dir, top, start)
    values = _values(git_dir, common)
    if values.get("extensions.refstorage", "files") != "files" or (common / "reftable").exists():
        message = f"{str(top)!r} keeps its branches as a reftable, which Tiller cannot read; `git refs migrate --ref-format=files` changes that"
        raise RepositoryUnusable(message)
    named = values.get("core.worktree")
    if git_dir == common and named is not None and _real(git_dir, named) != top:
        message = f"the configuration of {str(top)!r} names another work tree (core.worktree = {named!r}), which is not followed; remove that setting"
        raise RepositoryUnusable(message)
    return GitRepository(root=top, git_dir=git_dir, common_dir=common, values=values)


def _check_owner(git_dir: Path, top: Path, start: Path) -> None:
    """Refuse a repository that somebody else has put above the folder, as `/tmp/.git`.

    Raises:
        RepositoryUnusable: It is somebody else's.
    """
    owner = git_dir.stat().st_uid
    if owner not in {os.geteuid(), 0, start.stat().st_uid}:
        message = (
            f"the repository {str(top)!r} belongs to another user (uid {owner}), so it is not read"
        )
        raise RepositoryUnusable(message)


def _values(git_dir: Path, common: Path) -> Mapping[str, str]:
    values = dict(_read_config(common / CONFIG))
    if values.get("extensions.worktreeconfig", "").lower() in {"true", "yes", "on", "1"}:
        values |= _read_config(git_dir / WORKTREE_CONFIG)
    return values


def _read_config(path: Path) -> Mapping[str, str]:
    with suppress(FileNotFoundError):
        try:
            content = read_part(path, most_bytes=MOST_CONFIG_BYTES)
        except FileNotFoundError:
            raise
        except OSError as error:
            message = f"{str(path)!r} cannot be read ({error.strerror})"
            raise RepositoryUnusable(message) from error
        return read_values(content.decode("utf-8", "surrogateescape"))
    return {}


def _real(folder: Path, named: str) -> Path:
    return Path(os.path.realpath(folder / named))
