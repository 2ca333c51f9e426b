"""Ports of the loop to the layers above it."""

from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core.events import Delivery, Event, InjectedBy, InputSource, ThinkingLevel
from agent_core.hooks import Hooks
from agent_core.kernel import Clock, EntryId, ItemId, MessageId, QueueId, RunId
from agent_core.kernel.values import Value
from agent_core.loop.repetition import Repetition
from agent_core.messages import (
    AssistantMessage,
    Message,
    ToolResultMessage,
    UserContent,
)
from agent_core.providers import CacheRetention, Model, ToolDeclaration
from agent_core.tools.runner import ToolRunner


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

    async def add_assistant(self, message: AssistantMessage) -> EntryId:
        """Keep an answer."""
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
