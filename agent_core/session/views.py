"""Access of extensions and hooks to a session."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_core.events import (
    Budgets,
    Event,
    ModelChanged,
    PermissionMode,
    QueueMode,
    SessionConfig,
    ThinkingLevel,
)
from agent_core.events.feed import EventObserver
from agent_core.hooks import (
    CommandDone,
    HookRunner,
    SessionSwitched,
    SessionSwitching,
    SwitchCancelled,
)
from agent_core.hooks.catalogue import SwitchReason
from agent_core.kernel import EntryId, JsonValue, RunId, SessionId
from agent_core.kernel.errors import SwitchRefused, UsageError
from agent_core.kernel.json import decode, encode
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.messages import AssistantMessage, Message
from agent_core.providers import Model, ModelInfo
from agent_core.providers.auth.credentials import ProviderState
from agent_core.providers.catalog.catalogue import Named
from agent_core.session.changes.checkpoints import Checkpoints
from agent_core.session.changes.detection import UserEdits
from agent_core.session.config import ActiveConfig
from agent_core.session.context import (
    EventPublisher,
    SessionOptions,
    SessionServices,
    WorkspaceContext,
)
from agent_core.session.history.entries import data_entry, model_entry, thinking_entry, tools_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.queue import InputQueue
from agent_core.session.model_selection import (
    CycleDirection,
    ModelSelection,
    SelectedModel,
    Servers,
    notify_model_change,
)
from agent_core.session.permissions.broker import PermissionBroker
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.runs.usage import BudgetPolicy, UsageTracker
from agent_core.session.snapshot import ContextUsage, SessionSnapshot, SessionStats, session_stats
from agent_core.session.tools.registry import ToolRegistry
from agent_core.session.tools.user_bash import BashResult, UserBash
from agent_core.tools import Tool
from agent_core.tools.port import ToolInfo
from agent_core.transcript.entries import AnyEntry, MessageEntry, WholeEntry
from agent_core.transcript.tree import has_prompt_or_answer, newest_first

if TYPE_CHECKING:
    from agent_core.session.input.inline_completion import InlineCompletions


class SessionSwitchHooks:
    """The two ends of a switch: both sessions stay open, a window shows the other one."""

    def __init__(self, hooks: HookRunner) -> None:
        self._hooks = hooks

    async def leave(self, target: SessionId | None, *, reason: SwitchReason) -> None:
        """Ask whether a window may leave this session.

        Args:
            target: Where to; None: not known yet.
            reason: Whether the other session is a new one.

        Raises:
            SwitchRefused: A hook does not want it.
        """
        match await self._hooks.ask(SessionSwitching(reason=reason, target=target)):
            case SwitchCancelled(reason=why):
                message = f"an extension wants this session to stay: {why or 'it gave no reason'}"
                raise SwitchRefused(message)
            case _:
                pass

    async def arrived(self, previous: SessionId | None, *, reason: SwitchReason) -> None:
        """Report that a window came here from another session."""
        _ = await self._hooks.ask(SessionSwitched(reason=reason, previous=previous))


_Source: TypeAlias = Literal["set", "cycle"]
OURS = "tiller."


class ModelView:
    """The choice of model and thinking level; changes count from the next request."""

    def __init__(
        self,
        models: ModelSelection,
        *,
        services: SessionServices,
        recorder: Recorder,
        config: ActiveConfig,
        queue: InputQueue,
        hooks: HookRunner,
        options: SessionOptions,
        allowance: BudgetPolicy,
        redactor: Redactor,
    ) -> None:
        self._models = models
        self._services = services
        self._recorder = recorder
        self._config = config
        self._queue = queue
        self._hooks = hooks
        self._options = options
        self._allowance = allowance
        self._redactor = redactor

    @property
    def current(self) -> ModelInfo | None:
        """The model in force; None: there is none."""
        model = self._models.model
        return model.facts if model else None

    @property
    def thinking(self) -> ThinkingLevel:
        """The level wished for; when the model has no such level, each request takes the nearest that it has."""
        return self._models.thinking

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        return self._models.available()

    def all_models(self) -> tuple[ModelInfo, ...]:
        """List every model there is, those of extensions too, and also those that cannot be asked."""
        return self._models.all_models()

    def find(self, ref: str) -> ModelInfo | None:
        """Return the model that people name so, as `choose` would take it; None: there is none.

        Its provider may have no credentials: `available` lists those that can be asked.
        """
        return self._models.find(ref)

    def providers(self) -> Mapping[str, ProviderState]:
        """Return the providers by id, those of extensions too, and whether they can be asked; `refresh` reads that anew."""
        return self._models.providers()

    async def refresh(self, *, servers: Servers = "keep") -> None:
        """Read models.json and what the user has logged in to again; a model that can be used only now is told.

        Args:
            servers: `find` asks the model servers of this machine what they have, too.
        """
        await self._config.refresh_models(servers=servers)

    def scoped(self) -> tuple[Named, ...]:
        """List the models that `cycle` goes through: the `scopedModels` of the settings, else all that have a key."""
        return self._models.scoped().models

    async def choose(self, ref: str) -> ModelInfo:
        """Choose a model as people name one: `provider/id`, an id, a pattern or a part of it.

        A thinking level behind a colon (`anthropic/claude-x:high`) is chosen with it; without one the level stays.

        Raises:
            ModelUnknown: No such model, or no credentials for it; the choice stays.
        """
        before = self._now()
        return await self._changed(self._models.choose(ref), before=before, source="set")

    async def cycle(self, direction: CycleDirection = "forward") -> ModelInfo | None:
        """Choose the next of the scoped models, round and round; None: there is no other, and nothing changed.

        A level in the scoped name is chosen with it.

        Raises:
            ModelUnknown: Its credentials are gone; the choice stays.
        """
        before = self._now()
        model = self._models.cycle(direction)
        if model is None:
            return None
        return await self._changed(model, before=before, source="cycle")

    async def think(self, level: ThinkingLevel) -> None:
        """Choose how hard the model thinks."""
        if level == self.thinking:
            return
        before = self._now()
        self._models.thinking = level
        await self._thinks(level, before=before, source="set")

    async def cycle_thinking(self) -> ThinkingLevel | None:
        """Choose the next level that the model has, round and round; None: there is no other, and nothing changed."""
        before = self._now()
        level = self._models.cycle_thinking()
        if level is not None:
            await self._thinks(level, before=before, source="cycle")
        return level

    @cached_property
    def completions(self) -> "InlineCompletions":
        """Completion of text at the cursor of an editor."""
        from agent_core.session.input.inline_completion import InlineCompletions  # noqa: PLC0415 - at first use

        return InlineCompletions(
            self._models,
            options=self._options,
            allowance=self._allowance,
            redactor=self._redactor,
            clock=self._services.clock,
        )

    def _now(self) -> SelectedModel:
        return SelectedModel.of(self._models)

    async def _changed(self, model: Model, *, before: SelectedModel, source: _Source) -> ModelInfo:
        """Write and tell a choice that is in force already: the model, and the level if it is another."""
        facts, level = model.facts, self.thinking
        drafts = [model_entry(facts.provider, facts.id)]
        if level != before.thinking:
            drafts.append(thinking_entry(level))
        _ = await self._recorder.keep(*drafts)
        self._publish_choice(facts.ref, level, source=source)
        self._queue.hold_images(self._models)
        await notify_model_change(self._hooks, before, self._now(), source=source)
        return facts

    async def _thinks(
        self, level: ThinkingLevel, *, before: SelectedModel, source: _Source
    ) -> None:
        ref = self._models.ref or ""
        _ = await self._recorder.keep(thinking_entry(level))
        self._publish_choice(ref, level, source=source)
        await notify_model_change(self._hooks, before, self._now(), source=source)

    def _publish_choice(self, ref: str, level: ThinkingLevel, *, source: _Source) -> None:
        self._services.publish(ModelChanged(model=ref, thinking=level, source=source))
        self._config.publish()


class ToolView:
    """The tools of a session; changes count from the next request."""

    def __init__(self, toolbox: ToolRegistry, *, recorder: Recorder, config: ActiveConfig) -> None:
        self._toolbox = toolbox
        self._recorder = recorder
        self._config = config

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the tools that the model sees."""
        return self._toolbox.active_names

    @property
    def all(self) -> tuple[str, ...]:
        """Names of all tools there are."""
        return self._toolbox.all_names

    def describe(self) -> tuple[ToolInfo, ...]:
        """Return the description of each tool there is, active or not, in the order of `all`."""
        return self._toolbox.describe()

    async def activate(self, names: str | Sequence[str]) -> None:
        """Choose the active tools: a preset, names, or `+name` and `-name`.

        The session has them again when it is opened the next time, as far as they are there then.

        Raises:
            ToolSetInvalid: Empty or unknown; the set stays.
        """
        before = self.active
        self._toolbox.activate(names)
        if self.active != before:
            _ = await self._recorder.keep(tools_entry(self.active))
        self._config.publish()

    def register(self, tool: Tool) -> None:
        """Add a tool and activate it.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        self._toolbox.register(tool)
        self._config.publish()


class EventsView:
    """View of a session's events for a recorder of events; readers use `subscribe`."""

    def __init__(self, publisher: EventPublisher, recorder: Recorder) -> None:
        self._publisher = publisher
        self._recorder = recorder

    @property
    def seq(self) -> int:
        """The number of the newest event; 0: nothing was told yet."""
        return self._publisher.feed.seq

    @property
    def opened_after(self) -> EntryId | None:
        """The newest entry that the file held when the session was opened, before anything was repaired."""
        return self._publisher.opened_after

    @property
    def newest_entry(self) -> EntryId | None:
        """The newest entry now."""
        return self._recorder.transcript.newest

    def go_on_from(self, seq: int, tap: EventObserver) -> None:
        """Number events from `seq` on, and call a tap with each of them before any reader receives it.

        Events that were published before the first subscription are still sent to the first reader.
        """
        self._publisher.feed.go_on_from(seq, tap)

    def publish(self, event: Event) -> None:
        """Publish an event that corrects an older one; the state that it reports is already in force."""
        self._publisher.publish(event)


