"""The context of the leaf is at each moment what is built from its path anew."""

from dataclasses import replace
from random import Random

import pytest

from agent_core.kernel import EntryId
from agent_core.transcript import (
    AnyEntry,
    ContextEditEntry,
    MessageEntry,
    SessionNameEntry,
    Transcript,
    context_messages,
)
from agent_core.transcript.context import LeafContext
from tests.support.session.entries import AT_MS, assistant, compaction, entry, user


def added(draw: Random, tree: Transcript, name: str) -> AnyEntry:
    """Draw an entry after the leaf."""
    leaf, ids = tree.leaf, [one.id for one in tree.path()]
    kind = draw.choice(["user", "answer", "user", "answer", "title", "edit", "compaction"])
    if leaf is None or kind == "user":
        return entry(name, user(f"words {name}"), parent=leaf)
    if kind == "answer":
        return entry(name, assistant(f"answer {name}"), parent=leaf)
    if kind == "title":
        return SessionNameEntry(id=EntryId(name), parent=leaf, at_ms=AT_MS, name=name)
    if kind == "compaction":
        return compaction(name, parent=leaf, first_kept=draw.choice(ids))
    content = draw.choice([None, {"content": f"edited {name}"}])
    return ContextEditEntry(
        id=EntryId(name), parent=leaf, at_ms=AT_MS, target=draw.choice(ids), replacement=content
    )


@pytest.mark.parametrize("seed", range(30))
def test_it_equals_a_rebuild_from_the_path_after_each_change(seed: int) -> None:
    draw, tree = Random(seed), Transcript()  # noqa: S311 - the same draw each time
    context = LeafContext(tree)
    for number in range(60):
        match draw.randrange(12):
            case 0:
                tree.move(draw.choice([None, *(one.id for one in tree.entries)]))
            case 1 if messages := [one for one in tree.path() if isinstance(one, MessageEntry)]:
                tree.swap([replace(draw.choice(messages), message=user(f"swapped {number}"))])
            case _:
                tree.add(added(draw, tree, f"e{number}"))
        if draw.random() < 0.7:
            assert context.messages() == context_messages(tree.path())
            assert context.messages() is context.messages(), "nothing was built again"
