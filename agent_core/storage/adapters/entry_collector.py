"""Collects the entries of a session file line by line, and ties together what damage has torn apart: pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from agent_core.kernel import EntryId, JsonObject
from agent_core.transcript.codec import (
    HEADER_TYPE,
    MessageLine,
    StoredEntry,
    decode_entry,
    read_whole,
)
from agent_core.transcript.cold_reader import read_cold
from agent_core.transcript.entries import (
    AnyEntry,
    ColdEntry,
    CompactionEntry,
    LineLocation,
    WholeEntry,
)

SALVAGE_BYTES = 4_096
"""How far into a damaged line its ids are looked for."""
FEWEST_HELD = 512
"""Up to so many whole entries are held without asking which of them are still needed."""

_OWN_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,64})"')
_PARENT_ID = re.compile(rb'"parentId"\s*:\s*"([^"\\]{1,64})"')

LineSpan = tuple[int, int]
"""Offset and size of a line, as in `Place`: one exists for every line, a `Place` only for few."""
Cool = Callable[[WholeEntry, LineLocation], AnyEntry]
"""Returns the part of an entry that is kept in memory when its body is not needed."""


def whole(entry: WholeEntry, _place: LineLocation) -> AnyEntry:
    """Hold everything."""
    return entry


class DamagedLines:
    """The lines that are no entries, by number, and what can still be told of them."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[EntryId, EntryId | None] | None] = {}

    @property
    def lines(self) -> tuple[int, ...]:
        """Their numbers, in order."""
        return tuple(sorted(self._lines))

    def add(self, line: int, text: bytes) -> None:
        """Note a line, what it was called and whose child it was."""
        head = text[:SALVAGE_BYTES]
        own, parent = _OWN_ID.search(head), _PARENT_ID.search(head)
        if own is None:
            self._lines[line] = None
        else:
            self._lines[line] = _entry_id(own), None if parent is None else _entry_id(parent)

    def named(self) -> dict[EntryId, tuple[int, EntryId | None]]:
        """Return those whose name can be told, each with its line and its parent."""
        found = sorted(self._lines.items())
        return {ids[0]: (line, ids[1]) for line, ids in found if ids is not None}


