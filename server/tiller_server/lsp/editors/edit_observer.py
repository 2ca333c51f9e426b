"""States of a document while an edit of it is under way, and detection of the change that was the edit."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import anyio
from msgspec.structs import replace

from agent_core.kernel.values import Value
from agent_core.workspace.diff.merge import merge
from agent_core.workspace.diff.minimal_edits import (
    TextEdit,
    common_head,
    common_tail,
    minimal_edits,
)
from tiller_server.lsp.documents.mirror import Document, passed
from tiller_server.lsp.documents.positions import LineIndex

MOST_STATES: Final = 256
"""Most states of a document that are recorded during one edit; later ones are ignored."""


class AppliedChange(Value, frozen=True, kw_only=True):
    """The change of a document that an edit of ours made."""

    before: Document
    after: Document


class EditObserver:
    """Recorder of every state of a document while an edit is under way, however short the state lasts."""

    def __init__(
        self,
        document: Document,
        edits: Sequence[TextEdit],
        target: str,
        *,
        scope: anyio.CancelScope,
        grace_s: float,
    ) -> None:
        """Begin with the text that the edit was made for.

        Args:
            document: The document as it was then.
            edits: The edit, for that text, in order.
            target: The text that the edit shall make of it.
            scope: Waits for the answer; once the text is there, no longer than `grace_s`.
            grace_s: In seconds.
        """
        self.target: Final = target
        self.step: AppliedChange | None = None
        """The change that made the wanted text."""
        self._edits = edits
        self._states: list[Document] = [document]
        self._looked = 0
        self._scope = scope
        self._grace_s = grace_s

    def on_change(self, document: Document | None) -> None:
        """Record a state; None: the document was closed."""
        if document is None or self.step is not None or len(self._states) == MOST_STATES:
            return
        if document.text == self.target:
            before = self._states[-1]
            if self._came_in_pieces():
                self.step = AppliedChange(before=self._states[0], after=document)
            elif not document.content_changes or before.text == self._states[0].text:
                self.step = AppliedChange(before=before, after=document)
            # The text is the proof. The answer is waited for only so as not to leave it behind.
            deadline = anyio.current_time() + self._grace_s
            self._scope.deadline = min(self._scope.deadline, deadline)
        self._states.append(document)

    def _came_in_pieces(self) -> bool:
        """Return whether all that was reported so far is a part of the edit: Neovim reports each place alone."""
        first, *others = self._states
        return bool(others) and all(
            _is_part(one.text, first.text, self.target, self._edits) for one in others
        )

    def unlooked(self) -> Sequence[tuple[Document, Document]]:
        """Return the changes that were not looked at so far: those of a text that the edit was not made for."""
        fresh = [*pairwise(self._states)][max(1, self._looked) :]
        self._looked = len(self._states) - 1
        return fresh


def match_change(
    changes: Sequence[tuple[Document, Document]],
    edits: Sequence[TextEdit],
    *,
    first: Document,
    target: str,
) -> AppliedChange | None:
    """Find the change that put the edit into newer text than it was made for. Pure.

    Some editors report several changes at once: then the text closest to the edit alone is used, as an intermediate
    text of the document. Some editors ignore the version and apply the edit at its lines and columns, whatever text is
    there now; others move it along with the text, and remove text that was typed inside of it.

    Args:
        changes: Changes of texts that are newer than the first one.
        edits: The edit, for the first text.
        first: The text that the edit was made for.
        target: Result of the edit on the first text.
    """
    for before, after in changes:
        if after.text == before.text or after.epoch != before.epoch:
            continue
        if (step := _step_between(before, after, edits, first=first, target=target)) is not None:
            return step
        made = _made(before, edits, first=first, target=target)
        if after.text in made:
            return AppliedChange(before=before, after=after)
        text = min(made, key=lambda one: _distance(one, after.text))
        is_closer = _distance(text, after.text) < _distance(before.text, after.text)
        if is_closer and _is_brought(edits, before.text, after.text):
            lines = LineIndex(text, before.lines.encoding)
            return AppliedChange(before=before, after=replace(after, lines=lines))
    return None


def _is_part(text: str, first: str, target: str, edits: Sequence[TextEdit]) -> bool:
    """Return whether a text is what some of the first or of the last edits make of the first text."""
    heads = common_head(text, target), common_head(text, first)
    room = len(text)
    tails = (
        common_tail(text, first, limit=min(room, len(first))),
        common_tail(text, target, limit=min(room, len(target))),
    )
    moved = 0
    for one in edits[:-1]:
        moved += len(one.new_text) - (one.end - one.start)
        old, new = one.end, one.end + moved
        # The edits up to here, or those after it: where they meet nothing is changed.
        for head, head_at, tail, left in (
            (heads[0], new, tails[0], len(first) - old),
            (heads[1], old, tails[1], len(target) - new),
        ):
            if head_at + left == room and head >= head_at and tail >= left:
                return True
    return False


def _made(
    before: Document, edits: Sequence[TextEdit], *, first: Document, target: str
) -> Sequence[str]:
    """Return what editors may make of a text by an edit that was made for another."""
    made = [_put_blindly(first, edits, before), _put_along(first, edits, before)]
    moved = merge(first.text, target, before.text)
    return made if moved.conflicts else [*made, moved.text]


def _step_between(
    before: Document, after: Document, edits: Sequence[TextEdit], *, first: Document, target: str
) -> AppliedChange | None:
    """Find the edit among changes that were told at once, in their order."""
    if not after.content_changes:
        return None
    states = [replace(after, lines=lines) for lines in passed(before, after)]
    made = [_made(state, edits, first=first, target=target) for state in states[:-1]]
    spans = [(start, end) for start in range(len(made)) for end in range(start + 1, len(states))]
    # Editors tell of an edit piece by piece, or of the whole text.
    usual = {1, len(edits)}
    for start, end in sorted(spans, key=lambda span: span[1] - span[0] not in usual):
        is_other = states[start].text != states[end].text
        if is_other and states[end].text in made[start]:
            return AppliedChange(before=states[start], after=states[end])
    return None


def _distance(one: str, other: str) -> int:
    """Count what must be taken away and put in to make one text of another."""
    return sum(len(edit.new_text) + edit.end - edit.start for edit in minimal_edits(one, other))


def _is_brought(edits: Sequence[TextEdit], before: str, after: str) -> bool:
    """Return whether a change has brought what the edits bring; of mere deletions nobody can tell."""
    inserted = [word for edit in edits if (word := edit.new_text.strip())]
    return bool(inserted) and all(after.count(word) > before.count(word) for word in inserted)


def _put_blindly(first: Document, edits: Sequence[TextEdit], newer: Document) -> str:
    """Apply edits at the lines and columns that they were made for; positions beyond the end move to the end."""
    made_for = LineIndex(first.text, first.lines.encoding)
    lines = LineIndex(newer.text, newer.lines.encoding)

    def place(offset: int) -> int:
        found = lines.offset(*made_for.position(offset))
        # Beyond the end of a line is its end; only where Vim types is there something between the two.
        return found - newer.text.startswith("\r\n", found - 1) if found else found

    places = [(place(one.start), place(one.end), one.new_text) for one in edits]
    return _put(newer.text, places)


def _put_along(first: Document, edits: Sequence[TextEdit], newer: Document) -> str:
    """Apply edits at the characters that they were made for; text inserted at their ends stays out of them."""
    since = minimal_edits(first.text, newer.text)
    places = [
        (
            _moved(one.start, since, behind=True),
            _moved(one.end, since, behind=one.start == one.end),
            one.new_text,
        )
        for one in edits
    ]
    return _put(newer.text, places)


def _moved(offset: int, since: Sequence[TextEdit], *, behind: bool) -> int:
    """Return where a place is after other edits: behind what they put there, or before it."""
    moved = offset
    for one in since:
        if one.end < offset or (one.end == offset and (behind or one.start < offset)):
            moved += len(one.new_text) - (one.end - one.start)
        elif one.start < offset:
            return moved - (offset - one.start) + (len(one.new_text) if behind else 0)
        else:
            break
    return moved


def _put(text: str, places: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, new_text in places:
        begin = max(done, start)
        parts += (text[done:begin], new_text)
        done = max(begin, end)
    return "".join((*parts, text[done:]))
