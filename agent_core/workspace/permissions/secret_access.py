"""The secret files that a person let a session read."""

from collections.abc import Sequence
from pathlib import Path

from agent_core.workspace.permissions.protected_names import is_secret


class SecretAccess:
    """Remembers for one session which secret files may be read; nothing of it is kept on disk."""

    def __init__(self) -> None:
        self._allowed: set[Path] = set()

    @property
    def allowed(self) -> frozenset[Path]:
        """Return the files, and folders with all that is in them. Real paths."""
        return frozenset(self._allowed)

    def allow(self, path: Path) -> None:
        """Allow a file, or a folder with all that is in it.

        Args:
            path: Real, as the workspace resolved it: a link that is made later allows nothing else.
        """
        self._allowed.add(path)

    def withholds(self, path: Path, *, roots: Sequence[Path]) -> str | None:
        """Return why the content of a file is withheld; None: it may be read. Arguments as of `is_secret`."""
        why = is_secret(path, roots=roots)
        if why is None or not self._allowed.isdisjoint((path, *path.parents)):
            return None
        return why
