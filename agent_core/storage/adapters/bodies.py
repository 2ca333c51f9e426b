"""Release of entry bodies that the session file holds, and loading them again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from agent_core.kernel import EntryId
from agent_core.kernel.errors import StorageUnavailable
from agent_core.storage.adapters.entry_collector import LineSpan
from agent_core.storage.adapters.recovery import parse_line
from agent_core.transcript.codec import MessageLine, StoredEntry, decode_entry, read_whole
from agent_core.transcript.cold_entries import cooled
from agent_core.transcript.context import context_entries
from agent_core.transcript.entries import (
    AnyEntry,
    ColdEntry,
    CompactionEntry,
    LineLocation,
    WholeEntry,
)
from agent_core.transcript.tree import path_to


def cool(entries: Sequence[AnyEntry], places: Mapping[EntryId, LineSpan]) -> tuple[AnyEntry, ...]:
    """Return what is held of entries; those that are in no file stay whole."""
    return tuple(_cool(entry, places.get(entry.id)) for entry in entries)


def load(
    entries: Sequence[ColdEntry], *, read: Callable[[LineLocation], bytes], path: Path
) -> tuple[WholeEntry, ...]:
    """Read bodies back.

    Raises:
        StorageUnavailable: Something else is in their places.
        OSError: The file cannot be read.
    """
    return tuple(_load(entry, read(entry.place), path) for entry in entries)


def settle(
    entries: dict[EntryId, StoredEntry],
    places: Mapping[EntryId, LineSpan],
    *,
    read: Callable[[LineLocation], bytes],
    path: Path,
) -> None:
    """Leave those entries whole that the context of the last one is made of, and let the others go.

    Raises:
        StorageUnavailable, OSError: A body that is needed cannot be read back.
    """
    if not entries or _is_whole_path(entries.values()):
        return
    needed = {one.id for one in context_entries(path_to(next(reversed(entries)), entries))}
    missing = [one for one in map(entries.__getitem__, needed) if isinstance(one, ColdEntry)]
    for entry in load(missing, read=read, path=path):
        entries[entry.id] = entry
    if len(needed) < len(entries):
        spare = [
            one
            for one in entries.values()
            if one.id not in needed and not isinstance(one, ColdEntry)
        ]
        for entry in spare:
            entries[entry.id] = _cool(entry, places.get(entry.id))


def _is_whole_path(entries: Iterable[StoredEntry]) -> bool:
    """Return whether each entry follows the one before it and none replaces others: then all are needed."""
    last: EntryId | None = None
    for entry in entries:
        if entry.parent != last or isinstance(entry, (CompactionEntry, ColdEntry)):
            return False
        last = entry.id
    return True


def _cool(stored: StoredEntry, span: LineSpan | None) -> AnyEntry:
    entry = read_whole(stored) if isinstance(stored, MessageLine) else stored
    if span is None or isinstance(entry, ColdEntry):
        return entry
    return cooled(entry, LineLocation(offset=span[0], size=span[1]))


def _load(cold: ColdEntry, line: bytes, path: Path) -> WholeEntry:
    raw = parse_line(line)
    try:
        entry = None if raw is None else decode_entry(raw)
    except ValueError:
        entry = None
    if entry is None or entry.id != cold.id:
        message = (
            f"the session file {str(path)!r} was changed: the entry {cold.id!r} is no longer where it was; "
            "close the session and open it again"
        )
        raise StorageUnavailable(message)
    # Where a line before it was lost, the entry hangs from another than its line says.
    return entry if entry.parent == cold.parent else replace(entry, parent=cold.parent)
