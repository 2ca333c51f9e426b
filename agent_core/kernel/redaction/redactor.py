"""Redaction of secrets in texts: those that the program holds, in every usual form, and those recognised by pattern."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from anyio import to_thread

from agent_core.kernel.json import JsonValue
from agent_core.kernel.redaction.held_values import HeldValues, holdable
from agent_core.kernel.redaction.pattern_search import (
    SecretSpan,
    ends_as_secret,
    is_placeholder,
    is_secret_name,
    looks_secret,
    secret_begins_at,
    secret_spans,
)
from agent_core.kernel.redaction.stream import Finder, SecretStream, cut_out, joined, mark

WITHHELD: Final = "[withheld: the redactor failed]"
"""Stands for a text that could not be looked through."""
SLICE_CHARS: Final = 32_768
"""How much is looked through at a time."""
THREAD_CHARS: Final = 16_384
"""Longest text in characters that is scanned on the event loop; `prepare` scans a longer one in a worker thread."""
MOST_REST_S: Final = 0.02
REMEMBERED: Final = 64
"""How many long texts are remembered as they came out."""
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

    def hold_environment(self, environment: Mapping[str, str]) -> None:
        """Hold what variables with a secret's name say."""
        self.hold(*(value for name, value in environment.items() if names_a_value(name, value)))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._clean(text) if len(text) < _LONG_CHARS else self._remembered(text)

    def held(self, text: str) -> str:
        """Return a text without the values that the program holds; text that only looks like a secret stays."""
        held = self._held
        try:
            return cut_out(text, joined(held.spans(text)))
        except Exception:  # noqa: BLE001 - what cannot be looked through is withheld
            return WITHHELD

    def json(self, value: JsonValue) -> JsonValue:
        """Return JSON without secrets; a value under the name of a secret is judged by that name too."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                picture = value.get("type") == "image"
                return {
                    self.text(key): self._member(key, one, picture=picture)
                    for key, one in value.items()
                }
            case Sequence():
                return [self.json(one) for one in value]
            case _:
                return value

    async def prepare(self, texts: Iterable[str]) -> None:
        """Look through long texts beside the event loop; asking for them costs next to nothing afterwards."""
        for text in texts:
            if len(text) > THREAD_CHARS and text not in self._seen:
                _ = await to_thread.run_sync(self._remembered, text, _GivesWay().pause)

    def stream(self) -> "RedactedStream":
        """Begin a text that comes in pieces."""
        return RedactedStream(_Everything(self._held))

    def held_stream(self) -> "RedactedStream":
        """Begin a text that comes in pieces, of which only the values that the program holds are taken out."""
        return RedactedStream(self._held)

    def _member(self, key: str, value: JsonValue, *, picture: bool) -> JsonValue:
        if not isinstance(value, str):
            return self.json(value)
        if picture and key == "data":
            return self.held(value)  # base64: anything might stand in it by chance
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

    def spans(self, text: str) -> Iterator[SecretSpan]:
        yield from self._held.spans(text)
        yield from secret_spans(text)

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
