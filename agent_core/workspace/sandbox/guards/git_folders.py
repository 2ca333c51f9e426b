"""The folders in which git keeps what belongs to a workspace, and what in them makes git run programs."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.files.small_file import read_plain

RUNS_PROGRAMS: Final = (
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "commondir",
    "gitdir",
)
"""Names in a git folder that say what git runs, or where it looks for that. `commondir` names another folder's config."""
UNFINISHED: Final = frozenset({"rebase-merge", "rebase-apply", "sequencer"})
"""Folders of what git was in the middle of: the next step may be a program."""
WILD: Final = (
    frozenset({"config.worktree", "commondir", "gitdir", "modules", "worktrees"}) | UNFINISHED
)
"""Names that a new repository does not have, and that lead git to other settings, repositories or programs."""
STEPS: Final = ("rebase-merge/git-rebase-todo", "rebase-merge/strategy", "sequencer/opts")
"""Files that define how git continues an unfinished operation."""
_STEP: Final = re.compile(r"[ \t]*(?:exec|x)[ \t]|[ \t]*strategy[ \t]*=", re.IGNORECASE)
_STRATEGY: Final = re.compile(
    r"(?:[ \t]*strategy[ \t]*=)?[ \t]*(?:ort|recursive|resolve|octopus|ours|subtree)[ \t]*"
)
MOST_BYTES: Final = 65_536
NEUTRAL_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n"
TAME_KEYS: Final = frozenset(
    {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "symlinks"),
        *("objectformat", "refstorage", "autocrlf", "eol", "safecrlf"),
        *("precomposeunicode", "url", "fetch", "remote", "merge", "name", "email", "active", "defaultbranch"),
    }
)  # fmt: skip
"""Keys of a new repository that make git run nothing."""
TAME_URL: Final = re.compile(r"(https?://|ssh://|git://|git@|/|\./|\.\./|file://)[^\s]*")


class GitFolder(Value, frozen=True, kw_only=True):
    """A folder that git writes to when it works for a workspace."""

    path: Path
    """Real."""
    guarded: tuple[Path, ...]
    """Existing entries of the folder that must not be changed."""


def git_folders(root: Path) -> tuple[GitFolder, ...]:
    """Find the git folders of a root: its own, or those that a worktree or submodule names. Blocking.

    A folder outside of the root counts only if it names this root back. Else a file that came with the project could
    open somebody else's repository.
    """
    at = root / ".git"
    if at.is_symlink():
        real = _real(at)
        return (_folder(real),) if real is not None and _is_inside(real, root) else ()
    if at.is_dir():
        return (_folder(at),)
    named = _named_by(at)
    if named is None:
        return ()
    if not _is_inside(named, root) and not _names_back(named, at, root):
        return ()
    common = _common(named)
    folders = [_folder(named)]
    if common is not None and common != named:
        folders.insert(0, _folder(common))
    return tuple(folders)


def _folder(path: Path) -> GitFolder:
    there = (path / name for name in RUNS_PROGRAMS)
    return GitFolder(path=path, guarded=tuple(one for one in there if _exists(one)))


def is_tame(folder: Path) -> bool:
    """Return whether a repository that has just been made makes git run nothing. Blocking; no when in doubt."""
    try:
        return not folder.is_symlink() and folder.is_dir() and _holds_nothing_wild(folder)
    except (OSError, ValueError):
        return False


def _holds_nothing_wild(folder: Path) -> bool:
    inside = {one.name: one for one in folder.iterdir()}
    # What a link leads to may become something else.
    if any(one.is_symlink() for one in inside.values()) or not WILD.isdisjoint(inside):
        return False
    hooks = folder / "hooks"
    names = [one.name for one in hooks.iterdir()] if hooks.is_dir() else []
    if not is_tame_hooks(names) or _exists(folder / "info" / "attributes"):
        return False
    if "config" in inside and os.lstat(folder / "config").st_nlink != 1:
        return False  # under another name it could be changed later
    text = git_text(folder / "config") if "config" in inside else ""
    return not text or neutral_config(text) == text


