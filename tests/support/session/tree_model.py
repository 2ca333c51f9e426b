"""What a session should be, in the plainest terms: who said what after what, names, marks, and words that wait."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["user", "assistant", "compaction", "branch_summary", "name"]
Told = tuple[str, str]
"""A kind and a text."""


@dataclass(slots=True, kw_only=True)
class Node:
    """Something that was said, a summary of what was, or a name that was given on the way."""

    kind: Kind
    text: str
    parent: int | None
    entry: str = ""
    """The id that the session gave it, once it is known; it never changes. A name's is not looked at."""


@dataclass(slots=True)
class TreeModel:
    """One session."""

    nodes: list[Node] = field(default_factory=list)
    leaf: int | None = None
    labels: dict[int, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Words that were accepted and not yet said, in the order in which they will be."""

    @property
    def title(self) -> str | None:
        """The name given last, on whatever branch."""
        return self.title_among(range(len(self.nodes)))

    @property
    def says_something(self) -> bool:
        """Whether anybody said anything: only then is it kept."""
        return any(node.kind in {"user", "assistant"} for node in self.nodes)

    @property
    def shown_leaf(self) -> int | None:
        """The last node of the branch that people see."""
        return self.shown_from(self.leaf)

    @property
    def shown(self) -> list[int]:
        """All nodes that people see, oldest first."""
        return [at for at, node in enumerate(self.nodes) if node.kind != "name"]

    def say(self, kind: Kind, text: str) -> None:
        """Add something at the leaf."""
        self.nodes.append(Node(kind=kind, text=text, parent=self.leaf))
        self.leaf = len(self.nodes) - 1

    def rename(self, title: str | None) -> None:
        """Name the session; nothing happens when it has that name."""
        if title != self.title:
            self.say("name", title or "")

    def go_to(self, target: int) -> str | None:
        """Go on from another node; before the user's words, which come back."""
        if target == self.shown_leaf:
            return None
        node = self.nodes[target]
        if node.kind != "user":
            self.leaf = target
            return None
        self.leaf = node.parent
        return node.text

    def path(self, leaf: int | None) -> list[int]:
        """Give the numbers from the root to a node, names included."""
        found: list[int] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.nodes[leaf].parent
        return found[::-1]

    def shown_from(self, at: int | None) -> int | None:
        """Give a node, or the nearest before it that people see."""
        while at is not None and self.nodes[at].kind == "name":
            at = self.nodes[at].parent
        return at

    def title_among(self, path: Sequence[int]) -> str | None:
        """Give the last name among some nodes."""
        names = [self.nodes[at].text for at in path if self.nodes[at].kind == "name"]
        return (names[-1] if names else "") or None

    def branch(self) -> list[Told]:
        """Give what the present branch says."""
        path = [self.nodes[at] for at in self.path(self.leaf)]
        return [(node.kind, node.text) for node in path if node.kind != "name"]

    def learn(self, entries: Sequence[tuple[str, str | None, str | None]]) -> None:
        """Hold the session's whole tree (ids, parents, labels; oldest first) against ours, and remember the ids."""
        shown = self.shown
        assert len(entries) == len(shown)
        for at, (entry, parent, label) in zip(shown, entries, strict=True):
            node = self.nodes[at]
            assert node.entry in ("", entry)
            node.entry = entry
            above = self.shown_from(node.parent)
            assert parent == (None if above is None else self.nodes[above].entry)
            assert label == self.labels.get(at)

    def check_context(self, seen: Sequence[Told]) -> None:
        """Hold what the model is shown against ours: the newest summary, then an unbroken end of what was said."""
        said = self.branch()
        summaries = [place for place, (kind, _) in enumerate(said) if kind == "compaction"]
        if not summaries:
            assert list(seen) == said
            return
        newest = summaries[-1]
        assert seen[0] == said[newest]
        before = [told for told in said[:newest] if told[0] != "compaction"]
        after = said[newest + 1 :]
        kept = list(seen[1 : len(seen) - len(after)])
        assert kept == before[len(before) - len(kept) :]
        assert list(seen[len(seen) - len(after) :]) == after

    def branched(self, leaf: int | None) -> "TreeModel":
        """Give what a session is that begins with the branch to a node and has nothing else."""
        other = TreeModel()
        for at in self.path(leaf):
            node = self.nodes[at]
            other.say(node.kind, node.text)
            if at in self.labels:
                other.labels[len(other.nodes) - 1] = self.labels[at]
        return other
