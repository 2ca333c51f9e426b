"""The entries of a session that is made from a part of another: pure."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from agent_core.kernel import EntryId, new_entry_id
from agent_core.kernel.json import as_object
from agent_core.session.history.entries import CHANGE, CHECKPOINT, DEFERRED, QUEUE, REVIEW, RUN
from agent_core.transcript.entries import (
    AnyEntry,
    CompactionEntry,
    CustomEntry,
    Header,
    LabelEntry,
)

ForkWriter = Callable[[Header, Sequence[AnyEntry]], Awaitable[str | None]]
"""Keeps a new session with these entries and lets go of it; gives its file, None in memory."""


def fork_entries(
    path: Sequence[AnyEntry], *, labels: Mapping[EntryId, LabelEntry]
) -> tuple[AnyEntry, ...]:
    """Return the entries of a new session that holds a path of this one.

    They are chained anew without what belongs to this session alone: words that wait in it, what it did to files, and
    runs that the path does not hold to their end. Labels come last, with the times at which they were given.

    Args:
        path: Root to the last entry that is taken along, with bodies.
        labels: The label in force for each entry that has one, oldest first.
    """
    kept_ids = {entry.id for entry in _kept(path)}
    chained: list[AnyEntry] = []
    for place, entry in enumerate(path):
        if entry.id in kept_ids:
            parent = chained[-1].id if chained else None
            chained.append(replace(_moved(entry, place, path, kept_ids), parent=parent))
    ids = set(kept_ids)
    for label in labels.values():
        if label.target in kept_ids:
            drawn = new_entry_id(ids, at_ms=label.at_ms)
            ids.add(drawn)
            parent = chained[-1].id if chained else None
            chained.append(replace(label, id=drawn, parent=parent))
    return tuple(chained)


def labels_of(entries: Iterable[AnyEntry]) -> dict[EntryId, LabelEntry]:
    """Return the label in force for each entry that has one, oldest first: the last one of a target counts."""
    found: dict[EntryId, LabelEntry] = {}
    for entry in entries:
        if isinstance(entry, LabelEntry):
            _ = found.pop(entry.target, None)
            if entry.label:
                found[entry.target] = entry
    return found


def _kept(path: Sequence[AnyEntry]) -> Iterable[AnyEntry]:
    ended = {_run_of(entry) for entry in path if _run_status(entry) not in {None, "started"}}
    for entry in path:
        match entry:
            case LabelEntry():
                continue
            case CustomEntry(custom_type=kind) if kind in {
                QUEUE,
                DEFERRED,
                CHANGE,
                REVIEW,
                CHECKPOINT,
            }:
                continue
            case CustomEntry() if _run_status(entry) == "started" and _run_of(entry) not in ended:
                continue
            case _:
                yield entry


def _moved(
    entry: AnyEntry, place: int, path: Sequence[AnyEntry], kept_ids: set[EntryId]
) -> AnyEntry:
    """Return the entry; a compaction whose first kept entry is not copied keeps from the next copied one on."""
    if not isinstance(entry, CompactionEntry) or entry.first_kept in kept_ids:
        return entry
    first = next((at for at, one in enumerate(path[:place]) if one.id == entry.first_kept), None)
    if first is None:
        return entry
    kept = next(one.id for one in path[first : place + 1] if one.id in kept_ids)
    return replace(entry, first_kept=kept)


def _run_status(entry: AnyEntry) -> object:
    if not isinstance(entry, CustomEntry) or entry.custom_type != RUN:
        return None
    return as_object(entry.data).get("status")


def _run_of(entry: AnyEntry) -> object:
    return as_object(entry.data).get("run") if isinstance(entry, CustomEntry) else None