def is_tame_hooks(names: Iterable[str]) -> bool:
    """Return whether git runs none of the files in a folder of hooks, by their names."""
    return all(name.endswith(".sample") for name in names)


def neutral_config(text: str) -> str:
    """Return the lines of a git configuration that make git run nothing, as a new repository has them.

    All of it when nothing else is in it; never without the version of the format, which git wants.
    """
    kept: list[str] = []
    is_continued = is_tame_section = False
    # Git ends lines at this character alone.
    for line in text.split("\n"):
        bare, was_continued = line.strip(" \t\r"), is_continued
        is_continued = bare.endswith("\\")
        if bare.startswith("["):
            is_tame_section = _is_tame_line(bare)
        is_setting = bool(bare) and bare[0] not in "#;["
        if (
            is_continued
            or was_continued
            or (is_setting and not is_tame_section)
            or not bare.isprintable()
        ):
            continue
        if _is_tame_line(bare):
            kept.append(line)
    neutral = "\n".join(kept)
    return neutral if "repositoryformatversion" in neutral else NEUTRAL_CONFIG + neutral


def _is_tame_line(line: str) -> bool:
    if not line or line.startswith(("#", ";")):
        return True
    if line.startswith("["):
        return (
            re.fullmatch(r'\[(core|user|init|extensions|(remote|branch) "[\w./-]+")\]', line)
            is not None
        )
    key, _, value = (part.strip() for part in line.partition("="))
    if key.lower() not in TAME_KEYS or line.endswith("\\"):
        return False
    return key.lower() != "url" or TAME_URL.fullmatch(value) is not None


def _named_by(file: Path) -> Path | None:
    """Return the folder that a `.git` file names."""
    with suppress(OSError, ValueError):
        text = git_text(file)
        if text.startswith("gitdir:"):
            return _real(file.parent / text.removeprefix("gitdir:").strip())
    return None


def _names_back(folder: Path, file: Path, root: Path) -> bool:
    """Return whether a git folder belongs to this root by its own word."""
    with suppress(OSError, ValueError):
        back = git_text(folder / "gitdir").strip()
        return bool(back) and _real((folder / back).parent) == root and Path(back).name == file.name
    with suppress(OSError, ValueError):
        for line in git_text(folder / "config").splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            if key == "worktree":
                return _real(folder / value) == root
    return False


def _common(folder: Path) -> Path | None:
    """Return the folder of the repository that a worktree belongs to."""
    with suppress(OSError, ValueError):
        common = _real(folder / git_text(folder / "commondir").strip())
        # git makes worktrees nowhere else; another place would be somebody's invention.
        if common is not None and folder.parent == common / "worktrees":
            return common
    return None


def unfinished_programs(folders: Iterable[Path]) -> frozenset[tuple[Path, str]]:
    """Return the steps of what git was in the middle of that run programs, each with its file. Blocking."""
    found: set[tuple[Path, str]] = set()
    for folder in folders:
        for path in (folder / name for name in STEPS):
            try:
                lines = git_text(path).split("\n")
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                lines = ["exec unreadable"]
            is_strategy = path.name == "strategy"
            found.update(
                (path, line)
                for line in lines
                if (_STEP.match(line) or (is_strategy and line)) and not _STRATEGY.fullmatch(line)
            )
    return frozenset(found)


def git_text(path: Path) -> str:
    """Return the text of a small file of git, also behind a link, as git reads it.

    Raises:
        OSError: It is not there.
        ValueError: It is no plain file, or too long: its end would count for git and not for us.
    """
    content = read_plain(path, most_bytes=MOST_BYTES, follows_links=True)
    return content.decode("utf-8", "surrogateescape")


def _real(path: Path) -> Path | None:
    with suppress(OSError, RuntimeError):
        return path.resolve(strict=True)
    return None


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _is_inside(path: Path, root: Path) -> bool:
    return path != root and path.is_relative_to(root)


def outside(folders: Sequence[GitFolder], root: Path) -> tuple[GitFolder, ...]:
    """Return those that do not lie in the root."""
    return tuple(one for one in folders if not one.path.is_relative_to(root))
