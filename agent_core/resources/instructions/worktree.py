"""Finds the folders whose instructions may concern a workspace: those of its project, and those above it. Blocking."""

from collections.abc import Collection
from pathlib import Path

GITDIR_BYTES = 4096


def _shadowed_folders(root: Path, names: Collection[str]) -> frozenset[Path]:
    """Return the folders above a worktree whose context file the worktree has itself, at the same place.

    Blocking.

    Args:
        root: The workspace: a worktree, a folder in one, or none at all.
        names: The names that a context file can have.
    """
    for top in (root, *root.parents):
        marker = top / ".git"
        # A link in its place, which a project can bring, may lead to any file of the user.
        if marker.is_dir() or marker.is_symlink():
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


def project_folders(root: Path) -> tuple[Path, ...]:
    """Return the workspace and the folders above it that belong to the same project: up to the top of its repository.

    Outside of a repository there is only the workspace.
    """
    above = (root, *root.parents)
    for count, folder in enumerate(above, 1):
        if _is_there(folder / ".git"):
            return above[:count]
    return (root,)


def folders_above(root: Path, names: Collection[str]) -> tuple[Path, ...]:
    """Return the folders above a workspace's project that hold a context file, the nearest first.

    Those whose file a worktree repeats are left out. Blocking.

    Args:
        root: The workspace.
        names: The names that a context file can have.
    """
    project = project_folders(root)
    shadowed = _shadowed_folders(root, names)
    return tuple(
        folder
        for folder in project[-1].parents
        if folder not in shadowed and any(_is_there(folder / name) for name in names)
    )


def _main_repository(marker: Path) -> Path | None:
    """Read the `.git` file of a worktree: `gitdir: MAIN/.git/worktrees/NAME`."""
    try:
        with marker.open("rb") as file:
            content = file.read(GITDIR_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None
    gitdir = Path(content.removeprefix("gitdir:").strip())
    if gitdir.parent.name == "worktrees" and gitdir.parent.parent.name == ".git":
        return gitdir.parent.parent.parent
    return None


def _is_there(path: Path) -> bool:
    try:
        _ = path.lstat()
    except OSError:
        return False
    return True
