"""Finds folders whose instructions a git worktree repeats: the main repository's, when the worktree lies inside it."""

from collections.abc import Collection
from pathlib import Path

GITDIR_BYTES = 4096


def shadowed_folders(root: Path, names: Collection[str]) -> frozenset[Path]:
    """Give the folders above a worktree whose context file the worktree has itself, at the same place.

    Blocking.

    Args:
        root: The workspace: a worktree, a folder in one, or none at all.
        names: The names that a context file can have.
    """
    for top in (root, *root.parents):
        marker = top / ".git"
        if marker.is_dir():
            return frozenset()
        if marker.is_file():
            main = _main_repository(marker)
            if main is None or not top.is_relative_to(main):
                return frozenset()
            above = [folder for folder in top.parents if folder.is_relative_to(main)]
            return frozenset(
                folder
                for folder in above
                if any((top / folder.relative_to(main) / name).exists() for name in names)
            )
    return frozenset()


def _main_repository(marker: Path) -> Path | None:
    """Read the `.git` file of a worktree: `gitdir: MAIN/.git/worktrees/NAME`."""
    try:
        with marker.open("rb") as file:
            words = file.read(GITDIR_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None
    gitdir = Path(words.removeprefix("gitdir:").strip())
    if gitdir.parent.name == "worktrees" and gitdir.parent.parent.name == ".git":
        return gitdir.parent.parent.parent
    return None
