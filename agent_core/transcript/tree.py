"""The entries of one session as a tree in memory."""

from collections.abc import Iterable, Mapping

from agent_core.kernel import EntryId, new_entry_id
from agent_core.transcript.entries import AnyEntry, SessionNameEntry


class Transcript:
    """Entries by id, in the order in which they were written, with the leaf that the next one hangs from.

    A parent that does not exist, or an entry that is its own parent, makes a root: files of other programs
    and damaged files hold such things, and nothing here loops on them.
    """

    def __init__(self, entries: Iterable[AnyEntry] = ()) -> None:
        self._by_id: dict[EntryId, AnyEntry] = {}
        self._leaf: EntryId | None = None
        self._path: list[AnyEntry] | None = []
        """The path to the leaf; None when it must be walked anew."""
        self._begin(entries)

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._by_id

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """All entries in the order of the file."""
        return tuple(self._by_id.values())

    @property
    def newest(self) -> EntryId | None:
        """The entry that was written last, on whatever branch; None: there is none."""
        return next(reversed(self._by_id), None)

    @property
    def leaf(self) -> EntryId | None:
        """The entry that the next one will follow; None at the very beginning."""
        return self._leaf

    @property
    def title(self) -> str | None:
        """Name of the session that was set last; None when it was never set or was cleared."""
        names = (e.name for e in reversed(self._by_id.values()) if isinstance(e, SessionNameEntry))
        return next(names, "").strip() or None

    def get(self, entry_id: EntryId) -> AnyEntry | None:
        """Return an entry, if there is one of that id."""
        return self._by_id.get(entry_id)

    def add(self, entry: AnyEntry) -> None:
        """Add an entry; it becomes the leaf.

        Raises:
            ValueError: An entry of that id is there already.
        """
        if entry.id in self._by_id:
            message = f"the transcript has an entry {entry.id!r} already: draw another id"
            raise ValueError(message)
        self._by_id[entry.id] = entry
        if self._path is not None and entry.parent == self._leaf:
            self._path.append(entry)
        else:
            self._path = None
        self._leaf = entry.id

    def _begin(self, entries: Iterable[AnyEntry]) -> None:
        """Add whole sessions; entries that do not follow one another are added one by one, as by `add`."""
        by_id, path = self._by_id, list(entries)
        last: EntryId | None = None
        for place, entry in enumerate(path):
            if entry.parent != last or entry.id in by_id:
                self._leaf, self._path = last, path[:place]
                for one in path[place:]:
                    self.add(one)
                return
            last = entry.id
            by_id[last] = entry
        self._leaf, self._path = last, path

    def swap(self, entries: Iterable[AnyEntry]) -> None:
        """Replace entries by others with the same ids: the same entries, with or without their bodies.

        Raises:
            ValueError: There is no such entry, or its parent is another.
        """
        for entry in entries:
            there = self._by_id.get(entry.id)
            if there is None or there.parent != entry.parent:
                message = f"the transcript has no entry {entry.id!r} after {entry.parent!r} to swap"
                raise ValueError(message)
            self._by_id[entry.id] = entry
            self._path = None

    def move(self, leaf: EntryId | None) -> None:
        """Go to another entry, so that the next one branches off there; None begins anew.

        Raises:
            ValueError: There is no such entry.
        """
        if leaf is not None and leaf not in self._by_id:
            message = f"the transcript has no entry {leaf!r} to go to"
            raise ValueError(message)
        self._leaf = leaf
        self._path = None

    def path(self, leaf: EntryId | None = None) -> tuple[AnyEntry, ...]:
        """Return the entries from the root to an entry, to the present leaf when none is named.

        Raises:
            ValueError: There is no such entry.
        """
        if leaf is not None and leaf != self._leaf:
            return tuple(self._walk(leaf))
        if self._path is None:
            self._path = [] if self._leaf is None else self._walk(self._leaf)
        return tuple(self._path)

    def children(self, parent: EntryId | None) -> tuple[AnyEntry, ...]:
        """Return what follows an entry, oldest first; the roots for None."""
        found = [entry for entry in self._by_id.values() if self._parent_of(entry) == parent]
        return tuple(sorted(found, key=lambda entry: entry.at_ms))

    def next_id(self, at_ms: int) -> EntryId:
        """Draw an id that no entry has."""
        return new_entry_id(self._by_id, at_ms=at_ms)

    def _parent_of(self, entry: AnyEntry) -> EntryId | None:
        has_parent = entry.parent is not None and entry.parent != entry.id
        return entry.parent if has_parent and entry.parent in self._by_id else None

    def _walk(self, leaf: EntryId) -> list[AnyEntry]:
        if leaf not in self._by_id:
            message = f"the transcript has no entry {leaf!r}"
            raise ValueError(message)
        return path_to(leaf, self._by_id)


def path_to(leaf: EntryId, by_id: Mapping[EntryId, AnyEntry]) -> list[AnyEntry]:
    """Return the entries from the root to an entry; a circle is walked once."""
    found: list[AnyEntry] = []
    entry = by_id.get(leaf)
    # A path that is longer than all entries goes round: to count costs less than to note each.
    while entry is not None and len(found) <= len(by_id):
        found.append(entry)
        entry = None if entry.parent is None else by_id.get(entry.parent)
    if len(found) > len(by_id):
        found = list({one.id: one for one in found}.values())
    found.reverse()
    return found
