"""Reads the bytes of a session file, whole or damaged: pure.

What cannot be read hides only itself. An unfinished last line is told from a finished one that merely lacks its
newline; a damaged line in the middle is skipped and what followed it is tied to what came before it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_core.kernel import EntryId, JsonObject, json
from agent_core.kernel.errors import SessionDamaged
from agent_core.transcript.codec import HEADER_TYPE, decode_entry, decode_header, encode_header
from agent_core.transcript.entries import FORMAT_VERSION, AnyEntry, Header
from agent_core.transcript.migrate import migrate

SALVAGE_BYTES = 4_096
"""How far into a damaged line its ids are looked for."""
GLUED_TRIES = 3

_PADDING = b"\0 \t\r\v\f"
_BOM = b"\xef\xbb\xbf"
_OWN_ID = re.compile(rb'"id"\s*:\s*"([^"\\]{1,64})"')
_PARENT_ID = re.compile(rb'"parentId"\s*:\s*"([^"\\]{1,64})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """How a file that does not end with a newline is put right."""

    keep: int
    """How many bytes from the beginning are good."""
    fragment: bytes
    """What is cut off and worth keeping beside the file; empty for mere padding."""
    newline: bool
    """The last line is whole and only lacks its newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a session file holds."""

    header: Header
    entries: tuple[AnyEntry, ...]
    skipped_lines: tuple[int, ...]
    tail: Tail | None
    """None: the file ends as it should."""
    migrated: tuple[JsonObject, ...] | None
    """All lines brought to today's format; None: they are of today's format or a later one."""


def recover(data: bytes, *, name: str, new_id: Callable[[Container[object]], str]) -> Recovered:
    """Read a session file.

    Args:
        data: The whole file.
        name: What to call it in errors.
        new_id: Draws ids for entries of formats that had none.

    Raises:
        SessionDamaged: It does not begin with a session header.
    """
    lines = data.removeprefix(_BOM).split(b"\n")
    tail = _tail(lines[-1], size=len(data))
    if tail is not None and not tail.newline:
        lines[-1] = b""
    skipped: set[int] = set()
    raws = _parsed(lines, skipped)
    header = _header(next(raws, None), name=name)
    entries = _Reader(skipped)
    migrated = None
    if header.version < FORMAT_VERSION:
        rest = list(raws)
        old = [json.as_object(json.decode(encode_header(header))), *(raw for _, raw in rest)]
        migrated = migrate(old, new_id=new_id)
        header = decode_header(migrated[0])
        raws = zip((number for number, _ in rest), migrated[1:], strict=True)
    for number, raw in raws:
        entries.take(raw, line=number)
    return Recovered(
        header=header,
        entries=entries.mended(lines),
        skipped_lines=tuple(sorted(skipped)),
        tail=tail,
        migrated=migrated,
    )


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


def _header(first: tuple[int, JsonObject] | None, *, name: str) -> Header:
    if first is None:
        message = (
            f"the session file {name!r} holds no readable line: restore it from a copy or remove it"
        )
        raise SessionDamaged(message)
    try:
        return decode_header(first[1])
    except ValueError as error:
        message = f"{name!r} is no session file: {error}"
        raise SessionDamaged(message) from error


def _parsed(lines: Sequence[bytes], skipped: set[int]) -> Iterator[tuple[int, JsonObject]]:
    """Give the lines that can be read, by number from 1; the numbers of the others are added to `skipped`."""
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        value = parse_line(line)
        if value is None:
            skipped.add(number)
        else:
            yield number, value


def _tail(last: bytes, *, size: int) -> Tail | None:
    if not last:
        return None
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


class _Reader:
    """Collects entries, and ties those that follow a damaged line to what came before it."""

    def __init__(self, skipped: set[int]) -> None:
        self._skipped = skipped
        self._entries: dict[EntryId, AnyEntry] = {}
        self._ids: list[EntryId] = []
        self._lines: list[int] = []

    def take(self, raw: JsonObject, *, line: int) -> None:
        """Read an entry; one without an id, or with an id that was there, joins the skipped ones."""
        try:
            entry = None if raw.get("type") == HEADER_TYPE else decode_entry(raw)
        except ValueError:
            entry = None
        if entry is None or entry.id in self._entries:
            self._skipped.add(line)
            return
        self._entries[entry.id] = entry
        self._ids.append(entry.id)
        self._lines.append(line)

    def mended(self, lines: Sequence[bytes]) -> tuple[AnyEntry, ...]:
        """Give the entries in order, none cut off from the rest by a skipped line of these."""
        skipped = sorted(self._skipped)
        entries = tuple(self._entries.values())
        if not skipped:
            return entries
        stand_ins = {
            own: parent if parent is not None else self._before(number)
            for number in skipped
            for own, parent in _ids(lines[number - 1])
        }
        mended: list[AnyEntry] = []
        for entry, line in zip(entries, self._lines, strict=True):
            parent = entry.parent
            gap = bisect_left(skipped, line)
            if gap > 0 and parent is not None and parent not in self._entries:
                # The lost line says whose child it was, or it followed the line before it.
                stand_ins.setdefault(parent, self._before(skipped[gap - 1]))
                mended.append(replace(entry, parent=self._resolved(parent, stand_ins)))
            else:
                mended.append(entry)
        return tuple(mended)

    def _before(self, line: int) -> EntryId | None:
        place = bisect_left(self._lines, line)
        return self._ids[place - 1] if place > 0 else None

    def _resolved(
        self, lost: EntryId, stand_ins: Mapping[EntryId, EntryId | None]
    ) -> EntryId | None:
        """Follow lost lines up to an entry that is there."""
        seen: set[EntryId] = set()
        found: EntryId | None = lost
        while found is not None and found not in self._entries and found not in seen:
            seen.add(found)
            found = stand_ins.get(found)
        return found if found in self._entries else None


def _ids(line: bytes) -> list[tuple[EntryId, EntryId | None]]:
    """Find out what a damaged line was called, and whose child it was."""
    head = line[:SALVAGE_BYTES]
    own, parent = _OWN_ID.search(head), _PARENT_ID.search(head)
    if own is None:
        return []
    return [(_entry_id(own), None if parent is None else _entry_id(parent))]


def _entry_id(found: re.Match[bytes]) -> EntryId:
    return EntryId(found.group(1).decode("utf-8", "replace"))