class SnapshotSource:
    """Source of snapshots of a session."""

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        queue: InputQueue,
        broker: PermissionBroker,
        questions: QuestionPrompts,
        config: ActiveConfig,
        usage: UsageTracker,
        checkpoints: Checkpoints,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._queue = queue
        self._broker = broker
        self._questions = questions
        self._config = config
        self._usage = usage
        self._checkpoints = checkpoints

    def snapshot(self) -> SessionSnapshot:
        """Return the state of this moment."""
        publisher = self._services.publisher
        return SessionSnapshot(
            session=self._services.session,
            seq=publisher.feed.seq,
            state=publisher.state,
            activity=publisher.snapshot.activity,
            title=self._recorder.transcript.title,
            run=publisher.snapshot.run,
            queue=self._queue.items(),
            paused=self._queue.paused,
            pending=(*self._broker.prompts.pending, *self._questions.pending),
            sandbox=self._broker.permissions.containment(),
            config=self._config.now(),
            usage=self._usage.of_session(),
            changes=publisher.snapshot.changes,
            views=publisher.snapshot.views.all,
            checkpoints=tuple(one.id for one in self._checkpoints.all),
            background=tuple(publisher.snapshot.background.values()),
            tasks=tuple(publisher.snapshot.tasks.values()),
            unsaved=self._recorder.unsaved,
        )


