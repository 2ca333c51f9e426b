"""Redaction of secrets in texts and streams: those that the program holds, and those recognised by their form."""

import json
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol
from urllib.parse import quote, quote_plus

from agent_core.kernel.json import JsonValue
from agent_core.kernel.redaction.pattern_search import (
    LONGEST_CHARS,
    SecretSpan,
    ends_as_secret,
    is_placeholder,
    is_secret_name,
    looks_secret,
    secret_begins_at,
    secret_spans,
)
from agent_core.kernel.threads import run_in_thread

SHORTEST_CHARS = 8
"""Minimum length of a secret, in characters. A shorter value may be any word of a text."""
LONGEST_HELD_CHARS = 16_384
"""Of a longer value only so much is looked for."""
KIND = "secret"


def holdable(values: Iterable[str]) -> tuple[str, ...]:
    """Return what is looked for of some values: each once, without what is too short."""
    kept = dict.fromkeys(one.strip()[:LONGEST_HELD_CHARS] for one in values)
    return tuple(one for one in kept if len(one) >= SHORTEST_CHARS)


class HeldValues:
    """Values that must not show, with their encodings. Never changes."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Prepare the search.

        Args:
            values: The secrets; values shorter than `SHORTEST_CHARS` are left out.
        """
        self.values = holdable(values)
        plain = _distinct(chain.from_iterable(map(_plain_forms, self.values)))
        self._base64 = _distinct(chain.from_iterable(map(_base64_forms, self.values)))
        self._needles = (*plain, *self._base64)
        self._longest = max(map(len, self._needles), default=0)

    def spans(self, text: str) -> list[SecretSpan]:
        """Find all of them; spans may overlap and come in no order."""
        spans: list[SecretSpan] = []
        for needle in self._needles:
            if needle in text:
                spans.extend(_found(text, needle))
        if self._base64 and "\n" in text:
            spans.extend(self._wrapped(text))
        return spans

    def begins_at(self, text: str) -> int:
        """Return where the end of a text may be the beginning of a value; the text's length: nowhere."""
        if not self._needles:
            return len(text)
        # Lines of base64 are short: with its breaks a value is less than twice as long.
        first = max(0, len(text) - 2 * self._longest)
        tail = text[first:]
        nearest = _unfinished(tail, self._needles)
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


CONTEXT_CHARS: Final = 160
"""Length in characters of the earlier text kept as context: the text before a value marks it as a secret."""
KEPT_BACK_CHARS: Final = 2 * LONGEST_CHARS
"""More is never kept back, so that a text without end needs no memory without end."""
UNTROUBLED_CHARS: Final = 2_048
"""So much may be kept back and still be looked at with every piece."""
_GROWTH: Final = 4
"""Of more, the next look comes when a quarter has been added: else a word without end takes a square of its length."""
_WORD_ENDS: Final = " \t\r\n\"'`,;<>|\\"


class Finder(Protocol):
    """Finds secrets."""

    def spans(self, text: str, /) -> Collection[SecretSpan]:
        """Find them; spans may overlap and come in no order."""
        ...

    def begins_at(self, text: str, /) -> int:
        """Return where the end of a text may be the beginning of a secret; the text's length: nowhere."""
        ...


