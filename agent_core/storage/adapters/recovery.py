"""Reader of the lines of a session file, intact or damaged, one at a time: pure.

An unreadable line hides only itself. An unfinished last line is distinguished from a finished one that only lacks its
newline; a damaged line in the middle is skipped and the entries after it are attached to the entries before it.
"""

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec
from msgspec import Struct

from agent_core.kernel import EntryId, JsonObject, json
from agent_core.kernel.errors import SessionDamaged
from agent_core.kernel.json import decode_sound
from agent_core.kernel.threads import gc_paused
from agent_core.kernel.values import Value
from agent_core.storage.adapters.entry_collector import (
    Cool,
    DamagedLines,
    EntryCollector,
    LineSpan,
    whole,
)
from agent_core.storage.adapters.lines import RawLine, lines_of
from agent_core.transcript.codec import (
    MessageLine,
    StoredEntry,
    decode_header,
    encode_header,
    read_head,
    read_whole,
)
from agent_core.transcript.entries import FORMAT_VERSION, AnyEntry, Header
from agent_core.transcript.migration import migrate

GLUED_TRIES = 3

_PADDING = b"\0 \t\r\v\f"
_BOM = b"\xef\xbb\xbf"
_EVEN = rb"(?<!\\)(?:\\\\)*"
_HALF = re.compile(
    _EVEN
    + rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F])"
)
"""An escaped half of a character without its other half."""
_COMPACTION = b'"compaction"'
_TYPES = (b'"type":', b'"type": ')
_TYPE_KEY_BYTES = max(map(len, _TYPES))
_LONGEST = len(_COMPACTION) + _TYPE_KEY_BYTES


class Tail(Value, frozen=True, kw_only=True):
    """How a file that does not end with a newline is put right."""

    keep: int
    """How many bytes from the beginning are good."""
    fragment: bytes
    """Bytes that are cut off and worth a copy beside the file; empty for mere padding."""
    newline: bool
    """The last line is whole and only lacks its newline."""


class RecoveredFile(Value, frozen=True, kw_only=True):
    """Content of a session file."""

    header: Header
    """Of today's version, or a later one."""
    by_id: dict[EntryId, StoredEntry]
    """In the order of the file; owned by whoever asked."""
    places: dict[EntryId, LineSpan]
    """Where their lines are; empty for a file of an older version, which is to be written anew."""
    skipped_lines: tuple[int, ...]
    patched_lines: tuple[int, ...]
    loose: tuple[EntryId, ...]
    """Entries whose parent is not there, or that follow themselves."""
    tail: Tail | None
    """None: the file ends as it should."""
    is_old: bool
    """The file is of an older version; header and entries are of today's."""

    @property
    def stored(self) -> tuple[StoredEntry, ...]:
        """Return the entries in the order of the file, as far as they were decoded."""
        return tuple(self.by_id.values())

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """Return the entries in the order of the file."""
        stored = self.by_id.values()
        return tuple([read_whole(one) if isinstance(one, MessageLine) else one for one in stored])


class _Notes(Struct, kw_only=True):
    """Findings of the reader, line by line."""

    losses: DamagedLines = msgspec.field(default_factory=DamagedLines)
    patched: list[int] = msgspec.field(default_factory=list[int])
    tail: Tail | None = None
    is_old: bool = False
    """Lines of an older version are decoded whole."""


_Parsed = tuple[int, int, bytes, JsonObject | MessageLine]
"""A line's number from 1, where it begins, its bytes, and its content or the beginning of it."""


def recover_lines(
    lines: Iterable[RawLine],
    *,
    name: str,
    new_id: Callable[[Container[object]], str],
    cool: Cool,
    replaced_until: int | None = None,
) -> RecoveredFile:
    """Read a session file.

    Args:
        lines: The lines of the whole file.
        name: The name of the file in errors.
        new_id: Creates ids for entries of versions that had none.
        cool: Called with entries that a later compaction has replaced in the context.
        replaced_until: Messages before this offset are read without their bodies, and later ones are decoded when they
            are needed; the function `replaced_until` returns a good value. None: all are decoded.

    Raises:
        SessionDamaged: The file does not begin with a session header.
    """
    with gc_paused():
        notes = _Notes()
        gathering = EntryCollector(notes.losses, cool=cool, replaced_until=replaced_until or 0)
        parsed = _parsed(lines, notes, heads_from=replaced_until)
        return _recovered(parsed, notes, gathering, name=name, new_id=new_id)


def _recovered(
    parsed: Iterator[_Parsed],
    notes: _Notes,
    gathering: EntryCollector,
    *,
    name: str,
    new_id: Callable[[Container[object]], str],
) -> RecoveredFile:
    header = _header(next(parsed, None), name=name)
    is_old = notes.is_old = header.version < FORMAT_VERSION
    if is_old:
        header = _take_migrated(gathering, header, list(parsed), new_id=new_id)
    else:
        for number, start, text, raw in parsed:
            if isinstance(raw, MessageLine):
                gathering.take_head(raw, line=number, start=start)
            else:
                gathering.take(raw, line=number, text=text, start=start)
    gathering.mend()
    return RecoveredFile(
        header=header,
        by_id=gathering.entries,
        places=gathering.places,
        skipped_lines=notes.losses.lines,
        patched_lines=tuple(notes.patched),
        loose=gathering.loose(),
        tail=notes.tail,
        is_old=is_old,
    )