class SessionView:
    """State of a session, and its switches."""

    def __init__(
        self,
        events: EventsView,
        edits: UserEdits,
        *,
        recorder: Recorder,
        config: ActiveConfig,
        usage: UsageTracker,
        workspace: WorkspaceContext,
        runs: ActivitySlot,
        snapshots: SnapshotSource,
    ) -> None:
        """Create the view.

        Args:
            events: The events, for recorders of events.
            edits: The handler of users' actions on the agent's edits.
            recorder: Reader of the session's entries.
            config: The configuration in force.
            usage: Usage of the session.
            workspace: The workspace.
            runs: The activity.
            snapshots: Source of snapshots.
        """
        self.events = events
        self.edits = edits
        self._recorder = recorder
        self._config = config
        self._usage = usage
        self._workspace = workspace
        self._runs = runs
        self._snapshots = snapshots

    @property
    def config(self) -> SessionConfig:
        """Configuration in force for the next request."""
        return self._config.now()

    @property
    def allowed_mode(self) -> PermissionMode:
        """The most that the user's own settings allow."""
        return self._workspace.allowed

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it."""
        return self._recorder.context()

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """The entries of the current branch."""
        return self._recorder.path()

    @property
    def last_entry(self) -> AnyEntry | None:
        """The last entry of the current branch; None: there is none."""
        return next(newest_first(self._recorder.transcript), None)

    @property
    def location(self) -> str | None:
        """The session's file; None in memory, or before anything was said."""
        return self._recorder.location

    @property
    def is_stored(self) -> bool:
        """Return whether a file holds the session as it is: something was said, and the disk took all of it."""
        recorder = self._recorder
        if recorder.location is None or recorder.unsaved:
            return False
        return has_prompt_or_answer(recorder.transcript.stored_path)

    @property
    def root(self) -> str:
        """The folder it works in."""
        return str(self._workspace.workspace.root)

    def is_running(self, run: RunId) -> bool:
        """Return whether a run is still going on."""
        current = self._runs.current
        return current is not None and current.run == run

    def snapshot(self) -> SessionSnapshot:
        """Return the snapshot of this moment; events after its `seq` continue it without a hole."""
        return self._snapshots.snapshot()

    def stats(self) -> SessionStats:
        """Count all that the session holds and has cost, branches that were left included."""
        recorder = self._recorder
        return session_stats(recorder.transcript.entries, file=recorder.location)

    def context_usage(self) -> ContextUsage:
        """Return how full the model's context window is."""
        report = self._usage.of_session()
        return ContextUsage(used=report.context_used, size=report.context_size)

    def last_answer(self) -> str | None:
        """Return the words of the newest answer that is more than an abort; None: there are none."""
        for entry in newest_first(self._recorder.transcript):
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                said = entry.message
                if said.content or said.stop_reason != "aborted":
                    return said.text.strip() or None
        return None

    def configure(
        self,
        *,
        mode: PermissionMode | None = None,
        auto_compact: bool | None = None,
        steering: QueueMode | None = None,
        follow_up: QueueMode | None = None,
        budgets: Budgets | None = None,
    ) -> SessionConfig:
        """Set options; None leaves an option unchanged.

        Args:
            mode: Which calls run without a permission request.
            auto_compact: Whether compaction may start automatically.
            steering: How steering is delivered.
            follow_up: How follow-ups are delivered.
            budgets: Budgets of each run, from the next turn on; without limits: those of the settings.

        Raises:
            BudgetRefused: A budget is larger than that of the settings; nothing changed.
        """
        return self._config.configure(
            mode=mode,
            auto_compact=auto_compact,
            steering=steering,
            follow_up=follow_up,
            budgets=budgets,
        )


