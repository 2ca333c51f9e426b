"""Whether an edit is still in a text, by the texts from before and after it; pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from agent_core.workspace.diff.minimal_edits import line_hunks, lines_of
from agent_core.workspace.files.proxy import EditOrigin
from tiller_server.lsp.documents.mirror import hash_of
from tiller_server.lsp.editors.edit_verification import match_edit

KEPT_CHARS: Final = 400_000
"""So much text is kept of all edits together; of others their hashes."""


class KeptText(Struct, kw_only=True):
    """A former text of a document."""

    size: int
    """In characters."""
    text: str | None
    """None: it was let go of."""
    sha256: str = ""
    """Only of a text that was let go of."""

    @classmethod
    def of(cls, text: str) -> "KeptText":
        """Keep a text."""
        return cls(size=len(text), text=text)

    def is_text(self, text: str) -> bool:
        """Return whether a text is this one."""
        if len(text) != self.size:
            return False
        return text == self.text if self.text is not None else hash_of(text) == self.sha256

    def drop_text(self) -> None:
        """Keep no more than the hash."""
        if self.text is not None:
            self.sha256, self.text = hash_of(self.text), None


class TrackedEdit(Struct, kw_only=True, eq=False):
    """An edit of ours that was verified in an open document."""

    before: KeptText
    after: KeptText
    origin: EditOrigin | None
    saved: bool
    """Whether the disk has had it."""
    is_undone: bool = False
    is_ours_to_take: bool = False
    """A later edit of ours took its changes back: only the former texts tell anything of it now."""
    _blocks: tuple[tuple[str, str], ...] | None = None

    @property
    def blocks(self) -> tuple[tuple[str, str], ...]:
        """The whole lines that it took away and brought, change by change; none when a text was let go of."""
        if self._blocks is None:
            before, after = self.before.text, self.after.text
            self._blocks = () if before is None or after is None else _blocks(before, after)
        return self._blocks


def present_edits(edits: Sequence[TrackedEdit], text: str) -> Mapping[int, bool]:
    """Return for each edit, by index, whether a text contains it; empty unless it was the text before or after one.

    Args:
        edits: Of one document, oldest first; each was made while all before it were in place.
        text: The present text.
    """
    for index in range(len(edits) - 1, -1, -1):
        edit = edits[index]
        if edit.after.is_text(text):
            return {one: one <= index for one in range(len(edits))}
        if edit.before.is_text(text):
            return {one: one < index for one in range(len(edits))}
    return {}


def toggled_edits(edits: Sequence[TrackedEdit], text: str) -> Mapping[int, bool]:
    """Return which edits a text has that were undone, or has no more, among other changes.

    Of those of which nobody can tell it says nothing.
    """
    found: dict[int, bool] = {}
    for index, edit in enumerate(edits):
        before, after = edit.before.text, edit.after.text
        if before is None or after is None or not _may_have_turned(edit, text):
            continue
        is_there = match_edit(before, after, text).is_whole
        is_gone = match_edit(after, before, text).is_whole
        if is_there != is_gone and is_there == edit.is_undone:
            found[index] = is_there
    return found


def drop_texts_over_limit(edits: Sequence[TrackedEdit]) -> None:
    """Release texts beyond `KEPT_CHARS`, those of the oldest edits first; their hashes stay."""
    room = KEPT_CHARS
    counted: set[int] = set()
    for edit in reversed(edits):
        for one in (edit.after, edit.before):
            if one.text is None:
                continue
            if id(one.text) not in counted:
                counted.add(id(one.text))
                room -= one.size
            if room < 0:
                one.drop_text()


def _may_have_turned(edit: TrackedEdit, text: str) -> bool:
    """Return whether it is worth a closer look: most of what a user types has nothing to do with an edit."""
    brought = [new for _, new in edit.blocks if new]
    if edit.is_undone:
        return all(block in text for block in brought)
    # Where lines only went away, nothing can be missing.
    return not brought or any(block not in text for block in brought)


def _blocks(before: str, after: str) -> tuple[tuple[str, str], ...]:
    old, new = lines_of(before), lines_of(after)
    return tuple(
        (
            "".join(old[one.old_start : one.old_end]),
            "".join(new[one.new_start : one.new_end]),
        )
        for one in line_hunks(old, new)
    )
