"""Parts of a session that belong in the chat file, and how many of them the file has. Pure."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from agent_core.workspace.diff.minimal_edits import line_hunks
from tiller_server.lsp.plain.chat.format import AGENT, YOU, ChatPiece, draft_of, mark_of

MOST_CHARS: Final = 400_000
"""So much is kept to make the file anew; the session has the rest."""
STATES: Final = 8
"""So many states of the file are known again, also when the disk had a later one: an editor may have read it before."""
EARLIER: Final = ChatPiece(
    kind="line", text="> What was said before is in the session, but not shown here."
)


class ChatProjection:
    """Pieces of one session in order. Unsaved pieces in an editor may be lost, so two positions are kept."""

    def __init__(self, pieces: Sequence[ChatPiece] = ()) -> None:
        """Begin with the pieces so far, none of which is in a file."""
        gone = _too_many(pieces, most=len(pieces) - 1)
        self._pieces = [EARLIER, *pieces[gone:]] if gone else list(pieces)
        self._given = 0
        self._kept = 0
        self._sealed = self._logged = len(self._pieces)
        self._marks: list[tuple[str, int]] = []

    @property
    def is_behind(self) -> bool:
        """Whether something is not in the file."""
        return self._given < len(self._pieces)

    @property
    def is_unsaved(self) -> bool:
        """Whether something is in an editor alone."""
        return self._kept < self._given

    @property
    def mark(self) -> str:
        """Mark of the file as it was last written; empty before the first write."""
        return self._marks[-1][0] if self._marks else ""

    def add(self, *pieces: ChatPiece) -> None:
        """Append pieces; one that continues an open block is merged into it."""
        for piece in pieces:
            last = len(self._pieces) - 1
            is_open = last >= max(self._given, self._sealed)
            if piece.kind == "more" and is_open and self._pieces[last].kind in {"block", "more"}:
                text = self._pieces[last].text + piece.text
                self._pieces[last] = replace(self._pieces[last], text=text)
            else:
                self._pieces.append(piece)

    def waiting(self) -> tuple[ChatPiece, ...]:
        """Return what is not in the file; `put` says when it is."""
        self._sealed = len(self._pieces)
        return tuple(self._pieces[self._given :])

    def put(self, count: int, mark: str) -> None:
        """Record that a number of waiting pieces are in the file.

        Args:
            count: Number of pieces, from the first waiting one on.
            mark: Present mark of the file (see `mark_of`).
        """
        self._given += count
        self._marks.append((mark, self._given))

    def keep(self) -> None:
        """Record that the disk has all that is in the file."""
        self._kept = self._given
        del self._marks[:-STATES]
        self._shorten()

    def knows(self, mark: str) -> bool:
        """Return whether the file was in the state that a mark stands for."""
        return any(one == mark for one, _ in self._marks)

    def lose(self, mark: str) -> bool:
        """Record that the opened file does not have all pieces; return whether its mark is known.

        Later states stay known: the editor may have shown an old text, and read the disk after that.
        """
        positions = [at for one, at in self._marks if one == mark]
        self._given = self._kept = positions[-1] if positions else self._kept
        self._marks = [one for one in self._marks if one[0] != mark]
        self._marks.append((mark, self._given))
        return bool(positions)

    def start_anew(self) -> None:
        """Record that there is no file any more."""
        self._given = self._kept = 0
        self._marks.clear()

    def unsent(self, draft: str) -> str:
        """Return a draft without the text that was sent from there and is not answered yet."""
        for piece in self._pieces[self._given :]:
            if piece.from_file and draft.startswith(piece.text):
                draft = draft[len(piece.text) :].strip()
        return draft

    def find(self, text: str) -> None:
        """Find out how much of what was said at the beginning a file has that an earlier process wrote. Blocking."""
        rest = _rest(self._pieces[: self._logged], text)
        self._given = self._kept = self._logged - len(rest)
        self._pieces[self._given : self._logged] = rest
        self._marks = [(mark_of(text), self._given)]

    def _shorten(self) -> None:
        gone = _too_many(self._pieces, most=self._kept)
        if gone > 1:
            self._pieces[:gone] = [EARLIER]
            self._given -= gone - 1
            self._kept -= gone - 1
            self._sealed = max(0, self._sealed - gone + 1)
            self._marks = [(mark, at - gone + 1) for mark, at in self._marks if at >= gone]


def _too_many(pieces: Sequence[ChatPiece], *, most: int) -> int:
    """Return how many of the oldest pieces to drop; the rest begins with a turn of the user, if possible."""
    size = sum(len(one.text) for one in pieces)
    if size <= MOST_CHARS:
        return 0
    gone = 0
    while size > MOST_CHARS // 2 and gone < most:
        size -= len(pieces[gone].text)
        gone += 1
    return next((at for at in range(gone, most) if pieces[at].kind == "you"), gone)


def _rest(pieces: Sequence[ChatPiece], text: str) -> list[ChatPiece]:
    """Return what a file lacks at its end. One that has none of it was begun anew: it lacks nothing."""
    numbered = [*enumerate(pieces)]
    rows = [(row, at) for at, piece in numbered for row in _rows(_shown(piece))]
    hunks = line_hunks([row for row, _ in rows], _rows(text))
    missing = set(chain.from_iterable(range(one.old_start, one.old_end) for one in hunks))
    has = {at for n, (row, at) in enumerate(rows) if n not in missing and row not in {YOU, AGENT}}
    if not any(pieces[at].kind == "you" for at in has):
        return []
    last = max(has)
    if pieces[last].kind == "you":
        draft = draft_of(text)
        # Perhaps the file was saved with these words, and what came after them was lost.
        is_last = draft is not None and draft.text == pieces[last].text
        begun = [replace(pieces[last], from_file=True)] if is_last else []
        return [*begun, *pieces[last + 1 :]]
    lost = [row for n, (row, at) in enumerate(rows) if at == last and n in missing]
    more = [ChatPiece(kind="block", text="\n".join(lost))] if lost else []
    return [*more, *pieces[last + 1 :]]


def _shown(piece: ChatPiece) -> str:
    return f"{YOU}\n{piece.text}" if piece.kind == "you" else piece.text


def _rows(text: str) -> list[str]:
    return [row.rstrip() for row in text.splitlines() if row.strip()]
