"""The entries of a session as branches that a document can show one after the other: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.transcript.entries import AnyEntry


class Branch(Value, frozen=True, kw_only=True):
    """A line of entries, from where it leaves another branch to its end."""

    number: int
    """1 for the present branch, then in the order of their beginnings."""
    after: EntryId | None
    """The entry of another branch that it goes on from; None: it begins anew."""
    entries: tuple[AnyEntry, ...]


def branches_of(entries: Iterable[AnyEntry], leaf: EntryId | None) -> tuple[Branch, ...]:
    """Cut a tree into branches; every entry is in exactly one, whatever the parents say.

    The first is the present one, from a root to the leaf. Each other goes on as far as its newest descendants.
    An entry whose parent is missing begins a branch, and so does one that is caught in a circle.
    """
    by_id = {entry.id: entry for entry in entries}
    children = _children(by_id)
    taken: set[EntryId] = set()
    chains = [_path(by_id, leaf, taken)] if leaf is not None else []
    for entry in by_id.values():
        if entry.id not in taken and _is_beginning(entry, by_id, taken):
            chains.extend(_grown(entry, children, taken))
    for entry in by_id.values():
        if entry.id not in taken:
            chains.extend(_grown(entry, children, taken))
    return tuple(
        Branch(number=number, after=_after(chain, by_id), entries=tuple(chain))
        for number, chain in enumerate((chain for chain in chains if chain), start=1)
    )


def forks_of(branches: Iterable[Branch]) -> Mapping[EntryId, Sequence[Branch]]:
    """Return the branches that go on from an entry of another one."""
    found: dict[EntryId, list[Branch]] = {}
    for branch in branches:
        if branch.after is not None:
            found.setdefault(branch.after, []).append(branch)
    return found


def _children(by_id: Mapping[EntryId, AnyEntry]) -> Mapping[EntryId, list[AnyEntry]]:
    found: dict[EntryId, list[AnyEntry]] = {}
    for entry in by_id.values():
        if entry.parent is not None:
            found.setdefault(entry.parent, []).append(entry)
    return found


def _path(by_id: Mapping[EntryId, AnyEntry], leaf: EntryId, taken: set[EntryId]) -> list[AnyEntry]:
    path: list[AnyEntry] = []
    entry = by_id.get(leaf)
    while entry is not None and entry.id not in taken:
        taken.add(entry.id)
        path.append(entry)
        entry = None if entry.parent is None else by_id.get(entry.parent)
    path.reverse()
    return path


def _is_beginning(entry: AnyEntry, by_id: Mapping[EntryId, AnyEntry], taken: set[EntryId]) -> bool:
    return entry.parent is None or entry.parent not in by_id or entry.parent in taken


def _grown(
    first: AnyEntry, children: Mapping[EntryId, list[AnyEntry]], taken: set[EntryId]
) -> Iterator[list[AnyEntry]]:
    """Return the branch that begins with an entry, and those that leave it."""
    waiting = [first]
    while waiting:
        chain: list[AnyEntry] = []
        entry: AnyEntry | None = waiting.pop()
        while entry is not None and entry.id not in taken:
            taken.add(entry.id)
            chain.append(entry)
            following = [one for one in children.get(entry.id, ()) if one.id not in taken]
            entry = following.pop() if following else None
            waiting.extend(reversed(following))
        if chain:
            yield chain


def _after(chain: Sequence[AnyEntry], by_id: Mapping[EntryId, AnyEntry]) -> EntryId | None:
    parent = chain[0].parent
    return parent if parent in by_id and parent != chain[0].id else None