class SecretStream:
    """One text in pieces. The results of `push` and `finish`, joined, are the text without its secrets."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._left = ""
        """The end of what has left, as it was."""
        self._kept = ""
        self._looked_at_chars = 0
        """How much was kept back after the last look."""
        self._inside = False
        """A secret was longer than what may be kept back: the rest of its word goes too."""

    def push(self, text: str) -> str:
        """Add text; return the part that can leave, without secrets."""
        self._kept += self._beyond(text)
        if not self._kept or self._can_wait(text):
            return ""
        window = self._left + self._kept
        spans = joined(self._finder.spans(window))
        cut = _outside(self._finder.begins_at(window), spans, least=len(self._left))
        if len(window) - cut > KEPT_BACK_CHARS:
            cut = len(window)
        begin, end, _ = spans[-1] if spans else (0, 0, "")
        self._inside = end == cut == len(window) and end - begin >= LONGEST_CHARS
        return self._leave(window, cut, spans)

    def finish(self) -> str:
        """Return what was kept back; another text can begin then."""
        window = self._left + self._kept
        text = self._leave(window, len(window), joined(self._finder.spans(window)))
        self._left = ""
        self._inside = False
        return text

    def _leave(self, window: str, cut: int, spans: list[SecretSpan]) -> str:
        """Return what stands between what has left and the cut, without what lies in spans."""
        first = len(self._left)
        inside = [span for span in spans if first < span[1] <= cut] if spans else spans
        text = cut_out(window[:cut], inside, first=first)
        self._left = window[max(0, cut - CONTEXT_CHARS) : cut]
        self._kept = window[cut:]
        self._looked_at_chars = len(self._kept)
        return text

    def _can_wait(self, text: str) -> bool:
        """Return whether a long word only goes on, so that a look would let nothing leave."""
        before = self._looked_at_chars
        if before < UNTROUBLED_CHARS or any(sign in text for sign in _WORD_ENDS):
            return False
        return len(self._kept) < before + before // _GROWTH

    def _beyond(self, text: str) -> str:
        if not self._inside:
            return text
        ends = [place for sign in _WORD_ENDS if (place := text.find(sign)) >= 0]
        if not ends:
            return ""
        self._inside = False
        return text[min(ends) :]


def joined(spans: Collection[SecretSpan]) -> list[SecretSpan]:
    """Sort spans and merge those that overlap; a merged span has the kind of its first."""
    whole: list[SecretSpan] = []
    if not spans:
        return whole
    for begin, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if whole and begin < whole[-1][1]:
            first, last, name = whole[-1]
            whole[-1] = (first, max(last, end), name)
        else:
            whole.append((begin, end, kind))
    return whole


def cut_out(text: str, spans: Collection[SecretSpan], *, first: int = 0) -> str:
    """Return a text from `first` on with a mark in the place of each span; spans are in order and apart."""
    pieces: list[str] = []
    place = first
    if not spans:
        return text[first:]
    for begin, end, kind in spans:
        pieces.extend((text[place : max(begin, place)], mark(kind)))
        place = end
    pieces.append(text[place:])
    return "".join(pieces)


def mark(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted:{kind}]"


def _outside(cut: int, spans: list[SecretSpan], *, least: int) -> int:
    """Move a cut to the beginning of the span that it lies in."""
    for begin, end, _ in reversed(spans):
        if begin < cut < end:
            cut = begin
    return max(cut, least)


WITHHELD: Final = "[withheld: the redactor failed]"
"""Stands for a text that could not be looked through."""
SLICE_CHARS: Final = 32_768
"""How much is looked through at a time."""
THREAD_CHARS: Final = 16_384
"""Longest text in characters that is scanned on the event loop; `prepare` scans a longer one in a worker thread."""
MOST_REST_S: Final = 0.02
REMEMBERED: Final = 64
"""How many long texts are remembered as they came out."""
REMEMBERED_SHORT: Final = 512
"""How many short texts without a secret are remembered, before all of them are forgotten at once."""
PAIR: Final = 2
"""A text and what came out of it."""
_LONG_CHARS: Final = 2_048
_REMEMBERED_CHARS: Final = 16_000_000
_SHORTEST_CHARS: Final = 8


def _go_on() -> None:
    """Do not pause."""


class _GivesWay:
    """Rests as long as it has worked: beside a thread that only computes, everybody else's answers would be late."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    def pause(self) -> None:
        """Sleep as long as the work since the last pause took, at most `MOST_REST_S`, so that other threads run."""
        time.sleep(min(time.monotonic() - self._since_s, MOST_REST_S))
        self._since_s = time.monotonic()


class TextRedactor(Protocol):
    """Cleaner of texts and JSON from secrets. Never raises."""

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        ...

    def json(self, value: JsonValue) -> JsonValue:
        """Return JSON without secrets."""
        ...


