"""Finds secrets that are known letter by letter, in every form in which they usually travel: pure."""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import quote, quote_plus

from agent_core.kernel.redaction.pattern_search import SecretSpan

SHORTEST_CHARS = 8
"""Minimum length of a secret, in characters. A shorter value may be any word of a text."""
LONGEST_CHARS = 16_384
"""Of a longer value only so much is looked for."""
KIND = "secret"


def holdable(values: Iterable[str]) -> tuple[str, ...]:
    """Return what is looked for of some values: each once, without what is too short."""
    kept = dict.fromkeys(one.strip()[:LONGEST_CHARS] for one in values)
    return tuple(one for one in kept if len(one) >= SHORTEST_CHARS)


class HeldValues:
    """Values that must not show, with their encodings. Never changes."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Prepare the search.

        Args:
            values: The secrets; values shorter than `SHORTEST_CHARS` are left out.
        """
        self.values = holdable(values)
        self._plain = _distinct(chain.from_iterable(map(_plain_forms, self.values)))
        self._base64 = _distinct(chain.from_iterable(map(_base64_forms, self.values)))
        self._longest = max(map(len, (*self._plain, *self._base64)), default=0)

    def spans(self, text: str) -> Iterator[SecretSpan]:
        """Find all of them; spans may overlap and come in no order."""
        for needle in (*self._plain, *self._base64):
            yield from _found(text, needle)
        if "\n" in text:
            yield from self._wrapped(text)

    def begins_at(self, text: str) -> int:
        """Return where the end of a text may be the beginning of a value; the text's length: nowhere."""
        # Lines of base64 are short: with its breaks a value is less than twice as long.
        first = max(0, len(text) - 2 * self._longest)
        tail = text[first:]
        nearest = _unfinished(tail, (*self._plain, *self._base64))
        if "\n" in tail:
            compact = _on_one_line(tail)
            wrapped = _unfinished(compact, self._base64)
            if wrapped < len(compact):
                nearest = min(nearest, _places(tail)[wrapped])
        return first + nearest

    def _wrapped(self, text: str) -> Iterator[SecretSpan]:
        """Find base64 that was broken into lines, as `base64` and mail do."""
        compact = _on_one_line(text)
        found = [span for needle in self._base64 for span in _found(compact, needle)]
        if found:
            places = _places(text)
            for begin, end, kind in found:
                yield places[begin], places[end - 1] + 1, kind


def _distinct(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(form for form in forms if len(form) >= SHORTEST_CHARS))


def _plain_forms(value: str) -> Iterator[str]:
    yield value
    written = json.dumps(value)[1:-1]
    yield written
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    # JSON inside of JSON is how tool arguments travel.
    yield json.dumps(written)[1:-1]
    data = value.encode("utf-8", "replace")
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield _small_hex(quoted)
    yield data.hex()
    yield data.hex().upper()


def _small_hex(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join((first, *(piece[:2].lower() + piece[2:] for piece in others)))


def _base64_forms(value: str) -> Iterator[str]:
    """Return what stands in base64 whatever goes before and follows: the signs that come of the value alone."""
    data = value.encode("utf-8", "replace")
    # Behind no, one or two other bytes: the first sign that has no bit of theirs.
    for before, first in enumerate((0, 2, 3)):
        coded = b64encode(bytes(before) + data).decode()
        form = coded[first : (before + len(data)) * 8 // 6]
        yield form
        yield form.translate({ord("+"): "-", ord("/"): "_"})


def _found(text: str, needle: str) -> Iterator[SecretSpan]:
    place = text.find(needle)
    while place >= 0:
        yield place, place + len(needle), KIND
        place = text.find(needle, place + 1)


def _on_one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")


def _places(text: str) -> Sequence[int]:
    """Return where each sign of the text on one line stood."""
    return [place for place, sign in enumerate(text) if sign not in "\r\n"]


def _unfinished(text: str, needles: Iterable[str]) -> int:
    """Return where the longest end of a text begins that one of the needles begins with."""
    nearest = len(text)
    for needle in needles:
        place = max(0, len(text) - len(needle) + 1)
        while (place := text.find(needle[0], place, nearest)) >= 0:
            if needle.startswith(text[place:]):
                nearest = place
                break
            place += 1
    return nearest
