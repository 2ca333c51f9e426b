"""The entries of one session as a tree in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from agent_core.kernel import EntryId
from agent_core.messages import AssistantMessage, Usage, UserMessage
from agent_core.transcript.codec import MessageLine, StoredEntry, read_whole
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    MessageEntry,
    SessionNameEntry,
    UsageEntry,
)

HeldEntry = TypeVar("HeldEntry", AnyEntry, StoredEntry)
_MESSAGES = (MessageLine, MessageEntry)


class Transcript:
    """Entries by id, in the order in which they were written, with the leaf that the next one hangs from.

    A parent that does not exist, or an entry that is its own parent, makes a root: files of other programs
    and damaged files hold such things, and nothing here loops on them.

    Messages of a stored session are decoded when something reads them (decision 0086); readers get entries only.
    """

    def __init__(self, entries: Iterable[StoredEntry] = ()) -> None:
        self._by_id: dict[EntryId, StoredEntry] = {}
        self._leaf: EntryId | None = None
        self._path: list[StoredEntry] | None = []
        """The path to the leaf; None when it must be walked anew."""
        self._records: list[AnyEntry] = []
        self._path_entries: list[AnyEntry] = []
        """The beginning of the path, as far as it was read."""
        self._begin(entries)

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._by_id

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """All entries in the order of the file."""
        return tuple(map(self._read, self._by_id.values()))

    @property
    def stored(self) -> tuple[StoredEntry, ...]:
        """All entries in the order of the file, as far as they were decoded."""
        return tuple(self._by_id.values())

    @property
    def stored_path(self) -> Sequence[StoredEntry]:
        """The entries from the root to the leaf, as far as they were decoded."""
        if self._path is None:
            self._path = [] if self._leaf is None else self._walk(self._leaf)
            self._path_entries = []
        return self._path

    @property
    def records(self) -> tuple[AnyEntry, ...]:
        """All entries but messages, in the order of the file: none is decoded for this."""
        return tuple(self._records)

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
        names = (e.name for e in reversed(self._records) if isinstance(e, SessionNameEntry))
        return next(names, "").strip() or None

    def get(self, entry_id: EntryId) -> AnyEntry | None:
        """Return an entry, if there is one of that id."""
        entry = self._by_id.get(entry_id)
        return self._read(entry) if isinstance(entry, MessageLine) else entry

    def add(self, entry: StoredEntry) -> None:
        """Add an entry; it becomes the leaf.

        Raises:
            ValueError: An entry of that id is there already.
        """
        if entry.id in self._by_id:
            message = f"the transcript has an entry {entry.id!r} already: draw another id"
            raise ValueError(message)
        self._by_id[entry.id] = entry
        if not isinstance(entry, _MESSAGES):
            self._records.append(entry)
        if self._path is not None and entry.parent == self._leaf:
            self._path.append(entry)
        else:
            self._path = None
        self._leaf = entry.id

    def _begin(self, entries: Iterable[StoredEntry]) -> None:
        """Add whole sessions; entries that do not follow one another are added one by one, as by `add`."""
        by_id, path = self._by_id, list(entries)
        last: EntryId | None = None
        for place, entry in enumerate(path):
            if entry.parent != last or entry.id in by_id:
                self._leaf, self._path = last, path[:place]
                self._records = records_of(self._path)
                for one in path[place:]:
                    self.add(one)
                return
            last = entry.id
            by_id[last] = entry
        self._leaf, self._path, self._records = last, path, records_of(path)

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
        self._records = records_of(self._by_id.values())

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
            return tuple(map(self._read, self._walk(leaf)))
        path, entries = self.stored_path, self._path_entries
        entries.extend(map(self._read, path[len(entries) :]))
        return tuple(entries)

    def _read(self, entry: StoredEntry) -> AnyEntry:
        """Return an entry, decoded now if it was not before."""
        if not isinstance(entry, MessageLine):
            return entry
        there = self._by_id[entry.id]
        if isinstance(there, MessageLine):
            there = self._by_id[entry.id] = read_whole(there)
        return there

    def _walk(self, leaf: EntryId) -> list[StoredEntry]:
        if leaf not in self._by_id:
            message = f"the transcript has no entry {leaf!r}"
            raise ValueError(message)
        return path_to(leaf, self._by_id)


def path_to(leaf: EntryId, by_id: Mapping[EntryId, HeldEntry]) -> list[HeldEntry]:
    """Return the entries from the root to an entry; a circle is walked once."""
    found: list[HeldEntry] = []
    entry = by_id.get(leaf)
    # A path that is longer than all entries goes round: to count costs less than to note each.
    while entry is not None and len(found) <= len(by_id):
        found.append(entry)
        entry = None if entry.parent is None else by_id.get(entry.parent)
    if len(found) > len(by_id):
        found = list({one.id: one for one in found}.values())
    found.reverse()
    return found


def newest_first(transcript: Transcript) -> Iterator[AnyEntry]:
    """Return the entries from the leaf to the root, each decoded when it is its turn."""
    entries = (transcript.get(one.id) for one in reversed(transcript.stored_path))
    return (entry for entry in entries if entry is not None)


def children_of(transcript: Transcript, parent: EntryId | None) -> tuple[AnyEntry, ...]:
    """Return what follows an entry, oldest first; the roots for None."""
    entries = transcript.entries
    found = [one for one in entries if _parent_of(one, transcript) == parent]
    return tuple(sorted(found, key=lambda entry: entry.at_ms))


def _parent_of(entry: AnyEntry, transcript: Transcript) -> EntryId | None:
    has_parent = entry.parent is not None and entry.parent != entry.id
    return entry.parent if has_parent and entry.parent in transcript else None


def records_of(entries: Iterable[StoredEntry]) -> list[AnyEntry]:
    """Return all entries but messages."""
    return [one for one in entries if not isinstance(one, _MESSAGES)]


def usages_of(entries: Iterable[StoredEntry]) -> Iterator[Usage]:
    """Return the usage of every entry that has one."""
    return (used for used in map(_usage_of, entries) if used is not None)


def has_prompt_or_answer(path: Sequence[StoredEntry]) -> bool:
    """Return whether the branch has a prompt or an answer."""
    return any(map(_is_prompt_or_answer, reversed(path)))


def _is_prompt_or_answer(entry: StoredEntry) -> bool:
    if isinstance(entry, MessageLine):
        return entry.is_prompt_or_answer
    return isinstance(entry, MessageEntry) and isinstance(
        entry.message, UserMessage | AssistantMessage
    )


def _usage_of(entry: StoredEntry) -> Usage | None:
    if isinstance(entry, MessageLine):
        return entry.usage
    match entry:
        case CompactionEntry() | BranchSummaryEntry() | UsageEntry() | ColdEntry():
            return entry.usage
        case MessageEntry(message=AssistantMessage(usage=usage)):
            return usage
        case _:
            return None
