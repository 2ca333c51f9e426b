"""Detection of a model that makes the same calls again and again."""

from collections import Counter, deque
from collections.abc import Sequence
from hashlib import sha256

from agent_core.kernel import json
from agent_core.kernel.errors import CallsRepeated
from agent_core.messages import Image, ToolCall, UserContent

WINDOW = 12  # decision 0065
"""So many calls a circle has at most: work that comes back to the same files after a while is none."""
REFUSED_AFTER = 5
"""So often a call is run with the same arguments and the same result before it is refused."""
ENDED_AFTER = 3
"""After so many refusals in a row the run ends."""
ROW = 3 * REFUSED_AFTER
"""So many turns in a row may make the same calls, whatever their results."""
WAITED_MS = 5_000
"""A call that takes so long waits for something, as one does that polls."""
STUCK_IN_ROW = (
    f"the run was stopped because the model made the same tool calls more than {ROW} times in a row; "
    "describe the task in another way, or choose another model"
)
STUCK = (
    "the run was stopped because the model repeated the same tool calls with the same results; "
    "describe the task in another way, or choose another model"
)


class Repetition:
    """Counts the calls of a run that brought nothing new.

    A call brings something new when none of the last `WINDOW` calls had its tool, arguments and result. That, or a
    message of the user, begins the count anew: tests that fail alike between edits are no loop.

    Results that differ in a time or a process id look new each time, so the turns in a row that make the same calls are
    counted as well. A call that waits begins that count anew: it may be a poll.
    """

    def __init__(self) -> None:
        self._batch: tuple[bytes, ...] = ()
        self._row = 0
        self._recent: deque[tuple[bytes, bytes]] = deque(maxlen=WINDOW)
        self._counts: Counter[bytes] = Counter()
        self._refused = 0

    def begin(self, calls: Sequence[ToolCall]) -> None:
        """Count a turn, before its calls are run."""
        batch = tuple(map(_key, calls))
        self._row = self._row + 1 if batch == self._batch else 1
        self._batch = batch
        if self._row > ROW:
            self._refused += 1

    def refusal(self, call: ToolCall) -> str | None:
        """Return the result of a call that is not to be run again, for the model; None: it may run."""
        if self._row > ROW:
            return (
                f"Not run: {call.name} was called with these arguments in {ROW} turns in a row. Do not repeat the call. "
                "If you wait for something, wait longer within one call; else try something else, or answer the user."
            )
        if self._counts[_key(call)] < REFUSED_AFTER:
            return None
        self._refused += 1
        return (
            f"Not run: {call.name} was called {REFUSED_AFTER} times with these arguments, and the result was the same "
            "each time. Do not repeat the call. Use what you know, try something else, or answer the user."
        )

    def ran(
        self, call: ToolCall, content: tuple[UserContent, ...], *, duration_ms: int | None
    ) -> None:
        """Count a call and its result."""
        if duration_ms is not None and duration_ms >= WAITED_MS:
            self._row = 0
        key, result = _key(call), _digest(*map(_text, content))
        if (key, result) not in self._recent:
            self._clear()
        self._recent.append((key, result))
        self._counts[key] += 1

    def reset(self) -> None:
        """Begin the counts anew."""
        self._row = 0
        self._clear()

    def check(self) -> None:
        """Check that the run may ask the model again.

        Raises:
            CallsRepeated: It goes on with calls that were refused as repetitions.
        """
        if self._refused >= ENDED_AFTER:
            raise CallsRepeated(STUCK_IN_ROW if self._row > ROW else STUCK)

    def _clear(self) -> None:
        self._counts.clear()
        self._refused = 0


def _key(call: ToolCall) -> bytes:
    return _digest(call.name, json.encode(call.arguments).decode(), call.arguments_error or "")


def _text(part: UserContent) -> str:
    return part.data if isinstance(part, Image) else part.text


def _digest(*texts: str) -> bytes:
    digest = sha256()
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.digest()
