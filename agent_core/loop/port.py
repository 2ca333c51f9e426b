"""Ports of the loop to the layers above it, and the detection of repeated calls."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core.events import Delivery, Event, InjectedBy, InputSource, ThinkingLevel
from agent_core.hooks import Hooks
from agent_core.kernel import Clock, EntryId, ItemId, MessageId, QueueId, RunId, json
from agent_core.kernel.errors import CallsRepeated
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
)
from agent_core.providers import CacheRetention, Model, ToolDeclaration
from agent_core.tools.runner import ToolRunner

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
    return part.text if isinstance(part, Text) else part.blob or part.data


def _digest(*texts: str) -> bytes:
    digest = sha256()
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.digest()


class UserInput(Value, frozen=True, kw_only=True):
    """Words on their way into the conversation: the user's, or those of a program."""

    content: tuple[UserContent, ...]
    delivery: Delivery
    message_id: MessageId | None = None
    queue_id: QueueId | None = None
    custom: InjectedBy | None = None
    """Set when a program said them in its own name."""
    source: InputSource = "person"


class PendingInput(Protocol):
    """Words that wait; taking them is immediate, so that nothing can come between."""

    def take_steering(self) -> tuple[UserInput, ...]:
        """Remove and return the messages to deliver now: the oldest, or all, by the queue's mode."""
        ...

    def take_follow_ups(self) -> tuple[UserInput, ...]:
        """Remove and return the messages to deliver when there is nothing else to do."""
        ...

    def has_steering(self) -> bool:
        """Return whether words wait to be said now."""
        ...

    def has_follow_ups(self) -> bool:
        """Return whether words wait for the end."""
        ...

    async def wait_for_steering(self) -> None:
        """Wait until words wait to be said now."""
        ...


class TranscriptPort(Protocol):
    """The transcript as the loop sees it. The argument of a method is stored when the method returns."""

    async def add_user(self, user_input: UserInput) -> EntryId:
        """Keep the user's words and strike them from the queue, in one step."""
        ...

    def next_answer(self) -> EntryId:
        """Return an id for the entry of an answer that begins."""
        ...

    async def add_assistant(self, message: AssistantMessage, entry: EntryId) -> EntryId:
        """Keep an answer under the id that it began with."""
        ...

    async def store_images(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
        """Return the result of a tool with its images stored beside the transcript, where that is possible."""
        ...

    async def add_tool_result(self, result: ToolResultMessage) -> EntryId:
        """Keep a tool's result."""
        ...

    def context(self) -> tuple[Message, ...]:
        """Return the messages of the current branch as the model should see them."""
        ...


class InputHooks(Protocol):
    """Handler of user messages that are stored in the transcript."""

    async def on_input(self, user_input: UserInput, entry: EntryId) -> None:
        """Ask the hooks that may change or deal with the words."""
        ...


class BeforeTurn(Protocol):
    """Handler between two turns of a run, for example compaction."""

    async def before_turn(self) -> None:
        """Prepare the next request; called before every turn but the first of a run."""
        ...


class RequestConfig(Value, frozen=True, kw_only=True):
    """Parameters of the next request; read again before each, since all of them may change in a run."""

    model: Model
    thinking: ThinkingLevel
    system: str
    tools: tuple[ToolDeclaration, ...]
    parallel: bool = True
    """Safe calls of a batch run side by side; False: one after another."""
    concurrency: int = 8
    """How many of them at the same time."""
    is_last: bool = False
    """The run ends with this answer: its calls are not run."""
    without_thoughts: bool = False
    """A provider refused thoughts or signatures of earlier answers: send none."""
    skip_on_steer: bool = True
    """Calls that have not started are skipped when the user speaks."""
    steer_grace_s: float | None = 2.0
    """How long a running process may go on after the user has spoken; None: to its end."""
    cache: CacheRetention = "short"


class TurnCount(Struct):
    """Numbers the turns of a run, over its retries too."""

    count: int = 0

    def next(self) -> int:
        """Return the number of the next turn, from 0."""
        self.count += 1
        return self.count - 1


class RunningCalls(Protocol):
    """The tool calls that run now, so that one of them can be stopped alone."""

    def started(self, item: ItemId, stop: Callable[[], None]) -> None:
        """Report that a call runs and how to stop it."""
        ...

    def ended(self, item: ItemId) -> None:
        """Report that it is over."""
        ...


class LoopContext(Value, frozen=True, kw_only=True):
    """Everything one run needs."""

    run: RunId
    session: str
    demand: Callable[[], RequestConfig]
    tools: ToolRunner
    inbox: PendingInput
    recording: TranscriptPort
    intake: InputHooks
    before_turn: BeforeTurn
    hooks: Hooks
    publish: Callable[[Event], object]
    clock: Clock
    new_id: Callable[[], str]
    items: RunningCalls
    turns: TurnCount
    repetition: Repetition = msgspec.field(default_factory=Repetition)