class EntryCollector:
    """Entries by id in the order of the file; bodies that a later compaction has replaced are let go on the way."""

    def __init__(self, losses: DamagedLines, *, cool: Cool, replaced_until: int) -> None:
        self.entries: dict[EntryId, StoredEntry] = {}
        self.places: dict[EntryId, LineSpan] = {}
        self._losses = losses
        self._cool = cool
        self._replaced_until = replaced_until
        self._lines: list[int] = []
        """The number of each entry's line."""
        self._held: list[WholeEntry | MessageLine] = []
        """Entries that the last compaction left whole, and those since."""
        self._most_held = FEWEST_HELD
        self._doubtful: list[EntryId] = []
        """Entries whose parent had not come yet when they did."""

    def take(self, raw: JsonObject, *, line: int, text: bytes, start: int | None) -> None:
        """Read an entry; an entry without an id, or with a known id, is counted as lost.

        Args:
            raw: The decoded line.
            line: The number of the line.
            text: The bytes of the line.
            start: Offset of the line in the file; None: the file will be written anew.
        """
        entry = self._read(raw, text, start)
        entries = self.entries
        if entry is None or entry.id in entries:
            self._losses.add(line, text)
            return
        entry_id, parent = entry.id, entry.parent
        if parent is not None and parent not in entries:
            self._doubtful.append(entry_id)
        entries[entry_id] = entry
        self._lines.append(line)
        if start is None:
            return
        self.places[entry_id] = (start, len(text))
        if isinstance(entry, ColdEntry):
            return
        self._held.append(entry)
        if isinstance(entry, CompactionEntry) and len(self._held) > self._most_held:
            self._let_go(entry)

    def take_head(self, entry: MessageLine, *, line: int, start: int) -> None:
        """Add a message that is decoded later; one with a known id is counted as lost."""
        entries, entry_id, parent = self.entries, entry.id, entry.parent
        if entry_id in entries:
            self._losses.add(line, entry.text)
            return
        if parent is not None and parent not in entries:
            self._doubtful.append(entry_id)
        entries[entry_id] = entry
        self._lines.append(line)
        self.places[entry_id] = (start, len(entry.text))
        self._held.append(entry)

    def _read(self, raw: JsonObject, text: bytes, start: int | None) -> AnyEntry | None:
        if start is not None and start < self._replaced_until:
            cold = read_cold(raw, LineLocation(offset=start, size=len(text)))
            if cold is not None:
                return cold
        try:
            return None if raw.get("type") == HEADER_TYPE else decode_entry(raw)
        except ValueError:
            return None

    def mend(self) -> None:
        """Tie entries that name a lost line as their parent to what came before it."""
        skipped = self._losses.lines
        if not skipped or not self._doubtful:
            return
        ids = tuple(self.entries)
        numbers = dict(zip(ids, self._lines, strict=True))

        def before(line: int) -> EntryId | None:
            place = bisect_left(self._lines, line)
            return ids[place - 1] if place > 0 else None

        stand_ins = {
            own: before(line) if parent is None else parent
            for own, (line, parent) in self._losses.named().items()
        }
        for entry_id in self._doubtful:
            entry = self.entries[entry_id]
            gap = bisect_left(skipped, numbers[entry_id])
            if gap > 0 and entry.parent is not None and entry.parent not in self.entries:
                # The lost line says whose child it was, or it followed the line before it.
                _ = stand_ins.setdefault(entry.parent, before(skipped[gap - 1]))
                parent = self._resolved(entry.parent, stand_ins)
                self.entries[entry_id] = replace(entry, parent=parent)

    def loose(self) -> tuple[EntryId, ...]:
        """Return the entries whose parent is not there, and of each circle the one that closes it."""
        sound: set[EntryId] = set()
        return tuple(one for one in self._doubtful if self._is_loose(one, sound))

    def _is_loose(self, entry_id: EntryId, sound: set[EntryId]) -> bool:
        walked: set[EntryId] = set()
        at: EntryId | None = entry_id
        while at is not None and at not in sound:
            if at in walked:
                return at == entry_id
            walked.add(at)
            entry = self.entries.get(at)
            if entry is None:
                # Whoever names it as its parent is loose; those behind that one are not.
                return self.entries[entry_id].parent == at
            at = entry.parent
        sound |= walked
        return False

    def _let_go(self, compaction: CompactionEntry) -> None:
        """Release the bodies of entries that the context after a compaction does not need."""
        kept: dict[EntryId, WholeEntry | MessageLine] = {compaction.id: compaction}
        at = compaction.parent
        while at is not None and at not in kept:
            entry = self.entries.get(at)
            if entry is None or isinstance(entry, ColdEntry):
                break
            kept[at] = entry
            if at == compaction.first_kept:
                break
            at = entry.parent
        if compaction.first_kept not in kept:
            kept = {compaction.id: compaction}
        for entry in self._held:
            if entry.id not in kept:
                offset, size = self.places[entry.id]
                body = read_whole(entry) if isinstance(entry, MessageLine) else entry
                self.entries[entry.id] = self._cool(body, LineLocation(offset=offset, size=size))
        self._held = list(kept.values())
        # Twice what was kept: so the walk stays short beside what was read since the last one.
        self._most_held = max(FEWEST_HELD, 2 * len(kept))

    def _resolved(
        self, lost: EntryId, stand_ins: Mapping[EntryId, EntryId | None]
    ) -> EntryId | None:
        """Follow lost lines up to an entry that is there."""
        seen: set[EntryId] = set()
        found: EntryId | None = lost
        while found is not None and found not in self.entries and found not in seen:
            seen.add(found)
            found = stand_ins.get(found)
        return found if found in self.entries else None


def _entry_id(found: re.Match[bytes]) -> EntryId:
    return EntryId(found.group(1).decode("utf-8", "replace"))
