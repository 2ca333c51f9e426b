"""Draws the branches of a session."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from agent_core.assembly.library import SessionLibrary
from agent_core.kernel import EntryId, JsonValue, rfc3339
from agent_core.kernel.json import encode
from agent_core.kernel.records import dataclass
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    Text,
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
from server.cli.sessions_show import call_line, tell_recovery, words
from server.cli.sessions_text import (
    BOLD,
    CYAN,
    DIM,
    cells_of_row,
    clipped,
    one_line,
    styled,
)
from server.cli.standard import speak_json

HERE: Final = "← here"
INDENTS: Final = 20
"""Deeper branches are drawn no further to the right."""


@dataclass(slots=True)
class _Node:
    """An entry that is shown, with those shown below it."""

    entry: EntryId
    at_ms: int
    text: str
    parent: EntryId | None
    children: list["_Node"] = field(default_factory=list["_Node"])


async def tree(library: SessionLibrary, options: argparse.Namespace, *, colour: bool) -> int:
    """Draw the branches of a session, with labels and the place where it goes on."""
    found = await library.find(options.session)
    stored = await library.read(found.session)
    transcript = Transcript(stored.entries)
    labels = _labels(stored.entries)
    nodes, roots, here = _shown(transcript)
    if options.json:
        return _write_json(nodes, labels, here)
    _ = sys.stdout.write(styled(one_line(transcript.title or found.session), BOLD, colour=colour))
    _ = sys.stdout.write("\n")
    room = cells_of_row()
    for lead, node in _drawn(roots):
        mark = f" {HERE}" if node.entry == here else ""
        label = f" [{one_line(labels[node.entry])}]" if node.entry in labels else ""
        text = clipped(node.text, max(20, room - len(lead) - len(mark) - len(label) - 9))
        name = styled(node.entry[:8], DIM, colour=colour)
        shown = f"{lead}{name} {text}{styled(label, CYAN, colour=colour)}"
        _ = sys.stdout.write(f"{shown}{styled(mark, BOLD, colour=colour)}\n")
    tell_recovery(stored)
    return 0


def _shown(
    transcript: Transcript,
) -> tuple[Mapping[EntryId, _Node], Sequence[_Node], EntryId | None]:
    """Leave out what nobody said: what follows it hangs from what came before it."""
    nodes: dict[EntryId, _Node] = {}
    stands_for: dict[EntryId, EntryId | None] = {}
    roots: list[_Node] = []
    for entry in transcript.entries:
        # A parent that comes later, or never, makes a root.
        above = None if entry.parent is None else stands_for.get(entry.parent)
        text = _text(entry)
        if not text:
            stands_for[entry.id] = above
            continue
        node = _Node(entry.id, entry.at_ms, text, above)
        nodes[entry.id] = node
        stands_for[entry.id] = entry.id
        (roots if above is None else nodes[above].children).append(node)
    leaf = transcript.leaf
    return nodes, roots, None if leaf is None else stands_for.get(leaf)


def _drawn(roots: Sequence[_Node]) -> Iterator[tuple[str, _Node]]:
    """Give each node with the lines before it; only where branches part is anything drawn to the right."""
    waiting = list(_placed(roots, ""))
    while waiting:
        node, first, rest = waiting.pop()
        yield first, node
        waiting.extend(_placed(node.children, rest))


def _placed(siblings: Sequence[_Node], rest: str) -> Iterator[tuple[_Node, str, str]]:
    """Give nodes, the last one first, with what stands before their own line and before those that follow."""
    for node in reversed(siblings):
        is_fork = len(siblings) > 1
        first, below = _fork(rest, is_last=node is siblings[-1]) if is_fork else (rest, rest)
        yield node, first, below


def _fork(rest: str, *, is_last: bool) -> tuple[str, str]:
    """Give what stands before the first line of a branch, and before its other lines."""
    if len(rest) >= INDENTS * 2:
        return rest, rest
    return (f"{rest}└─", f"{rest}  ") if is_last else (f"{rest}├─", f"{rest}│ ")


def _text(entry: AnyEntry) -> str:
    """Say in a line what an entry is; empty for what is not shown."""
    match entry:
        case MessageEntry(message=UserMessage(content=content)):
            return f"> {one_line(words(content))}"
        case MessageEntry(message=AssistantMessage() as said):
            return _answer(said)
        case MessageEntry(message=BashMessage(command=command)):
            return f"$ {one_line(command)}"
        case CustomMessageEntry():
            return f"[{one_line(entry.custom_type)}] {one_line(words(entry.content))}"
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
    """Give the labels in force: the last one of each entry counts."""
    last = {entry.target: entry.label for entry in entries if isinstance(entry, LabelEntry)}
    return {target: label for target, label in last.items() if label}


def _write_json(
    nodes: Mapping[EntryId, _Node], labels: Mapping[EntryId, str], here: EntryId | None
) -> int:
    rows: list[JsonValue] = [
        {
            "entry": node.entry,
            "parent": node.parent,
            "at": rfc3339(node.at_ms),
            "text": node.text,
            "label": labels.get(node.entry),
        }
        for node in nodes.values()
    ]
    speak_json()
    _ = sys.stdout.write(encode({"leaf": here, "nodes": rows}).decode() + "\n")
    return 0
