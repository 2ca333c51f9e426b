"""Events that arrive in several frames, joined."""

from dataclasses import dataclass, field
from typing import Final

from agent_core.kernel import Clock

PART_S: Final = 60.0
"""How long the parts of an event wait for the others, from the first on."""
PARTS: Final = 256
"""Most parts of an event."""
WAITING_BYTES: Final = 32 * 1024 * 1024
WAITING_EVENTS: Final = 64


@dataclass(slots=True, kw_only=True)
class _Waiting:
    total: int
    since_s: float
    parts: dict[int, bytes] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts.values()))


class PartJoiner:
    """The parts of events that are not complete yet. Parts that are too old or too many are dropped; the platform repeats the event."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self.dropped = 0
        """Events of which parts were dropped."""

    def add(self, message_id: str, *, total: int, index: int, payload: bytes) -> bytes | None:
        """Store a part; returns the whole payload with the last of them, else None.

        Args:
            message_id: Id that the parts have in common.
            total: Number of parts.
            index: Place of this part, from 0.
            payload: Its bytes.
        """
        if total <= 1:
            return payload
        self._drop_old()
        if not 0 <= index < total <= PARTS:
            self.dropped += 1
            return None
        entry = self._waiting.get(message_id)
        if entry is None or entry.total != total:
            entry = _Waiting(total=total, since_s=self._clock.monotonic_s())
            self._waiting[message_id] = entry
        entry.parts[index] = payload
        if len(entry.parts) == total:
            del self._waiting[message_id]
            return b"".join(entry.parts[place] for place in range(total))
        self._drop_excess()
        return None

    def _drop_old(self) -> None:
        oldest_s = self._clock.monotonic_s() - PART_S
        for key in [key for key, entry in self._waiting.items() if entry.since_s < oldest_s]:
            self._drop(key)

    def _drop_excess(self) -> None:
        while self._waiting and (
            len(self._waiting) > WAITING_EVENTS
            or sum(entry.size for entry in self._waiting.values()) > WAITING_BYTES
        ):
            self._drop(next(iter(self._waiting)))

    def _drop(self, key: str) -> None:
        del self._waiting[key]
        self.dropped += 1
