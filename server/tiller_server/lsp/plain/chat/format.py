"""The form of the chat file: whose words stand where, what waits to be sent, and where an answer goes. Pure."""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from agent_core.kernel.values import Value

TITLE: Final = "# Tiller"
HINT: Final = '<!-- Write below the last "## You" and save this file: that sends your words, and the answer comes here. -->'
YOU: Final = "## You"
AGENT: Final = "## Tiller"
TAIL_CHARS: Final = 40
"""How much of the end of our own words is remembered, to see whether somebody has changed it."""

MARK_CHARS: Final = 300
"""How much of the answers is compared, to see how far a file has them."""

_HEADING: Final = re.compile(
    r"^ {0,3}##[ \t]+(you|tiller)[ \t]*:?[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)

_LINE_END: Final = re.compile(r"\r\n|\n|\r")

ChatSpeaker: TypeAlias = Literal["you", "agent"]
ChatPieceKind: TypeAlias = Literal["you", "block", "more", "line"]
"""
`you`: a turn of the user's. `block`: a paragraph or more of the agent. `more`: goes on where the last block ended, in the
middle of a line if need be. `line`: one line of what goes on; several stand below one another.
"""


class ChatPiece(Value, frozen=True, kw_only=True):
    """Something that belongs into the file."""

    kind: ChatPieceKind
    text: str
    """Line ends are `\\n`, none at its ends; of `more` it may begin with white space."""
    from_file: bool = False
    """Of `you`: the user wrote it in the file, where it stands already."""
    extends: str = ""
    """Of `line`: how it begins. Where a line with only that stands in the file, the rest is added to that line."""


class ChatSection(Value, frozen=True, kw_only=True):
    """A heading with what stands below it, as offsets into the text."""

    who: ChatSpeaker
    start: int
    """Of its heading."""
    body: int
    """Behind its heading, before the line end."""
    end: int


class ChatDraft(Value, frozen=True, kw_only=True):
    """Last text of the user, not answered yet."""

    start: int
    """Of its heading; where it has none, of the words."""
    first: int
    """Of its words."""
    text: str
    """Line ends are `\\n`; empty: nothing is there to be sent."""
    has_heading: bool = True


def new_file() -> str:
    """Return the file before anything was said."""
    return f"{TITLE}\n{HINT}\n\n{YOU}\n\n"


def sections(text: str) -> tuple[ChatSection, ...]:
    """Return what stands in the file, in order."""
    found = list(_HEADING.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)] if found else []
    return tuple(
        ChatSection(
            who="you" if one[1].lower() == "you" else "agent",
            start=one.start(),
            body=one.end(),
            end=end,
        )
        for one, end in zip(found, ends, strict=True)
    )


def draft_of(text: str) -> ChatDraft | None:
    """Return what stands below the last `## You`; None: the last word is the agent's.

    A file without any heading is a draft as a whole.
    """
    there = sections(text)
    if not there:
        body = text
        for ours in (TITLE, HINT):
            body = body.replace(ours, " " * len(ours), 1)
        draft_text = body.strip()
        first = body.find(draft_text) if draft_text else len(text)
        return ChatDraft(start=first, first=first, text=plain(draft_text), has_heading=False)
    last = there[-1]
    if last.who == "agent":
        return None
    body = text[last.body : last.end]
    draft_text = body.strip()
    first = last.body + (body.find(draft_text) if draft_text else len(body))
    return ChatDraft(start=last.start, first=first, text=plain(draft_text))


def grown(text: str, pieces: Sequence[ChatPiece], *, tail: str) -> str:
    """Return the file with the pieces inserted, each before the draft; no written text is removed.

    A turn that the user wrote in the file stays where it is; later pieces go below it. A piece that extends a line is
    added to that line.

    Args:
        text: The file.
        pieces: Pieces to insert, in order.
        tail: End of our own words at the last write (see `tail_of`): `more` continues there, or begins anew.
    """
    waiting: list[ChatPiece] = []
    for piece in pieces:
        if piece.extends:
            text = _extended(text, waiting, piece)
            continue
        if not piece.from_file:
            waiting.append(piece)
            continue
        text = _put(text, waiting, tail=tail)
        waiting = []
        closed = _closed(text, piece.text)
        if closed is None:
            # Meanwhile the user made something else of these words; what was sent is kept all the same.
            waiting.append(piece)
        else:
            text = closed
    return _put(text, waiting, tail=tail)


def tail_of(text: str) -> str:
    """Return how the words before the draft end, to be recognised later whatever an editor does to white space."""
    return _tail(text[: _place(text)])


