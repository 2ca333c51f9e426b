"""Arguments of a tool call for people while they stream: parsed at intervals, redacted, of bounded size."""

from collections.abc import Mapping, Sequence
from typing import Final

from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.json import as_object, encode
from agent_core.kernel.redaction.pattern_search import is_secret_name, looks_secret
from agent_core.kernel.redaction.redactor import Redactor, mark
from agent_core.providers.messages.partial_json import GrowingArguments

HEAD_CHARS: Final = 512
"""How much of the beginning of a long text is shown."""
TAIL_CHARS: Final = 1_536
MOST_BYTES: Final = 8 * 1024
"""Size of all arguments, as JSON."""
CHAR_BYTES: Final = 6
"""Most bytes of one character in JSON."""
LONGEST_ESCAPE: Final = len(r"\ud83d\ude00")
"""Characters of JSON for one character: a text that is not over has grown after so many more."""

_Place = tuple[str | int, ...]
"""Keys and indexes that lead to a text."""


class ArgumentsPreview:
    """Arguments of one call so far; a text leaves out its end while that may be the beginning of a secret."""

    def __init__(self, redactor: Redactor, clock: Clock) -> None:
        self._redactor = redactor
        self._arguments = GrowingArguments(clock)
        self._texts: dict[_Place, _GrowingText] = {}
        self._shown: JsonObject = {}

    def add(self, text: str) -> None:
        """Add text of the arguments."""
        self._arguments.add(text)

    def due(self) -> JsonObject | None:
        """Return the arguments if they changed and it is time to show them."""
        return self._changed() if self._arguments.is_due else None

    def rest(self) -> JsonObject | None:
        """Return the arguments if they changed, at any time."""
        return self._changed() if self._arguments.has_more else None

    def _changed(self) -> JsonObject | None:
        members = self._clean(self._arguments.parse(), ())
        shown = as_object(_fitted(members, MOST_BYTES))
        if shown == self._shown:
            return None
        self._shown = shown
        return shown

    def _clean(self, value: JsonValue, place: _Place) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, place).shown
        if isinstance(value, dict | Mapping):
            cleaned: dict[str, JsonValue] = {}
            for key, member in value.items():
                below = (*place, key)
                if isinstance(member, str) and is_secret_name(key):
                    # Only a whole value can be judged by its name.
                    if not self._text(member, below).is_over:
                        continue
                    if looks_secret(member):
                        cleaned[self._redactor.text(key)] = mark("secret")
                        continue
                cleaned[self._redactor.text(key)] = self._clean(member, below)
            return cleaned
        if isinstance(value, list | Sequence):
            return [self._clean(item, (*place, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, place: _Place) -> "_GrowingText":
        growing = self._texts.get(place)
        if growing is None or not growing.is_continued_by(text):
            growing = self._texts[place] = _GrowingText(self._redactor)
        growing.extend(text, at=self._arguments.read_chars, is_whole=self._arguments.is_whole)
        return growing


class _GrowingText:
    """One text of the arguments: redacted as it grows, so that each character is looked through once."""

    def __init__(self, redactor: Redactor) -> None:
        self.is_over = False
        """Nothing follows; until then its end may be kept back."""
        self._stream = redactor.stream()
        self._seen = ""
        self._changed_at = 0
        self._head = ""
        self._tail = ""
        self._chars = 0

    @property
    def shown(self) -> str:
        """The text so far, without secrets; of a long one the beginning, `…` and the end."""
        cut = self._chars > HEAD_CHARS + TAIL_CHARS
        return f"{self._head}{'…' if cut else ''}{self._tail}"

    def is_continued_by(self, text: str) -> bool:
        """Return whether a text is this one, or goes on from it."""
        # A key that comes twice begins another text in the same place.
        return text == self._seen if self.is_over else text.startswith(self._seen)

    def extend(self, text: str, *, at: int, is_whole: bool) -> None:
        """Add what the text has grown by.

        Args:
            text: The text so far.
            at: Length of the JSON that it was parsed from.
            is_whole: The JSON is complete.
        """
        if self.is_over:
            return
        if len(text) > len(self._seen):
            self._add(self._stream.push(text[len(self._seen) :]))
            self._seen, self._changed_at = text, at
        if is_whole or at >= self._changed_at + LONGEST_ESCAPE:
            self._add(self._stream.finish())
            self.is_over = True

    def _add(self, text: str) -> None:
        room = HEAD_CHARS - len(self._head)
        self._chars += len(text)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-TAIL_CHARS:]


def _fitted(value: JsonValue, room: int) -> JsonValue:
    """Return a value that takes at most so many bytes of JSON: of texts and lists the end, of objects the small members first.

    None stands for what does not fit at all.
    """
    if len(encode(value)) <= room:
        return value
    match value:
        case str():
            chars = room // CHAR_BYTES - 1
            return value[-chars:] if chars > 0 else None
        case Mapping():
            kept: dict[str, JsonValue] = {}
            room -= len("{}")
            for key in sorted(value, key=lambda key: len(encode(value[key]))):
                fitted = _fitted(value[key], room - len(encode(key)) - len(":,"))
                if fitted is not None:
                    kept[key] = fitted
                    room -= len(encode(key)) + len(encode(fitted)) + len(":,")
            return {key: kept[key] for key in value if key in kept} or None
        case Sequence():
            last: list[JsonValue] = []
            room -= len("[]")
            for item in reversed(value):
                fitted = _fitted(item, room - len(","))
                if fitted is None:
                    break
                last.append(fitted)
                room -= len(encode(fitted)) + len(",")
            return last[::-1] or None
        case _:
            return None
