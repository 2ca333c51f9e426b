"""Finds protected links of a workspace to a file: a write to the file changes it under their names too. Blocking."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.workspace.permissions.protected_names import is_protected

MOST_FOLDERS: Final = 256
"""So many are looked into; beyond, every change of a file asks."""
GIT: Final = ".git"


def protected_by_link(path: Path, *, roots: Sequence[Path]) -> str | None:
    """Return why a file must not be changed without asking because a protected link leads to it; None: none was found.

    The search covers the folders from a root down to the file, with the protected and hidden folders in them: links
    elsewhere are not found.

    Args:
        path: Real. A file below a folder that a link leads to counts too.
        roots: Real.
    """
    inside = [root for root in roots if path.is_relative_to(root)]
    around = [folder for root in inside for folder in path.parents if folder.is_relative_to(root)]
    for link in _links(tuple(dict.fromkeys((*roots, *around))), roots):
        if link is None:
            return f"more than {MOST_FOLDERS} protected and hidden folders are around it, and not all were looked at for links to it"
        with suppress(OSError):
            if path.is_relative_to(os.path.realpath(link)):
                return f"{link.name} leads to it, and {is_protected(link, roots=roots)}"
    return None


def _links(folders: Sequence[Path], roots: Sequence[Path]) -> Iterator[Path | None]:
    """Yield the protected links in some folders and in the protected folders there; None: there is more, not looked at."""
    left, looked = [*folders], 0
    while left:
        if looked == MOST_FOLDERS:
            yield None
            return
        looked += 1
        with suppress(OSError), os.scandir(left.pop(0)) as entries:
            for entry in entries:
                is_link = entry.is_symlink()
                if not is_link and (entry.name == GIT or not entry.is_dir(follow_symlinks=False)):
                    continue
                found = Path(entry.path)
                guarded = is_protected(found, roots=roots) is not None
                if is_link and guarded:
                    yield found
                elif not is_link and (guarded or entry.name.startswith(".")):
                    left.append(found)  # `.github` is not protected, and `.github/workflows` is