def recover(data: bytes, *, name: str, new_id: Callable[[Container[object]], str]) -> RecoveredFile:
    """Read a session file that is at hand as a whole.

    Raises:
        SessionDamaged: It does not begin with a session header.
    """
    return recover_lines(lines_of([data]), name=name, new_id=new_id, cool=whole)


def replaced_until(blocks: Iterable[bytes]) -> int:
    """Return the offset of the last line that looks like a compaction: entries before it are seldom needed whole.

    A guess from the bytes alone. If it is wrong, the needed bodies are read back.
    """
    start = found = 0
    carried = b""
    for block in blocks:
        # What two blocks share is looked at by itself: a copy of each block would cost more than the search.
        shared = carried + block[:_LONGEST]
        for text, begun in ((shared, start - len(carried)), (block, start)):
            place = _last_compaction(text)
            if place is not None:
                found = begun + place
        carried = (shared if len(block) < _LONGEST else block)[-_LONGEST:]
        start += len(block)
    return found


def _last_compaction(text: bytes) -> int | None:
    place = text.rfind(_COMPACTION)
    while place >= 0:
        if text.endswith(_TYPES, max(0, place - _TYPE_KEY_BYTES), place):
            return place
        place = text.rfind(_COMPACTION, 0, place)
    return None


def parse_line(line: bytes) -> JsonObject | None:
    """Read one line; None when there is no JSON object in it.

    Padding of zero bytes, as a power cut leaves it, is ignored. Where other programs have glued a line to a torn one,
    the whole line at the end counts.
    """
    text = line.strip(_PADDING)
    found = _object(text)
    if found is not None or not text:
        return found
    place = len(text)
    for _ in range(GLUED_TRIES):
        place = text.rfind(b'{"type":', 1, place)
        if place < 0:
            return None
        found = _object(text[place:])
        # Blocks inside a message have a type as well: only entries have a parent.
        if found is not None and "parentId" in found:
            return found
    return None


def _take_migrated(
    gathering: EntryCollector,
    header: Header,
    rest: list[_Parsed],
    *,
    new_id: Callable[[Container[object]], str],
) -> Header:
    raws = (raw for _, _, _, raw in rest if not isinstance(raw, MessageLine))
    old = [json.as_object(json.decode(encode_header(header))), *raws]
    first, *migrated = migrate(old, new_id=new_id)
    for (number, _, text, _), raw in zip(rest, migrated, strict=True):
        gathering.take(raw, line=number, text=text, start=None)
    return decode_header(first)


def _header(first: _Parsed | None, *, name: str) -> Header:
    if first is None or isinstance(first[3], MessageLine):
        message = (
            f"the session file {name!r} holds no readable line: restore it from a copy or remove it"
        )
        raise SessionDamaged(message)
    try:
        return decode_header(first[3])
    except ValueError as error:
        message = f"{name!r} is no session file: {error}"
        raise SessionDamaged(message) from error


def _parsed(
    lines: Iterable[RawLine], notes: _Notes, *, heads_from: int | None
) -> Iterator[_Parsed]:
    """Return the lines that can be read; problems of the others are recorded in `notes`.

    Args:
        lines: The lines of the whole file.
        notes: Filled on the way.
        heads_from: Offset from which the beginning of a message is enough; None: every line is decoded whole.
    """
    whole_until = math.inf if heads_from is None else max(heads_from, 1)
    for number, (start, found, is_ended) in enumerate(lines, start=1):
        line = found.removeprefix(_BOM) if number == 1 else found
        if not is_ended:
            notes.tail = _tail(line, size=start + len(found))
            if not notes.tail.newline:
                return
        if start >= whole_until and not notes.is_old and (head := read_head(line)) is not None:
            yield number, start, line, head
            continue
        if not line or line.isspace():
            continue
        try:
            value = decode_sound(line)
        except ValueError:
            value = _mended(line, number, notes)
        if isinstance(value, dict):
            yield number, start, line, value
        else:
            notes.losses.add(number, line)


def _mended(line: bytes, number: int, notes: _Notes) -> JsonObject | None:
    """Read a line that is not sound; halves of characters are only to be found in such."""
    value = parse_line(line)
    if value is not None and _HALF.search(line):
        notes.patched.append(number)
    return value


def _tail(last: bytes, *, size: int) -> Tail:
    text = last.rstrip(_PADDING)
    start = size - len(last)
    if text.strip(_PADDING) and _object(text.strip(_PADDING)) is not None:
        return Tail(keep=start + len(text), fragment=b"", newline=True)
    return Tail(keep=start, fragment=text.strip(_PADDING), newline=False)


def _object(text: bytes) -> JsonObject | None:
    try:
        value = json.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
