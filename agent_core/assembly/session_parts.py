"""The inputs of a session, and its parts, each built once from the parts that it uses."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agent_core.assembly.config import LiveSettings, SettingsTracker
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.mcp import build_servers
from agent_core.assembly.resources import HookResourcePaths
from agent_core.changes import BlobStore
from agent_core.events import EventFeed, QueueMode, ThinkingLevel
from agent_core.events.feed import EventObserver
from agent_core.hooks import HookLimits, HookRunner, HookTable
from agent_core.kernel import Clock
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.mcp import McpServers
from agent_core.mcp.servers import McpDeps
from agent_core.providers import Model
from agent_core.providers.http.client import HttpPool
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import Reloadable
from agent_core.session.changes.checkpoints import Checkpoints, checkpoints_of
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.review import ChangeReviewer, build_reviewer
from agent_core.session.config import ActiveConfig
from agent_core.session.context import (
    EventPublisher,
    SessionOptions,
    SessionServices,
    StorageStatusPublisher,
    WorkspaceContext,
    report_to,
    tool_options,
)
from agent_core.session.history.compaction import Compaction
from agent_core.session.history.entries import ForkWriter
from agent_core.session.history.recorder import Background, Recorder
from agent_core.session.input.commands import NoTemplates, SlashCommands, TemplateSource
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.input.queue import InputQueue, MessageIndex
from agent_core.session.input.system_prompt import (
    RunSystemPrompt,
    Sections,
    SystemPrompt,
    SystemPromptSync,
)
from agent_core.session.model_selection import Choosable, ModelResolver, ModelSelection, sees
from agent_core.session.permissions.broker import BrokerContext, PermissionBroker
from agent_core.session.permissions.permission_prompts import (
    PermissionPrompts,
    PromptHooks,
    TaskPrompts,
)
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.permissions.trust import Trust, TrustManager
from agent_core.session.redaction import EventRedaction
from agent_core.session.runs.executor import RunEndWriter
from agent_core.session.runs.recovered_state import RecoveredState, recover_session
from agent_core.session.runs.recovery import RecoveredTasks, SessionRecovery
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.runs.usage import RunBudgets, UsageTracker
from agent_core.session.tools.processes import RedactedProcesses
from agent_core.session.tools.registry import SideWork, ToolContexts, ToolRegistry
from agent_core.session.tools.task_port import OuterSession, TaskSessions
from agent_core.storage import OpenedSession
from agent_core.tools import Tool
from agent_core.tools.port import BackgroundCommands, ReadCache, no_tasks
from agent_core.transcript import Transcript

if TYPE_CHECKING:
    from agent_core.session.history.titles import SessionTitles
    from agent_core.session.runs.model_calls import SessionCalls
    from agent_core.session.tools.background import SessionBackground
    from agent_core.session.tools.tasks import SessionTasks


# ruff: noqa: D102, PLR0904 - a property has the name and the type of the part that it builds


class SessionDeps(Value, frozen=True, kw_only=True):
    """Everything a session is built from."""

    clock: Clock
    opened: OpenedSession
    """A log to write to, and the entries that are in it."""
    fork_writer: ForkWriter
    """Keeps another session where this one is kept; `fork_writer_for` makes it from a store."""
    workspace: WorkspaceContext
    contents: BlobStore
    """Where older versions of changed files are kept."""
    source: ModelResolver
    model: Model | None
    why_no_model: str = ""
    look_again: Callable[[], Model | None] = lambda: None
    """Chooses a model anew while there is none."""
    thinking: ThinkingLevel = "medium"
    scoped_models: Sequence[str] = ()
    """Patterns of the models to cycle through; none: all that have a key."""
    tools: Sequence[Tool]
    active_tools: str | Sequence[str] = "default"
    extensions: SessionExtensions | None = None
    """Code of others that is loaded already; None: there is none."""
    servers: McpDeps | None = None
    """Inputs for building the MCP servers of the session; None: there are no servers."""
    wants_tool: Callable[[str], bool] = lambda _: True
    """Whether a tool of such a server is to be active, by its name."""
    hooks: HookTable = msgspec.field(default_factory=HookTable)
    """Functions that look in on what happens."""
    hook_limits: HookLimits = msgspec.field(default_factory=HookLimits)
    observer: EventObserver | None = None
    pool: HttpPool | None = None
    """The session's own way to providers, which its hooks are to see; None: they see nothing of it."""
    system_prompt: SystemPrompt
    sections: Sections | None = None
    """The parts of the system prompt, of which only what has changed is sent; None: it is sent whole every time."""
    templates: TemplateSource = msgspec.field(default_factory=NoTemplates)
    """Skills and prompt templates."""
    reloads: Sequence[Reloadable] = ()
    """Resources that a reload request reads again."""
    steering: QueueMode = "one-at-a-time"
    follow_up: QueueMode = "one-at-a-time"
    options: SessionOptions = msgspec.field(default_factory=SessionOptions)
    asked_for: frozenset[Choosable] = frozenset()
    """Choices of the session's opener that the session file does not hold yet; written before the first message."""
    tasks: TaskSessions | None = None
    """Opens the sessions of tasks; None: there are none here."""
    outer: OuterSession | None = None
    """The session that gave this task; None: this is no task."""
    trust: Trust | None = None
    """Workspace trust, checked before each run; None: the caller decides about trust and nothing is checked here."""
    settings: LiveSettings | None = None
    """Where the options come from; None: they stay as they are."""
    watches: FolderWatches | None = None
    """How it is seen that their files are changed; None: it is not."""
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from stored and published texts."""
    titled: bool = False
    """Whether a model makes a title for the session when it has none, as the options say."""
    notices: Sequence[str] = ()
    """Notices shown to the user first, for example problems of the configuration."""


class BaseParts:
    """The parts of one session for events, the transcript, choices and input."""

    def __init__(self, deps: SessionDeps) -> None:
        self.deps = deps
        self.workspace = deps.workspace
        inner = deps.workspace.workspace.processes
        processes = RedactedProcesses(inner, deps.redactor)
        self.workspace.workspace = replace(deps.workspace.workspace, processes=processes)
        self.seen = ReadCache()
        # Set by the builder.
        self.go_on: Callable[[], None] = lambda: None
        """Starts a run when something waits."""
        self.build_tasks: Callable[[], tuple[SessionTasks, RecoveredTasks]] = no_tasks

    # ------------------------------------------------------------------ events and transcript

    @cached_property
    def publisher(self) -> EventPublisher:
        publisher = EventPublisher(
            feed=EventFeed(self.deps.clock, observer=self.deps.observer),
            redaction=EventRedaction(self.deps.redactor, self.deps.clock),
        )
        publisher.opened_after = self.transcript.newest
        return publisher

    @cached_property
    def services(self) -> SessionServices:
        outer = self.deps.outer
        return SessionServices(
            session=self.deps.opened.log.header.id,
            clock=self.deps.clock,
            publisher=self.publisher,
            parent=None if outer is None else outer.parent,
        )

    @cached_property
    def transcript(self) -> Transcript:
        return self.deps.opened.transcript

    @cached_property
    def recovered(self) -> RecoveredState:
        return recover_session(self.transcript)

    @cached_property
    def recorder(self) -> Recorder:
        return Recorder(
            self.deps.opened.log,
            self.transcript,
            clock=self.deps.clock,
            news=StorageStatusPublisher(self.publisher),
            durability=self.deps.options.durability,
            redactor=self.deps.redactor,
        )

    @property
    def background(self) -> Background:
        return self.recorder.background

    @cached_property
    def hooks(self) -> HookRunner:
        report = report_to(self.publisher)
        hooks = HookRunner(self.deps.hooks, report=report, limits=self.deps.hook_limits)
        if self.deps.pool is not None:
            self.deps.pool.hooks = hooks
        return hooks

    # ------------------------------------------------------------------ choices

    @cached_property
    def models(self) -> ModelSelection:
        deps = self.deps
        return ModelSelection(
            deps.source,
            model=deps.model,
            thinking=deps.thinking,
            why_none=deps.why_no_model,
            look_again=deps.look_again,
            scoped=deps.scoped_models,
            unwritten=deps.asked_for,
            recorder=lambda: self.calls,
        )

    @cached_property
    def calls(self) -> "SessionCalls":
        from agent_core.session.runs.model_calls import session_calls  # noqa: PLC0415 - at first use

        place, recorder = self.workspace, self.recorder
        return session_calls(
            place.ledger, self.services, self.budgets, place.allowance, recorder=recorder
        )

    @cached_property
    def toolbox(self) -> ToolRegistry:
        extensions = self.deps.extensions
        return ToolRegistry(
            self.deps.tools,
            active=self.deps.active_tools,
            extension_tools=() if extensions is None else extensions.tools,
        )

    @cached_property
    def config(self) -> ActiveConfig:
        return ActiveConfig(
            self.publisher,
            models=self.models,
            toolbox=self.toolbox,
            queue=self.queue,
            workspace=self.workspace,
            options=self.deps.options,
        )

    @cached_property
    def settings(self) -> SettingsTracker | None:
        if self.deps.settings is None:
            return None
        return SettingsTracker(
            live=self.deps.settings,
            publisher=self.publisher,
            models=self.models,
            queue=self.queue,
            config=self.config,
            workspace=self.workspace,
            options=self.deps.options,
        )

    @cached_property
    def usage(self) -> UsageTracker:
        recovered = self.recovered
        usage = UsageTracker(
            recovered.usage, recovered.context_used, models=self.models, clock=self.deps.clock
        )
        if self.deps.outer is not None:
            usage.on_spent = self.deps.outer.on_spent
        return usage

    @cached_property
    def budgets(self) -> RunBudgets:
        return RunBudgets(
            self.workspace.allowance,
            usage=self.usage,
            models=self.models,
            max_turns=lambda: self.deps.options.max_turns,
            outer=(lambda: None) if self.deps.outer is None else self.deps.outer.exhausted,
            tree=None if self.deps.outer is None else self.deps.outer.budgets,
        )

    # ------------------------------------------------------------------ input

    @cached_property
    def queue(self) -> InputQueue:
        models = self.models
        return InputQueue(
            self.publisher,
            steering=self.deps.steering,
            follow_up=self.deps.follow_up,
            may_go=lambda item: item.custom is not None or sees(models, item.content),
        )

    @cached_property
    def message_index(self) -> MessageIndex:
        return MessageIndex(self.recovered.runs)

    @cached_property
    def deferred(self) -> DeferredMessages:
        return DeferredMessages(self.recorder, new_id=self.services.new_id)

    @cached_property
    def commands(self) -> SlashCommands:
        return SlashCommands(
            self.deps.templates, background=self.background, publish=self.publisher.publish
        )

    @cached_property
    def system_prompt(self) -> RunSystemPrompt:
        deps = self.deps
        return RunSystemPrompt(
            deps.system_prompt,
            deps.sections and SystemPromptSync(sections=deps.sections, clock=deps.clock),
            models=self.models,
            permissions=self.workspace.permissions,
            workspace=self.workspace.workspace,
        )


class SessionParts(BaseParts):
    """The parts of one session. Only the builder sees it: a part gets the parts that it uses."""

    # ------------------------------------------------------------------ permissions

    @cached_property
    def _prompt_hooks(self) -> PromptHooks:
        return PromptHooks(self.publisher, self.hooks, self.background.start)

    @cached_property
    def _prompts(self) -> PermissionPrompts:
        clock, recorder, outer = self.services.clock, self.recorder, self.deps.outer
        if outer is None:
            return PermissionPrompts(clock=clock, recorder=recorder, publisher=self._prompt_hooks)
        return TaskPrompts(
            outer.prompts,
            shown_as=outer.shown_as,
            clock=clock,
            recorder=recorder,
            publisher=self._prompt_hooks,
        )

    @cached_property
    def broker(self) -> PermissionBroker:
        services = self.services
        return PermissionBroker(
            permissions=self.workspace.permissions,
            prompts=self._prompts,
            context=BrokerContext(
                session=services.session,
                workspace=self.workspace.workspace,
                clock=services.clock,
                new_id=services.new_id,
                item_of=self.publisher.snapshot.item_of,
                publish=services.publish,
                settings_of=partial(tool_options, self.deps.options),
                server_of=self.toolbox.server_of,
                host_of=self.toolbox.host_of,
            ),
            secrets=self.workspace.secrets,
        )

    @cached_property
    def questions(self) -> QuestionPrompts:
        if self.deps.outer is not None:
            return self.deps.outer.questions
        prompts = self.broker.prompts
        questions = QuestionPrompts(
            session=self.services.session,
            clock=self.services.clock,
            recorder=self.recorder,
            publisher=self._prompt_hooks,
            permissions=self.workspace.permissions,
        )
        self.publisher.awaits_user = lambda: bool(prompts.pending) or questions.holds_up
        return questions

    @cached_property
    def trust(self) -> TrustManager | None:
        if self.deps.trust is None:
            return None
        permissions = self.workspace.permissions
        trust = TrustManager(
            session=self.services.session,
            trust=self.deps.trust,
            permissions=permissions,
            prompts=self.broker.prompts,
            clock=self.services.clock,
            new_id=self.services.new_id,
            publish=self.services.publish,
            apply=self._apply_trust,
            is_trusted=permissions.is_trusted(),
        )
        permissions.is_trusted = lambda: trust.is_trusted
        return trust

    async def _apply_trust(self) -> None:
        """Apply a change of trust to settings, rules and extensions; publish the session configuration if it changed."""
        deps, permissions = self.deps, self.workspace.permissions
        before = self.config.now()
        if deps.settings is not None:
            is_trusted = permissions.is_trusted()
            await deps.settings.apply(deps.options, self.workspace, is_trusted=is_trusted)
        self.config.publish_change(before)
        _ = await permissions.refresh()
        if deps.extensions is not None:
            await deps.extensions.reload_and_publish()

    @cached_property
    def servers(self) -> McpServers | None:
        return build_servers(
            self.deps.servers,
            self.services,
            permissions=self.workspace.permissions,
            prompts=self.broker.prompts,
            toolbox=self.toolbox,
            wants=self.deps.wants_tool,
        )

    # ------------------------------------------------------------------ changes

    @cached_property
    def changes(self) -> ChangeRecord:
        snapshot = self.publisher.snapshot
        changes = ChangeRecord(
            self.recorder,
            self.deps.contents,
            publish=self.publisher.publish,
            current_run=lambda: snapshot.activity.run,
        )
        snapshot.changes = changes.counts
        return changes

    @cached_property
    def checkpoints(self) -> Checkpoints:
        snapshot = self.publisher.snapshot
        checkpoints = Checkpoints(
            self.changes.log,
            contents=self.deps.contents,
            recorder=self.recorder,
            clock=self.services.clock,
            new_id=self.services.new_id,
            publish=self.services.publish,
            current_run=lambda: snapshot.activity.run,
            existing=checkpoints_of(self.recorder.transcript.records),
        )
        self.changes.before_change = checkpoints.before
        return checkpoints

    @cached_property
    def review(self) -> ChangeReviewer:
        return build_reviewer(
            self.changes,
            self.recorder,
            self.deferred,
            self.workspace,
            clock=self.services.clock,
            publish=self.services.publish,
            checkpoint=self.checkpoints.before_reverting,
        )

    # ------------------------------------------------------------------ activities

    @cached_property
    def runs(self) -> ActivitySlot:
        return ActivitySlot(self.deferred, self.services.publish)

    @cached_property
    def compaction(self) -> Compaction:
        return Compaction(
            self.services,
            models=self.models,
            options=self.deps.options,
            recorder=self.recorder,
            usage=self.usage,
            hooks=self.hooks,
        )

    @cached_property
    def tool_contexts(self) -> ToolContexts:
        return ToolContexts(
            self.services,
            workspace=self.workspace,
            options=self.deps.options,
            broker=self.broker,
            questions=self.questions,
            changes=self.changes,
            toolbox=self.toolbox,
            seen=self.seen,
            side_work=SideWork(
                commands=self.commands_in_background, tasks=self.given_tasks, runner=self.background
            ),
            outer=None if self.deps.outer is None else self.deps.outer.edits,
        )

    def commands_in_background(self) -> BackgroundCommands:
        """Return those of the session that gave this task, which outlive it, unless it has files of its own."""
        if (outer := self.deps.outer) is None or outer.edits is None:
            return self.background_commands
        return outer.background()

    @cached_property
    def background_commands(self) -> "SessionBackground":
        from agent_core.session.tools.background import SessionBackground  # noqa: PLC0415 - at first use

        snapshot = self.publisher.snapshot
        return SessionBackground(
            self.services,
            workspace=self.workspace,
            options=self.deps.options,
            recorder=self.recorder,
            deferred=self.deferred,
            tasks=self.background,
            needs_for=self.broker.needs_for,
            current_run=lambda: snapshot.activity.run,
            begun=self.recovered.background_count,
        )

    @cached_property
    def titles(self) -> "SessionTitles":
        from agent_core.session.history.titles import SessionTitles  # noqa: PLC0415 - at first use

        return SessionTitles(
            self.services,
            models=self.models,
            options=self.deps.options,
            allowance=self.workspace.allowance,
            recorder=self.recorder,
            usage=self.usage,
            hooks=self.hooks,
            redactor=self.deps.redactor,
        )

    async def end_background(self) -> None:
        """End tasks, background commands and the request for a title, if there ever were any."""
        if "_built_tasks" in vars(self):
            await self._built_tasks[0].close()
        if "background_commands" in vars(self):
            await self.background_commands.close()
        if "titles" in vars(self):
            await self.titles.close()

    @cached_property
    def _built_tasks(self) -> "tuple[SessionTasks, RecoveredTasks]":
        return self.build_tasks()

    def given_tasks(self) -> "SessionTasks":
        return no_tasks() if self.deps.tasks is None else self._built_tasks[0]

    @property
    def task_recovery(self) -> RecoveredTasks | None:
        has_none = not self.recovered.tasks or self.deps.tasks is None
        return None if has_none else self._built_tasks[1]

    @cached_property
    def ending(self) -> RunEndWriter:
        return RunEndWriter(
            self.services,
            recorder=self.recorder,
            deferred=self.deferred,
            usage=self.usage,
            changes=self.changes,
            checkpoints=self.checkpoints,
            queue=self.queue,
            runs=self.runs,
            workspace=self.workspace.workspace,
            broker=self.broker,
        )

    @cached_property
    def recovery(self) -> SessionRecovery:
        return SessionRecovery(
            self.services,
            recorder=self.recorder,
            queue=self.queue,
            deferred=self.deferred,
            usage=self.usage,
            changes=self.changes,
            runs=self.runs,
            tasks=self.task_recovery,
        )

    # ------------------------------------------------------------------ reloading

    @cached_property
    def hook_paths(self) -> HookResourcePaths:
        return HookResourcePaths(self.hooks, self.workspace.workspace.root, self.deps.templates)
