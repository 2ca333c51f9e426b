"""Contexts passed to the handlers of an extension beside the event: their access to the session."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn, TypeVar

from agent_core.events import Answers, QuestionLine, UiEvent
from agent_core.extensions.ports import (
    BranchNavigation,
    ContextFill,
    NewSession,
    Services,
    Session,
    SessionTreeAccess,
    SessionTreeNode,
    ViewKind,
    check_not_inside,
)
from agent_core.extensions.scope import ExecResult, ExtensionScope, run_program
from agent_core.extensions.ui import Pause, Ui
from agent_core.kernel import EntryId, SessionId
from agent_core.kernel.errors import Unsupported
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message, Text, UserMessage
from agent_core.providers import Model, ModelInfo, ModelRequest
from agent_core.providers.model import whole_answer
from agent_core.tools import ToolContext
from agent_core.transcript.entries import AnyEntry, Header, WholeEntry
from agent_core.workspace import NO_NEEDS
from agent_core.workspace.permissions.call_permission import Needs

NO_CLOCK: Pause = nullcontext
T = TypeVar("T")
NOT_HERE: Mapping[str, str] = {
    "shutdown": "one process serves many sessions, and an extension cannot end them",
    "new_session": "which session a window shows is the client's; fork gives a session that it can open",
    "switch_session": "which session a window shows is the client's",
    "wait_for_idle": "a hook that waited for the session would wait for itself; do it in a command",
}
"""Context members of other agents' extension APIs that Tiller does not support, with the reason."""


class ExtensionSession(Value, frozen=True):
    """The stored session, for reading: all branches, labels, header and file. It stays current and is never changed."""

    _scope: ExtensionScope

    @property
    def id(self) -> SessionId:
        """Id of the session."""
        return self._scope.session.id

    @property
    def name(self) -> str | None:
        """Name of the session; None: it has no name."""
        return self._tree.title

    @property
    def header(self) -> Header:
        """First line of the file: format version, id, time, folder, parent session."""
        return self._tree.header

    @property
    def file(self) -> Path | None:
        """File of the session; None: it is in memory, or nothing was said yet."""
        location = self._scope.session.info.location
        return None if location is None else Path(location)

    @property
    def leaf(self) -> EntryId | None:
        """Entry after which the conversation goes on; None: at the beginning."""
        return self._tree.leaf

    @property
    def labels(self) -> Mapping[EntryId, str]:
        """Label of each entry that has one."""
        return self._tree.labels

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """Entries of all branches, in the order of the file; `read` adds bodies that are only on the disk."""
        return self._tree.entries

    def nodes(self) -> Sequence[SessionTreeNode]:
        """Return messages and summaries of all branches with parent, preview and label."""
        return self._tree.nodes()

    def path(self, entry: EntryId) -> tuple[AnyEntry, ...]:
        """Return the entries from the beginning up to an entry.

        Raises:
            EntryUnknown: There is no such entry.
        """
        return self._tree.path(entry)

    async def read(self, entries: Sequence[AnyEntry]) -> tuple[WholeEntry, ...]:
        """Return entries with their bodies, in the same order.

        Raises:
            StorageError: The file cannot be read.
        """
        return await self._tree.load(entries)

    @property
    def _tree(self) -> SessionTreeAccess:
        return self._scope.session.tree


class ExtensionModelList(Value, frozen=True):
    """The models that the user has."""

    _scope: ExtensionScope

    def list(self, *, usable: bool = True) -> tuple[ModelInfo, ...]:
        """Return the models, those of extensions too.

        Args:
            usable: Only those that can be asked: their provider has credentials, or needs none.
        """
        models = self._scope.session.models
        return models.available() if usable else models.all_models()

    def find(self, ref: str) -> ModelInfo | None:
        """Return a model as people name one (`provider/id`, an id, a part of it); None: there is none."""
        return self._scope.session.models.find(ref)


