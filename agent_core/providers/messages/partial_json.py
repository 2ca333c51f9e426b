"""Partial arguments of a tool call while they stream; for display, never for execution."""

from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, decode_partial

READ_AGAIN_AT = 1.05
"""How much longer the text must be than when it was last read: the work stays linear in its length."""


class GrowingArguments:
    """Arguments of one call as far as received; an unreadable or empty result never replaces an earlier value."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._read_length = 0
        self._value: JsonObject = {}

    @property
    def value(self) -> JsonObject:
        """The object as last read; empty before its beginning came. Its last string may go on."""
        return self._value

    def grow(self, piece: str) -> bool:
        """Add text; return whether the value was parsed again."""
        self._pieces.append(piece)
        self._length += len(piece)
        return self._length >= self._read_length * READ_AGAIN_AT and self._read()

    def finish(self) -> JsonObject:
        """Read all there is, when no more will come."""
        if self._length > self._read_length:
            self._read()
        return self._value

    def _read(self) -> bool:
        text = "".join(self._pieces)
        self._pieces = [text]
        self._read_length = self._length
        try:
            value = decode_partial(text)
        except ValueError:
            return False
        self._value = as_object(value) or self._value
        return True
