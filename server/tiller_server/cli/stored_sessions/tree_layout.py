"""Draws the branches of a session: which entries are shown, and what stands before each. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Text,
    ToolResultMessage,
    UserMessage,
)
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    LabelEntry,
    MessageEntry,
    Transcript,
)
from tiller_server.cli.stored_sessions.transcript_view import call_line, content_text
from tiller_server.cli.terminal.text import clipped, one_line

HERE: Final = "← here"
INDENTS: Final = 20
"""Deeper branches are drawn no further to the right."""
LEAST_CELLS: Final = 20
"""So much of a text is shown in the narrowest terminal."""


class Node(Struct):
    """An entry that is shown, with those shown below it."""

    entry: EntryId
    at_ms: int
    text: str
    parent: EntryId | None
    is_yours: bool
    """Whether it is a message of the user: the session then continues from before it."""
    last: EntryId
    """Its last entry: of an answer that called tools, their last result."""
    children: list["Node"] = msgspec.field(default_factory=list["Node"])


class Drawing(Value, frozen=True):
    """The tree of a session."""

    nodes: Mapping[EntryId, Node]
    """In the order of the file."""
    roots: Sequence[Node]
    here: EntryId | None
    """Where it goes on; None: from the beginning."""
    labels: Mapping[EntryId, str]


class TreeRow(Value, frozen=True):
    """A line of it."""

    lead: str
    node: Node
    text: str
    label: str
    """With its brackets, and a blank before them; empty when there is none."""
    mark: str
    """With a blank before it; empty but in the row where the session goes on."""


def draw(entries: Sequence[AnyEntry]) -> Drawing:
    """Build the tree from the entries of a session."""
    transcript = Transcript(entries)
    nodes, roots, here = _shown(transcript)
    return Drawing(nodes, roots, here, _labels(entries))


def rows(drawing: Drawing, *, room: int) -> Iterator[TreeRow]:
    """Return the lines of a tree, each cut to fit.

    Args:
        drawing: Tree to draw.
        room: Width of a line in cells, for all fields of a row together.
    """
    for lead, node in _drawn(drawing.roots):
        mark = f" {HERE}" if node.entry == drawing.here else ""
        label = drawing.labels.get(node.entry)
        shown = f" [{one_line(label)}]" if label else ""
        left = room - len(lead) - len(mark) - len(shown)
        yield TreeRow(lead, node, clipped(node.text, max(LEAST_CELLS, left)), shown, mark)


def _shown(
    transcript: Transcript,
) -> tuple[Mapping[EntryId, Node], Sequence[Node], EntryId | None]:
    """Omit entries without text; entries below them hang from the nearest shown one above."""
    nodes: dict[EntryId, Node] = {}
    stands_for: dict[EntryId, EntryId | None] = {}
    roots: list[Node] = []
    for entry in transcript.entries:
        # A parent that comes later, or never, makes a root.
        above = None if entry.parent is None else stands_for.get(entry.parent)
        text = _text(entry)
        if not text:
            stands_for[entry.id] = above
            if above is not None and _is_result(entry):
                nodes[above].last = entry.id
            continue
        node = Node(entry.id, entry.at_ms, text, above, _is_yours(entry), entry.id)
        nodes[entry.id] = node
        stands_for[entry.id] = entry.id
        (roots if above is None else nodes[above].children).append(node)
    leaf = transcript.leaf
    return nodes, roots, None if leaf is None else stands_for.get(leaf)


def _drawn(roots: Sequence[Node]) -> Iterator[tuple[str, Node]]:
    """Return each node with the lines before it; only where branches part is anything drawn to the right."""
    waiting = list(_placed(roots, ""))
    while waiting:
        node, first, rest = waiting.pop()
        yield first, node
        waiting.extend(_placed(node.children, rest))


def _placed(siblings: Sequence[Node], rest: str) -> Iterator[tuple[Node, str, str]]:
    """Return nodes, the last one first, with what stands before their own line and before those that follow."""
    for node in reversed(siblings):
        is_fork = len(siblings) > 1
        first, below = _fork(rest, is_last=node is siblings[-1]) if is_fork else (rest, rest)
        yield node, first, below


def _fork(rest: str, *, is_last: bool) -> tuple[str, str]:
    """Return what stands before the first line of a branch, and before its other lines."""
    if len(rest) >= INDENTS * 2:
        return rest, rest
    return (f"{rest}└─", f"{rest}  ") if is_last else (f"{rest}├─", f"{rest}│ ")


def _is_yours(entry: AnyEntry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage)


def _is_result(entry: AnyEntry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage)


def _text(entry: AnyEntry) -> str:
    """Describe in a line what an entry is; empty for what is not shown."""
    match entry:
        case MessageEntry(message=UserMessage(content=content)):
            return f"> {one_line(content_text(content))}"
        case MessageEntry(message=AssistantMessage() as said):
            return _answer(said)
        case MessageEntry(message=BashMessage(command=command)):
            return f"$ {one_line(command)}"
        case CustomMessageEntry():
            return f"[{one_line(entry.custom_type)}] {one_line(content_text(entry.content))}"
        case CompactionEntry() | BranchSummaryEntry():
            what = "a branch that was left" if isinstance(entry, BranchSummaryEntry) else "the past"
            return f"— {what}, summed up: {one_line(entry.summary)}"
        case _:
            return ""


def _answer(said: AssistantMessage) -> str:
    text = one_line(" ".join(part.text for part in said.content if isinstance(part, Text)))
    calls = "; ".join(call_line(call) for call in said.tool_calls)
    parts = (text, calls and f"▸ {calls}", said.error and f"✗ {one_line(said.error)}")
    return " ".join(part for part in parts if part) or "(no words)"


def _labels(entries: Sequence[AnyEntry]) -> Mapping[EntryId, str]:
    """Return the labels in force: the last one of each entry counts."""
    last = {entry.target: entry.label for entry in entries if isinstance(entry, LabelEntry)}
    return {target: label for target, label in last.items() if label}