class SessionReadContext:
    """Read access to the session."""

    __slots__ = ("_scope",)

    def __init__(self, scope: ExtensionScope) -> None:
        self._scope = scope

    @property
    def extension(self) -> str:
        """The name of the extension."""
        return self._scope.extension

    @property
    def root(self) -> Path:
        """The folder that the session works in."""
        return Path(self._session.info.root)

    @property
    def is_trusted(self) -> bool:
        """Whether the user trusts the workspace."""
        return self._services.is_trusted()

    @property
    def model(self) -> ModelInfo | None:
        """The model in force; None: there is none."""
        return self._session.models.current

    @property
    def models(self) -> ExtensionModelList:
        """All models: a list of them, and a look-up by name."""
        return ExtensionModelList(self._scope)

    @property
    def session(self) -> ExtensionSession:
        """The stored session, for reading: all branches, leaf, labels, header and file."""
        return ExtensionSession(self._scope)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it."""
        return self._session.info.messages

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """The entries of the branch; of old ones the body may lie on the disk alone: `branch` reads it."""
        return self._session.info.entries

    async def branch(self) -> tuple[WholeEntry, ...]:
        """Return the entries of the branch with all bodies: to build up again what an extension knows."""
        return await self._session.programs.whole()

    @property
    def is_idle(self) -> bool:
        """Whether nothing goes on."""
        return self._session.programs.is_idle

    @property
    def has_pending_messages(self) -> bool:
        """Whether words wait in the queue."""
        return self._session.programs.has_pending_messages

    @property
    def usage(self) -> ContextFill:
        """How full the model's context is."""
        return self._session.info.context_usage()

    @property
    def _services(self) -> Services:
        return self._scope.services

    @property
    def _session(self) -> Session:
        return self._scope.session


class Context(SessionReadContext):
    """The session as a hook, a tool or a listener sees it. It is good until the extension is loaded anew."""

    __slots__ = ("_pause", "_pause_dialogs", "_ui")

    def __init__(
        self,
        scope: ExtensionScope,
        pause: Pause = NO_CLOCK,
        *,
        pause_dialogs: Pause | None = None,
    ) -> None:
        """Create a context.

        Args:
            scope: One loading of the extension.
            pause: Stops the clock of the call while a person, a process or a model is waited for.
            pause_dialogs: The same for a person alone; None: `pause`.
        """
        super().__init__(scope)
        self._pause = pause
        self._pause_dialogs = pause_dialogs or pause
        self._ui: Ui | None = None

    @property
    def ui(self) -> Ui:
        """Dialogs and views."""
        if self._ui is None:
            # Most calls of hooks show nothing, and there are many of them.
            screen = _SessionScreen(self._scope)
            self._ui = Ui(self.extension, screen, life=self._scope.life, pause=self._pause_dialogs)
        return self._ui

    @property
    def has_ui(self) -> bool:
        """Whether people can be asked; when not, dialogs answer at once with nothing."""
        return self._services.is_attended()

    async def system_prompt(self) -> str:
        """Return the words that the next run begins with."""
        return await self._services.system_prompt()

    def abort(self) -> None:
        """Stop what goes on; returns at once, for a hook would wait for itself."""
        session = self._session

        async def stop() -> None:
            _ = await session.abort()

        self._start(stop)

    def compact(self, instructions: str | None = None) -> None:
        """Have the older part of the conversation summarised; returns at once.

        The hooks `session_compact` and `session_compact_failed` report the end.
        """
        session = self._session

        async def summarise() -> None:
            _ = await session.compact(instructions)

        self._start(summarise)

    async def exec(
        self,
        command: str,
        arguments: Sequence[str] = (),
        *,
        timeout_s: float | None = None,
        needs: frozenset[Needs] = NO_NEEDS,
    ) -> ExecResult:
        """Run a program in the workspace, in the same containment as tools, and wait for its end.

        Args:
            command: The program; no shell interprets it.
            arguments: Arguments of the program.
            timeout_s: Seconds after which it is stopped; None: no limit.
            needs: Access that it needs beyond its containment.

        Raises:
            WorkspaceError: It cannot be started.
        """
        services = self._services
        with self._pause():
            return await run_program(
                services.workspace, (command, *arguments), timeout_s=timeout_s, needs=needs
            )

    async def complete(
        self,
        prompt: str,
        *,
        system: str = "",
        model: str | None = None,
        max_tokens: int | None = None,
    ) -> AssistantMessage:
        """Send a model a prompt outside of the conversation; only its usage is recorded.

        Args:
            prompt: Text of the prompt.
            system: System prompt.
            model: Name of the model; None: the current one.
            max_tokens: Limit of the answer.

        Raises:
            ModelUnknown: There is no such model, or it cannot be used.
            ProviderError: The model does not answer.
        """
        chosen = self._services.model(model)
        with self._pause():
            answer = await _ask_model(
                chosen,
                prompt,
                system=system,
                max_tokens=max_tokens,
                at_ms=self._services.clock.now_ms(),
            )
        _ = self._services.spent(answer.usage)
        return answer

    def wait(self, work: Coroutine[object, None, T]) -> T:
        """Wait for what is awaited, in a plain function: `ctx.wait(ctx.ui.confirm("Go on?"))`.

        Raises:
            ExtensionBroken: It is called in an `async` function, which can await by itself.
        """
        return self._services.thread.wait_for(work)

    def __getattr__(self, name: str) -> NoReturn:
        if why := NOT_HERE.get(name):
            message = f"ctx.{name} is not offered here: {why}"
            raise Unsupported(message)
        raise AttributeError(name)

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        services = self._services
        _ = services.thread.call(lambda: services.start(work))