class ProgramView:
    """Data that a program stores in the session, and the state that it checks before it acts."""

    def __init__(
        self, recorder: Recorder, *, queue: InputQueue, runs: ActivitySlot, bash: UserBash
    ) -> None:
        self._bash = bash
        self._recorder = recorder
        self._queue = queue
        self._runs = runs

    @property
    def is_idle(self) -> bool:
        """Whether nothing goes on."""
        return self._runs.current is None

    @property
    def has_pending_messages(self) -> bool:
        """Whether words wait in the queue."""
        return bool(self._queue.items())

    async def whole(self) -> tuple[WholeEntry, ...]:
        """Return the entries of the present branch with all bodies.

        Raises:
            StorageError: The file cannot be read.
        """
        recorder = self._recorder
        return await recorder.load(recorder.path())

    async def keep(self, custom_type: str, data: JsonValue = None) -> EntryId:
        """Store data in the present branch that no model sees; return the id of its entry.

        Args:
            custom_type: The type name by which the program identifies its data.
            data: JSON.

        Raises:
            UsageError: The type is empty or begins with `tiller.`, which is reserved; or the data is not JSON.
        """
        if not custom_type.strip() or custom_type.startswith(OURS):
            message = f"custom_type is {custom_type!r}; give a name of your own that does not begin with {OURS!r}"
            raise UsageError(message)
        try:
            own = decode(encode(data))
        except (TypeError, ValueError) as error:
            message = f"the data of {custom_type!r} is no JSON: {error}"
            raise UsageError(message) from error
        return await self._recorder.keep(data_entry(custom_type, own))

    async def record_bash(
        self,
        command: str,
        output: str,
        *,
        exit_code: int | None = 0,
        exclude_from_context: bool = False,
    ) -> BashResult:
        """Record a command that the program ran itself, as if the user had run it here; no hook is asked.

        Args:
            command: The command.
            output: Its output; the end of a long one is kept.
            exit_code: None: it was ended by a signal, or for time.
            exclude_from_context: As for `AgentSession.execute_bash`.

        Raises:
            UsageError: The command is empty.
        """
        done = CommandDone(output=output, exit_code=exit_code)
        return await self._bash.record(command, done, exclude_from_context=exclude_from_context)
