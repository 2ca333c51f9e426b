"""The folders in which git keeps what belongs to a workspace, and what in them makes git run programs."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.kernel.records import dataclass

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
MOST_BYTES: Final = 65_536
TAME_KEYS: Final = frozenset(
    {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "symlinks"),
        *("precomposeunicode", "url", "fetch", "remote", "merge", "name", "email", "active", "defaultbranch"),
    }
)  # fmt: skip
"""Keys of a new repository that make git run nothing."""
TAME_URL: Final = re.compile(r"(https?://|ssh://|git://|git@|/|\./|\.\./|file://)[^\s]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFolder:
    """A folder that git writes to when it works for a workspace."""

    path: Path
    """Real."""
    guarded: tuple[Path, ...]
    """What in it is there and must not be changed."""


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
    """Tell whether a git folder that has just been made makes git run nothing. Blocking; no when in doubt."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            return False
        hooks = folder / "hooks"
        if hooks.is_symlink():
            return False
        if hooks.is_dir() and any(not one.name.endswith(".sample") for one in hooks.iterdir()):
            return False
        if any(
            _exists(folder / name) for name in ("config.worktree", "commondir", "gitdir", "modules")
        ):
            return False
        return _exists(folder / "config") and is_tame_config(_text(folder / "config"))
    except (OSError, ValueError):
        return False


def is_tame_config(text: str) -> bool:
    """Tell whether every line of a git configuration is one that a new repository has."""
    return all(_is_tame_line(line.strip()) for line in text.splitlines())


def _is_tame_line(line: str) -> bool:
    if not line or line.startswith(("#", ";")):
        return True
    if line.startswith("["):
        return re.fullmatch(r'\[(core|user|init|(remote|branch) "[\w./-]+")\]', line) is not None
    key, _, value = (part.strip() for part in line.partition("="))
    if key.lower() not in TAME_KEYS or line.endswith("\\"):
        return False
    return key.lower() != "url" or TAME_URL.fullmatch(value) is not None


def _named_by(file: Path) -> Path | None:
    """Give the folder that a `.git` file names."""
    with suppress(OSError, ValueError):
        text = _text(file)
        if text.startswith("gitdir:"):
            return _real(file.parent / text.removeprefix("gitdir:").strip())
    return None


def _names_back(folder: Path, file: Path, root: Path) -> bool:
    """Tell whether a git folder belongs to this root by its own word."""
    with suppress(OSError, ValueError):
        back = _text(folder / "gitdir").strip()
        return bool(back) and _real((folder / back).parent) == root and Path(back).name == file.name
    with suppress(OSError, ValueError):
        for line in _text(folder / "config").splitlines():
            key, _, value = (part.strip() for part in line.partition("="))
            if key == "worktree":
                return _real(folder / value) == root
    return False


def _common(folder: Path) -> Path | None:
    """Give the folder of the repository that a worktree belongs to."""
    with suppress(OSError, ValueError):
        common = _real(folder / _text(folder / "commondir").strip())
        # git makes worktrees nowhere else; another place would be somebody's invention.
        if common is not None and folder.parent == common / "worktrees":
            return common
    return None


def _text(path: Path) -> str:
    """Read a file whole.

    Raises:
        ValueError: It is too long: its end would count for git and not for us.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        message = f"more than {MOST_BYTES} bytes: {path}"
        raise ValueError(message)
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
    """Give those that do not lie in the root."""
    return tuple(one for one in folders if not one.path.is_relative_to(root))