class ToolCallContext(Context):
    """The session as one call of a tool sees it."""

    __slots__ = ("call",)

    def __init__(self, scope: ExtensionScope, call: ToolContext) -> None:
        super().__init__(scope, pause_dialogs=call.pause)
        self.call = call
        """Files, processes, live output and settings of this call, guarded as those of every tool."""


class CommandContext(Context):
    """The session as a command of the user sees it: it may also wait for it and lead it elsewhere."""

    __slots__ = ()

    async def wait_for_idle(self) -> None:
        """Wait until nothing goes on.

        Raises:
            Unsupported: A hook or tool is being run, which would wait for itself.
        """
        check_not_inside("waiting for the session")
        _ = await self._session.wait_idle()

    async def fork(self, entry: EntryId) -> NewSession:
        """Make a new session of everything before a message of the user; a client can open it.

        Raises:
            Unsupported: A hook or tool is being run.
            SessionBusy, EntryUnknown, ForkRefused, StorageError: As `session.tree.fork`.
        """
        check_not_inside("making a session of this one")
        return await self._session.tree.fork(entry)

    async def navigate(
        self,
        target: EntryId,
        *,
        summarize: bool = False,
        instructions: str | None = None,
        replace_instructions: bool = False,
        label: str | None = None,
    ) -> BranchNavigation:
        """Go on from another entry, as `session.tree.navigate` does.

        Raises:
            Unsupported: A hook or tool is being run.
            SessionBusy, EntryUnknown, ModelUnknown, ProviderError, StorageError: As there.
        """
        check_not_inside("going to another branch")
        return await self._session.tree.navigate(
            target,
            summarize=summarize,
            instructions=instructions,
            replace_instructions=replace_instructions,
            label=label,
        )

    async def reload(self) -> None:
        """Load extensions, skills and prompts anew; then this context is stale."""
        check_not_inside("loading extensions anew")
        _ = await self._session.resources.reload()


async def _ask_model(
    model: Model, prompt: str, *, system: str, max_tokens: int | None, at_ms: int
) -> AssistantMessage:
    """Ask, and give the whole answer.

    Raises:
        ProviderError: There is none.
    """
    request = ModelRequest(
        system=system,
        messages=(UserMessage(content=(Text(text=prompt),), at_ms=at_ms),),
        max_tokens=max_tokens,
        purpose="extension",
    )
    return await whole_answer(model, request)


class _SessionScreen(Value, frozen=True):
    """Asks and shows by way of a session, as it is when it does."""

    scope: ExtensionScope

    @property
    def is_attended(self) -> bool:
        """Whether people can be asked."""
        return self.scope.services.is_attended()

    async def ask(self, line: QuestionLine, *, timeout_s: float | None) -> Answers:
        """Ask and wait."""
        return await self.scope.session.questions.ask([line], timeout_s=timeout_s)

    def shows(self, what: ViewKind) -> bool:
        """Return whether some client shows such a thing."""
        return self.scope.services.shows(what)

    def show(self, event: UiEvent) -> None:
        """Hand a view to the clients."""
        services = self.scope.services
        _ = services.thread.call(lambda: services.show(event))
