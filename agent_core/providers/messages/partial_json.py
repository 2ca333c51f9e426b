"""Partial arguments of a tool call while they stream; for display, never for execution."""

from typing import Final

from agent_core.kernel import Clock, JsonObject
from agent_core.kernel.json import as_object, decode_partial, decode_sound

PARSE_INTERVAL_S: Final = 0.1
INTERVAL_PER_CHAR_S: Final = 1e-5
"""Added to the interval for each character: parsing starts at the beginning, so the work stays a small share of the time."""
SHORT_CHARS: Final = 512
"""Texts up to this length are also parsed within the interval, whenever they have grown by a quarter."""
SHORT_GROWTH: Final = 1.25


class GrowingArguments:
    """Arguments of one call as far as received; an unreadable or empty result never replaces an earlier value."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pieces: list[str] = []
        self._parsed_chars = 0
        self._next_s = 0.0
        self._chars = 0
        self.read_chars = 0
        """Length of the text that `value` was read from."""
        self.value: JsonObject = {}
        """The object as last parsed; empty before its beginning came. Its texts may go on."""
        self.is_whole = False
        """The object is complete: nothing can follow."""

    def add(self, piece: str) -> None:
        """Add text; it is not parsed yet."""
        self._pieces.append(piece)
        self._chars += len(piece)

    @property
    def has_more(self) -> bool:
        """Whether there is text that was not parsed."""
        return self._chars > self._parsed_chars

    @property
    def is_due(self) -> bool:
        """Whether there is more text, and the time has come to parse it."""
        if not self.has_more:
            return False
        if self._parsed_chars * SHORT_GROWTH <= self._chars <= SHORT_CHARS:
            return True
        return self._clock.monotonic_s() >= self._next_s

    def parse(self) -> JsonObject:
        """Return the object as far as it has come."""
        text = "".join(self._pieces)
        self._pieces = [text]
        self._parsed_chars = self._chars
        interval_s = PARSE_INTERVAL_S + self._chars * INTERVAL_PER_CHAR_S
        self._next_s = self._clock.monotonic_s() + interval_s
        value = _whole(text) if text.rstrip().endswith("}") else None
        self.is_whole = value is not None
        value = value or _begun(text)
        if value:
            self.value, self.read_chars = value, self._chars
        return self.value


def _whole(text: str) -> JsonObject | None:
    try:
        return as_object(decode_sound(text))
    except ValueError:
        return None


def _begun(text: str) -> JsonObject:
    try:
        return as_object(decode_partial(text))
    except ValueError:
        return {}
