"""Ports of extensions to their session: the part of its interface that they see, and the services for them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol

from agent_core.events import Answers, Event, InputSource, QuestionLine, ThinkingLevel
from agent_core.extensions.calls.threads import LoopThread
from agent_core.extensions.ui.view_filter import ViewKind
from agent_core.kernel import Clock, EntryId, JsonValue, SessionId
from agent_core.kernel.values import Value
from agent_core.messages import Message, Usage, UserContent
from agent_core.providers import Model, ModelInfo
from agent_core.resources.slash_commands import SlashCommand
from agent_core.transcript.entries import AnyEntry, WholeEntry
from agent_core.workspace import Workspace

ExtensionDelivery = Literal["append", "steer", "followUp", "nextTurn"]
"""When a program's words are said; as `AgentSession.add` knows it."""


class Models(Protocol):
    """The choice of a model."""

    @property
    def current(self) -> ModelInfo | None:
        """The model in force."""
        ...

    @property
    def thinking(self) -> ThinkingLevel:
        """How hard it thinks."""
        ...

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        ...

    async def choose(self, ref: str) -> ModelInfo:
        """Choose one by name."""
        ...

    async def think(self, level: ThinkingLevel) -> None:
        """Choose how hard it thinks."""
        ...


class Tools(Protocol):
    """The tools that the model sees."""

    @property
    def active(self) -> tuple[str, ...]:
        """Names of those."""
        ...

    @property
    def all(self) -> tuple[str, ...]:
        """Names of all there are."""
        ...

    async def activate(self, names: str | Sequence[str]) -> None:
        """Choose the active ones."""
        ...


class NewSession(Protocol):
    """A session that was made of this one; it is kept, and whoever wants it opens it."""

    @property
    def session(self) -> SessionId | None:
        """Its id; None: there was nothing to keep."""
        ...


class BranchNavigation(Protocol):
    """Where the conversation goes on."""

    @property
    def leaf(self) -> EntryId | None:
        """The entry after which it goes on."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether nothing moved."""
        ...


class SessionTreeAccess(Protocol):
    """The branches of the session."""

    @property
    def leaf(self) -> EntryId | None:
        """Where the conversation goes on."""
        ...

    @property
    def title(self) -> str | None:
        """The session's name."""
        ...

    async def fork(self, entry: EntryId) -> NewSession:
        """Make a new session of everything before a message."""
        ...

    async def navigate(
        self,
        target: EntryId,
        *,
        summarize: bool = False,
        instructions: str | None = None,
        replace_instructions: bool = False,
        label: str | None = None,
    ) -> BranchNavigation:
        """Go on from another entry."""
        ...

    async def label(self, entry: EntryId, label: str | None) -> None:
        """Mark an entry."""
        ...

    async def rename(self, title: str | None) -> None:
        """Name the session."""
        ...


class ContextFill(Protocol):
    """How full the model's context is."""

    @property
    def used(self) -> int | None:
        """Tokens; None: unknown."""
        ...

    @property
    def size(self) -> int:
        """The context window in tokens; 0: unknown."""
        ...


class SessionReader(Protocol):
    """Read access to the session."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it."""
        ...

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """The entries of the current branch; bodies of old ones may be left on the disk."""
        ...

    @property
    def root(self) -> str:
        """The folder it works in."""
        ...

    def context_usage(self) -> ContextFill:
        """Return how full the model's context is."""
        ...


class Programs(Protocol):
    """The session as programs inside of it see it."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing goes on."""
        ...

    @property
    def has_pending_messages(self) -> bool:
        """Whether words wait in the queue."""
        ...

    async def whole(self) -> tuple[WholeEntry, ...]:
        """Return the current branch, with all bodies."""
        ...

    async def keep(self, custom_type: str, data: JsonValue = None) -> EntryId:
        """Keep data in the session that no model sees."""
        ...


class QuestionPort(Protocol):
    """Asks people."""

    async def ask(
        self,
        questions: Sequence[QuestionLine],
        *,
        blocking: bool = True,
        timeout_s: float | None = None,
    ) -> Answers:
        """Ask and wait."""
        ...


class Resources(Protocol):
    """Resources of the session."""

    def commands(self) -> Sequence[SlashCommand]:
        """List what can be written after a slash."""
        ...

    async def reload(self) -> object:
        """Read everything anew."""
        ...


class Session(Protocol):
    """The face of a session, as far as extensions use it."""

    @property
    def id(self) -> SessionId:
        """Its id."""
        ...

    @property
    def models(self) -> Models:
        """The choice of a model."""
        ...

    @property
    def tools(self) -> Tools:
        """The tools that the model sees."""
        ...

    @property
    def tree(self) -> SessionTreeAccess:
        """Its branches."""
        ...

    @property
    def info(self) -> SessionReader:
        """Read access to the session."""
        ...

    @property
    def programs(self) -> Programs:
        """Entries and state of programs in the session."""
        ...

    @property
    def questions(self) -> QuestionPort:
        """Asks people."""
        ...

    @property
    def resources(self) -> Resources:
        """Resources of the session."""
        ...

    async def prompt(
        self,
        content: str | Sequence[UserContent],
        *,
        delivery: Literal["auto", "steer", "followUp"] | None = None,
        source: InputSource = "person",
    ) -> object:
        """Send a message as the user."""
        ...

    async def add(
        self,
        content: str | Sequence[UserContent],
        *,
        custom_type: str,
        delivery: ExtensionDelivery = "append",
        display: bool = True,
        details: JsonValue = None,
    ) -> object:
        """Send a message as a program."""
        ...

    async def abort(self) -> object:
        """Stop what goes on."""
        ...

    async def compact(self, instructions: str | None = None) -> object:
        """Summarise the older part of the conversation."""
        ...

    async def wait_idle(self) -> object:
        """Wait until nothing goes on."""
        ...


class Services(Value, frozen=True, kw_only=True):
    """Services of a session for its extensions."""

    session: Session
    workspace: Workspace
    clock: Clock
    thread: LoopThread
    """Where the session lives."""
    show: Callable[[Event], object]
    """Publishes the views that front ends may show."""
    is_attended: Callable[[], bool]
    """Whether people can be asked."""
    is_trusted: Callable[[], bool]
    """Whether the workspace is."""
    system_prompt: Callable[[], Awaitable[str]]
    """Returns the system prompt of the next run."""
    model: Callable[[str | None], Model]
    """Returns a model that can be asked; None: the model in force."""
    spent: Callable[[Usage], object]
    """Counts what an answer cost: it is of the session's money, and of the run's budgets."""
    start: Callable[[Callable[[], Awaitable[None]]], object]
    """Runs something in a task that ends with the session."""
    shows: Callable[[ViewKind], bool] = lambda _: True
    """Whether some client shows such a thing."""