def mark_of(text: str) -> str:
    """Return enough of the end of the answers to know the state of a file by, whatever an editor does to white space."""
    return " ".join(text[max(0, _place(text) - 4 * MARK_CHARS) : _place(text)].split())[
        -MARK_CHARS:
    ]


def line_end_of(text: str) -> str:
    """Return the line end that most lines of a text have."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def plain(text: str) -> str:
    r"""Return words with `\n` as their line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def escaped(text: str) -> str:
    """Return words in which no line can be taken for a heading of the file."""
    return _HEADING.sub(lambda found: found[0].replace("##", "\\##", 1), text)


def _place(text: str) -> int:
    """Return where the answers end."""
    draft = draft_of(text)
    return len(text) if draft is None else draft.start


def _tail(area: str) -> str:
    return area.rstrip()[-4 * TAIL_CHARS :].splitlines()[-1][-TAIL_CHARS:] if area.strip() else ""


def _put(text: str, pieces: Sequence[ChatPiece], *, tail: str) -> str:
    """Insert pieces before the draft; an empty draft is added where there is none."""
    draft = draft_of(text)
    if not pieces and draft is not None:
        return text
    end = line_end_of(text)
    area = text[: len(text) if draft is None else draft.start].rstrip()
    body = _rendered(area, pieces, tail=tail).replace("\n", end)
    if not area:
        body = body.removeprefix(end * 2)
    below = f"{YOU}{end}{end}" if draft is None or not draft.has_heading else ""
    kept = "" if draft is None else text[draft.start :]
    return f"{area}{body}{end}{end}{below}{kept}"


def _closed(text: str, sent_text: str) -> str | None:
    """Begin the answer to the draft and another draft; None: the draft does not begin with these words."""
    draft = draft_of(text)
    if draft is None or not sent_text:
        return None
    end = line_end_of(text)
    behind = _behind(text, draft.first, sent_text)
    if behind is None:
        return None
    rest = text[behind:]
    more = rest.strip()
    between = f"{end}{end}{AGENT}{end}{end}{YOU}{end}{end}"
    return f"{text[:behind]}{between}" + (rest.lstrip() if more else "")


def _extended(text: str, waiting: list[ChatPiece], piece: ChatPiece) -> str:
    """Add to the line that a piece extends, in the file or in a waiting piece; without that line the piece waits too."""
    for at, earlier in reversed([*enumerate(waiting)]):
        if earlier.text == piece.extends:
            waiting[at] = replace(earlier, text=piece.text)
            return text
    row = re.compile(rf"^{re.escape(piece.extends)}(?=\r?$)", re.MULTILINE)
    there = [*row.finditer(text, 0, _place(text))]
    if not there:
        waiting.append(piece)
        return text
    rest = piece.text.removeprefix(piece.extends).replace("\n", line_end_of(text))
    return f"{text[: there[-1].end()]}{rest}{text[there[-1].end() :]}"


def _behind(text: str, first: int, expected: str) -> int | None:
    """Return where words end that begin at an offset, whatever the line ends are; None: others stand there."""
    at = first
    for count, row in enumerate(expected.split("\n")):
        if count:
            gap = _LINE_END.match(text, at)
            if gap is None:
                return None
            at = gap.end()
        if not text.startswith(row, at):
            return None
        at += len(row)
    return at


def _rendered(area: str, pieces: Sequence[ChatPiece], *, tail: str) -> str:
    """Return pieces as they go behind what is there."""
    there = sections(area)
    who = there[-1].who if there else None
    last = _last_line(area)
    is_empty = bool(there) and not area[there[-1].body :].strip()
    out: list[str] = []
    can_go_on = tail != "" and plain(last).endswith(tail) and not is_empty
    for piece in pieces:
        if piece.kind == "you":
            out.append(f"\n\n{YOU}\n\n{escaped(piece.text)}")
            who, can_go_on, last = "you", False, ""
            continue
        if who != "agent":
            out.append(f"\n\n{AGENT}")
            who, can_go_on, last = "agent", False, ""
        out.append(_gap(piece, last, can_go_on=can_go_on))
        goes_on = can_go_on and piece.kind == "more"
        out.append(piece.text if goes_on else piece.text.lstrip())
        last = _last_line(piece.text)
        can_go_on = True
    return "".join(out)


def _gap(piece: ChatPiece, last: str, *, can_go_on: bool) -> str:
    if piece.kind == "more" and can_go_on:
        return ""
    return "\n" if piece.kind == "line" and last.startswith("> ") else "\n\n"


def _last_line(area: str) -> str:
    return area.rsplit("\n", 1)[-1].rstrip()
