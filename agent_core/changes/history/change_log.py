"""The record of what a session did to files: every verified change, in its order."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent_core.changes.values import Change, ChangeSource


class ChangeLog:
    """All changes of a session, on whatever branch of the conversation they were made."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._all: list[Change] = []
        self._paths: dict[Path, list[Change]] = {}
        for change in changes:
            self.add(change)

    def add(self, change: Change) -> None:
        """Append a verified change."""
        self._all.append(change)
        for path in {change.path, change.source or change.path}:
            self._paths.setdefault(path, []).append(change)

    @property
    def all(self) -> Sequence[Change]:
        """All of them, oldest first."""
        return tuple(self._all)

    def __len__(self) -> int:
        """Count them."""
        return len(self._all)

    def at(self, n: int) -> Change:
        """Return the one behind the first `n`."""
        return self._all[n]

    def of(self, path: Path) -> Sequence[Change]:
        """Return those of the file at a path, moves to it and away from it included, oldest first."""
        return tuple(self._paths.get(path, ()))

    def source_of(self, edit: str) -> ChangeSource:
        """Return who made an edit; "tool" for one that is not in the log."""
        found = next((one for one in reversed(self._all) if one.id == edit), None)
        return "tool" if found is None else found.by

    def since(self, n: int) -> Sequence[Change]:
        """Return those behind the first `n`."""
        return tuple(self._all[max(0, n) :])