class Redactor:
    """Redactor of everything that leaves the program; one for all sessions of a process.

    No method raises: text that cannot be inspected is withheld. May be used from any thread.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Hold values.

        Args:
            values: Secrets of the program's own: keys, tokens, what variables with a secret's name say.
        """
        self._held = HeldValues(values)
        self._seen: OrderedDict[str, str] = OrderedDict()
        """Long texts as they came out: an entry, its event and a picture of both hold the same ones."""
        self._harmless: set[str] = set()
        """Short texts without a secret, for the same reason."""

    @property
    def holds_any(self) -> bool:
        """Whether there is a value to look for."""
        return bool(self._held.values)

    def hold(self, *values: str | None) -> None:
        """Hold more values, from now on."""
        held = self._held.values
        fresh = holdable(one for one in values if one)
        # Keys are looked up again and again: what is known, or too short to be held, changes nothing.
        if not set(fresh) <= set(held):
            self._held = HeldValues((*held, *fresh))
            self._seen = OrderedDict()
            self._harmless = set()

    def hold_environment(self, environment: Mapping[str, str]) -> None:
        """Hold what variables with a secret's name say."""
        self.hold(*(value for name, value in environment.items() if names_a_value(name, value)))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        size = len(text)
        if size < _SHORTEST_CHARS:
            return text
        if size >= _LONG_CHARS:
            return self._remembered(text)
        harmless = self._harmless
        if text in harmless:
            return text
        cleaned = self._clean(text)
        if cleaned == text:
            if len(harmless) >= REMEMBERED_SHORT:
                harmless.clear()
            harmless.add(text)
        return cleaned

    def held(self, text: str) -> str:
        """Return a text without the values that the program holds; text that only looks like a secret stays."""
        held = self._held
        try:
            return cut_out(text, joined(held.spans(text)))
        except Exception:  # noqa: BLE001 - what cannot be looked through is withheld
            return WITHHELD

    def json(self, value: JsonValue) -> JsonValue:
        """Return JSON without secrets; a value under the name of a secret is judged by that name too."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, dict | Mapping):
            picture = value.get("type") == "image"
            cleaned: dict[str, JsonValue] = {}
            for key, member in value.items():
                name = key if len(key) < _SHORTEST_CHARS else self.text(key)
                if member is None or isinstance(member, int | float):
                    cleaned[name] = member
                else:
                    cleaned[name] = self._member(key, member, picture=picture)
            return cleaned
        return [self.json(item) for item in value]

    async def prepare(self, texts: Iterable[str]) -> None:
        """Look through long texts beside the event loop; asking for them costs next to nothing afterwards."""
        for text in texts:
            if len(text) > THREAD_CHARS and text not in self._seen:
                _ = await run_in_thread(self._remembered, text, _GivesWay().pause)

    def stream(self) -> "RedactedStream":
        """Begin a text that comes in pieces."""
        return RedactedStream(_Everything(self._held))

    def held_stream(self) -> "RedactedStream":
        """Begin a text that comes in pieces, of which only the values that the program holds are taken out."""
        return RedactedStream(self._held)

    def _member(self, key: str, value: JsonValue, *, picture: bool) -> JsonValue:
        if not isinstance(value, str):
            return self.json(value)
        if picture and key in {"data", "blob"}:
            return self.held(value)  # base64 or a hash: anything might stand in it by chance
        if is_secret_name(key) and looks_secret(value):
            return mark("secret")
        return self.text(value)

    def _remembered(self, text: str, pause: Callable[[], None] = _go_on) -> str:
        seen = self._seen
        cleaned = seen.get(text)
        if cleaned is None:
            cleaned = self._clean(text, pause)
            if cleaned != WITHHELD:
                _remember(seen, text, cleaned)
        return cleaned

    def _clean(self, text: str, pause: Callable[[], None] = _go_on) -> str:
        if len(text) < _SHORTEST_CHARS:
            return text
        if len(text) > SLICE_CHARS:
            return "".join(self._slices(text, pause))
        finder = _Everything(self._held)
        try:
            return cut_out(text, joined(finder.spans(text)))
        except Exception:  # noqa: BLE001 - what cannot be looked through is withheld
            return WITHHELD

    def _slices(self, text: str, pause: Callable[[], None]) -> Iterator[str]:
        stream = self.stream()
        for place in range(0, len(text), SLICE_CHARS):
            yield stream.push(text[place : place + SLICE_CHARS])
            pause()
        yield stream.finish()


class RedactedStream:
    """A text that comes in pieces and leaves without secrets, also without those that lie across pieces.

    The end of what came is kept back while it may be the beginning of a secret. Once this failed nothing more leaves.
    """

    def __init__(self, finder: Finder) -> None:
        self._stream = SecretStream(finder)
        self._failed = False

    def push(self, text: str) -> str:
        """Add text; return the redacted part that can leave."""
        if self._failed:
            return ""
        try:
            return self._stream.push(text)
        except Exception:  # noqa: BLE001 - what cannot be looked through is withheld
            self._failed = True
            return WITHHELD

    def finish(self) -> str:
        """Return what was kept back; another text can begin then."""
        if self._failed:
            return ""
        try:
            return self._stream.finish()
        except Exception:  # noqa: BLE001 - what cannot be looked through is withheld
            self._failed = True
            return WITHHELD


def names_a_value(name: str, value: str) -> bool:
    """Return whether an environment variable holds a secret, not a path to one or an ordinary word.

    `SECRET_BACKEND=kubernetes` holds none: redaction of that word would remove it from every text.
    """
    if not is_secret_name(name) or value.startswith(("/", "~")) or is_placeholder(value):
        return False
    return ends_as_secret(name) or looks_secret(value)


class HeldOnly:
    """Cleaner of only the values that a redactor holds, for consumers that need everything else unchanged."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def text(self, text: str) -> str:
        """Return a text without the values that are held."""
        return self._redactor.held(text)

    def json(self, value: JsonValue) -> JsonValue:
        """Return JSON without the values that are held."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(key): self.json(one) for key, one in value.items()}
            case Sequence():
                return [self.json(one) for one in value]
            case _:
                return value


class _Everything:
    """Finds what is held and what looks like a secret."""

    def __init__(self, held: HeldValues) -> None:
        self._held = held

    def spans(self, text: str) -> list[SecretSpan]:
        return [*self._held.spans(text), *secret_spans(text)]

    def begins_at(self, text: str) -> int:
        return min(self._held.begins_at(text), secret_begins_at(text))


def _remember(seen: OrderedDict[str, str], text: str, cleaned: str) -> None:
    """Remember what came out, and that it is clean; the oldest is forgotten."""
    seen[text] = cleaned
    seen[cleaned] = cleaned
    while len(seen) > REMEMBERED or (len(seen) > PAIR and sum(map(len, seen)) > _REMEMBERED_CHARS):
        try:
            _ = seen.popitem(last=False)
        except KeyError:
            return  # another thread was quicker
