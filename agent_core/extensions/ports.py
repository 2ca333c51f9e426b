"""Ports of extensions to their session, and how long what they were handed is good for."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Final, Literal, Protocol, TypeVar

import anyio.to_thread
import msgspec
from msgspec import Struct

from agent_core.events import (
    Answers,
    Event,
    InputSource,
    QuestionLine,
    ThinkingLevel,
    UiEditorText,
    UiEvent,
    UiNotify,
    UiStatus,
    UiTitle,
    UiWidget,
)
from agent_core.kernel import Clock, EntryId, JsonValue, SessionId
from agent_core.kernel.errors import ContextStale, ExtensionBroken, Unsupported
from agent_core.kernel.values import Value
from agent_core.messages import Message, Usage, UserContent
from agent_core.providers import Model, ModelInfo
from agent_core.resources.offers import SlashCommand
from agent_core.tools.port import ToolInfo
from agent_core.transcript.entries import AnyEntry, Header, WholeEntry
from agent_core.workspace import Workspace

ViewKind = Literal["notify", "status", "widget", "title", "editorText"]
SHOWN: Final[Mapping[type[UiEvent], ViewKind]] = {
    UiNotify: "notify",
    UiStatus: "status",
    UiWidget: "widget",
    UiTitle: "title",
    UiEditorText: "editorText",
}
"""Kind of view by event class."""


class ViewFilter(Struct):
    """Predicate for the views that clients show; by default all are, since any client may subscribe to a session."""

    shows: Callable[[ViewKind], bool] = lambda _: True


_INSIDE: Final[ContextVar[str]] = ContextVar("tiller_extension_inside", default="")
"""Description of the hook or tool of an extension that runs in this context and that a run waits for; empty: none."""


class Lifetime:
    """One loading of an extension. When it is over, everything that was handed out says so."""

    def __init__(self, extension: str) -> None:
        self._extension = extension
        self._why = ""

    @property
    def is_over(self) -> bool:
        """Whether what was handed out is stale."""
        return bool(self._why)

    def end(self, why: str) -> None:
        """End it; the first reason stays."""
        self._why = self._why or why

    def check(self) -> None:
        """Go on only while it lasts.

        Raises:
            ContextStale: It is over; the text says why and what to use.
        """
        if self._why:
            message = (
                f"this context of extension {self._extension!r} is stale: {self._why}; "
                "use the one that the handler is called with, and keep none"
            )
            raise ContextStale(message)


@contextmanager
def inside(what: str) -> Generator[None]:
    """Report that a hook or tool of an extension is being run, by whose end a run is held up."""
    token = _INSIDE.set(what)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def check_not_inside(asked: str) -> None:
    """Check that a call which waits for the session is not made where the session waits for the caller.

    Raises:
        Unsupported: The call is made inside a hook or tool of an extension: it would wait for itself.
    """
    if what := _INSIDE.get():
        message = f"{asked} inside {what} would wait for itself; do it in a command"
        raise Unsupported(message)


T = TypeVar("T")


async def call_either(function: Callable[..., object], *given: object) -> object:
    """Call a function of either colour; a plain one runs in a thread, which is left to itself when cancelled."""
    if inspect.iscoroutinefunction(function):
        return await function(*given)  # pyright: ignore[reportAny] - code of others
    made = await anyio.to_thread.run_sync(partial(function, *given), abandon_on_cancel=True)
    return await made if inspect.isawaitable(made) else made


class LoopThread(Value, frozen=True):
    """The thread of a loop; to be made on it."""

    _loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)

    @property
    def is_here(self) -> bool:
        """Whether this is that thread."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def call(self, act: Callable[[], T]) -> T:
        """Do something there, and give what came of it."""
        if self.is_here:
            return act()
        done: Future[T] = Future()

        def there() -> None:
            try:
                done.set_result(act())
            except BaseException as error:  # noqa: BLE001 - goes to whoever waits in the thread
                done.set_exception(error)

        _ = self._loop.call_soon_threadsafe(there)
        return done.result()

    def wait_for(self, work: Coroutine[object, None, T]) -> T:
        """Have something awaited there, and give what came of it; only for threads beside it.

        Raises:
            ExtensionBroken: This is the loop's own thread, where it is to be awaited.
        """
        if self.is_here:
            work.close()
            message = (
                "this runs on the loop's thread: write await, for ctx.wait is for plain functions"
            )
            raise ExtensionBroken(message)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


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

    def all_models(self) -> tuple[ModelInfo, ...]:
        """List every model."""
        ...

    def find(self, ref: str) -> ModelInfo | None:
        """Return a model by name."""
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

    def describe(self) -> tuple[ToolInfo, ...]:
        """Describe all there are."""
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


class SessionTreeNode(Protocol):
    """An entry as the tree shows it."""

    @property
    def entry(self) -> EntryId:
        """Its id."""
        ...

    @property
    def parent(self) -> EntryId | None:
        """The nearest entry before it that is shown; None: it begins a tree."""
        ...

    @property
    def kind(self) -> str:
        """`message`, `custom_message`, `compaction` or `branch_summary`."""
        ...

    @property
    def role(self) -> str | None:
        """Of a message: `user`, `assistant`, `toolResult` or `bashExecution`."""
        ...

    @property
    def preview(self) -> str:
        """Its beginning, on one line."""
        ...

    @property
    def label(self) -> str | None:
        """Its label."""
        ...

    @property
    def at_ms(self) -> int:
        """When it was written, in milliseconds since 1970."""
        ...


class SessionTreeAccess(Protocol):
    """The branches of the session."""

    @property
    def header(self) -> Header:
        """The first line of its file."""
        ...

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """All entries of all branches."""
        ...

    @property
    def labels(self) -> Mapping[EntryId, str]:
        """The label of each entry that has one."""
        ...

    def nodes(self) -> Sequence[SessionTreeNode]:
        """Return the entries that people would want to see."""
        ...

    def path(self, entry: EntryId) -> tuple[AnyEntry, ...]:
        """Return the entries up to one of them."""
        ...

    async def load(self, entries: Sequence[AnyEntry]) -> tuple[WholeEntry, ...]:
        """Return entries with their bodies."""
        ...

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

    @property
    def location(self) -> str | None:
        """Its file."""
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
