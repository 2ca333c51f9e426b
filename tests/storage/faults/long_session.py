"""A long session as bytes: words of many scripts, tool calls, long results, compactions, entries of others."""

import random
from itertools import accumulate

from agent_core.kernel import EntryId, json
from agent_core.transcript import AnyEntry, StoredMessage, UnknownEntry
from agent_core.transcript.codec import decode_entry, encode_entry, encode_header
from tests.support.session.entries import (
    AT_MS,
    assistant,
    call,
    compaction,
    entry,
    header,
    result,
    user,
)

ALPHABET = 'abc xyz \n\t"\\{}[]:,0 ü é 漢字 かな 한글 🦜 \u2028 '
LONGEST_CHARS = 2_400


class LongSession:
    """Entries that hang together, and the file that they make."""

    def __init__(self, count: int, *, seed: int) -> None:
        draw = random.Random(seed)  # noqa: S311 - the same session every time
        made = [_made(number, draw) for number in range(count)]
        lines = [encode_header(header()), *map(encode_entry, made)]
        self.content = b"".join(line + b"\n" for line in lines)
        self.ends = tuple(accumulate(len(line) + 1 for line in lines))
        """Where each line ends, its newline included; the header's first."""
        self.entries = tuple(decode_entry(json.as_object(json.decode(line))) for line in lines[1:])

    def whole(self, size: int) -> int:
        """Say how many entries are whole in the first bytes; the newline is not part of a line."""
        return sum(end - 1 <= size for end in self.ends[1:])

    def torn(self, size: int) -> bytes:
        """Give the piece of a line that a cut leaves, without spaces at its end; nothing when only its newline is missing."""
        start = max((end for end in self.ends if end <= size), default=0)
        return b"" if size + 1 in self.ends else self.content[start:size].rstrip(b" ")


def _made(number: int, draw: random.Random) -> AnyEntry:
    own, parent = f"e{number}", f"e{number - 1}" if number else None
    if number and number % 19 == 0:
        return compaction(own, parent=f"e{number - 1}", first_kept=f"e{number // 2}")
    if number % 17 == 16:
        raw = {
            "type": "of_another_program",
            "id": own,
            "parentId": parent,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "words": _words(draw),
        }
        named = None if parent is None else EntryId(parent)
        return UnknownEntry(id=EntryId(own), parent=named, at_ms=AT_MS, raw=raw)
    return entry(own, _message(number, draw), parent=parent)


def _message(number: int, draw: random.Random) -> StoredMessage:
    match number % 3:
        case 0:
            return user(_words(draw))
        case 1:
            return assistant(
                _words(draw), call("read", {"path": _words(draw)}, call_id=f"c{number}")
            )
        case _:
            return result(_words(draw), call_id=f"c{number - 1}")


def _words(draw: random.Random) -> str:
    return "".join(draw.choices(ALPHABET, k=draw.randrange(1, LONGEST_CHARS)))
