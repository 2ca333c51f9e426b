"""A session's entries as people see its tree: which are shown, and below which."""

from collections.abc import Mapping

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    ToolResultMessage,
    UserMessage,
)
from agent_core.session.history.fork import labels_of
from agent_core.transcript import Transcript
from agent_core.transcript.cold_entries import preview_of
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    StoredMessage,
)

SHOWN = frozenset({"message", "custom_message", "compaction", "branch_summary"})
"""Types of lines with content for the user; other lines of a file are data of programs."""
ROLES: Mapping[type[StoredMessage], str] = {
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolResultMessage: "toolResult",
    BashMessage: "bashExecution",
}
KINDS: Mapping[type[AnyEntry], str] = {
    MessageEntry: "message",
    CustomMessageEntry: "custom_message",
    CompactionEntry: "compaction",
    BranchSummaryEntry: "branch_summary",
}


class TreeNode(Value, frozen=True, kw_only=True):
    """An entry as the tree shows it."""

    entry: EntryId
    parent: EntryId | None
    """The nearest entry before it that is shown; None: it begins a tree."""
    kind: str
    """`message`, `custom_message`, `compaction` or `branch_summary`."""
    role: str | None
    """Of a message: `user`, `assistant`, `toolResult` or `bashExecution`."""
    preview: str
    """How it begins, on one line; may be empty."""
    label: str | None
    label_at_ms: int | None
    at_ms: int


def tree_nodes(transcript: Transcript) -> tuple[TreeNode, ...]:
    """Return the entries that are shown, in the order of the file."""
    labels = labels_of(transcript.entries)
    above: dict[EntryId, EntryId | None] = {}
    nodes: list[TreeNode] = []
    for entry in transcript.entries:
        kind = kind_of(entry)
        parent = _parent(transcript, entry, above)
        above[entry.id] = parent if kind is None else entry.id
        if kind is None:
            continue
        label = labels.get(entry.id)
        nodes.append(
            TreeNode(
                entry=entry.id,
                parent=parent,
                kind=kind,
                role=role_of(entry),
                preview=preview_of(entry),
                label=None if label is None else label.label,
                label_at_ms=None if label is None else label.at_ms,
                at_ms=entry.at_ms,
            )
        )
    return tuple(nodes)


def shown_from(transcript: Transcript, entry: EntryId | None) -> EntryId | None:
    """Return an entry if it is shown, else the nearest one before it that is."""
    seen: set[EntryId] = set()
    found = None if entry is None else transcript.get(entry)
    while found is not None and found.id not in seen:
        if kind_of(found) is not None:
            return found.id
        seen.add(found.id)
        found = None if found.parent is None else transcript.get(found.parent)
    return None


def kind_of(entry: AnyEntry) -> str | None:
    """Return the type of an entry's line; None: it is not shown."""
    if isinstance(entry, ColdEntry):
        return entry.kind if entry.kind in SHOWN else None
    return KINDS.get(type(entry))


def role_of(entry: AnyEntry) -> str | None:
    """Return the role of a message; None: the entry is none."""
    if isinstance(entry, ColdEntry):
        return entry.role
    return ROLES[type(entry.message)] if isinstance(entry, MessageEntry) else None


def _parent(
    transcript: Transcript, entry: AnyEntry, above: dict[EntryId, EntryId | None]
) -> EntryId | None:
    if entry.parent is None or entry.parent == entry.id:
        return None
    if entry.parent in above:
        return above[entry.parent]
    # A file that another program put together may hold a parent behind its child.
    found = shown_from(transcript, entry.parent)
    return None if found == entry.id else found
