"""Builds a session out of its ports: no settings, no files of configuration, no choice of adapters."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import msgspec
from msgspec.structs import replace

from agent_core.assembly.change_review import build_review
from agent_core.assembly.config.settings import LiveSettings, SettingsTracker
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.failure_reports import StorageStatusPublisher, report_to
from agent_core.assembly.mcp import build_servers
from agent_core.assembly.resource_hooks import HookResourcePaths
from agent_core.changes import BlobStore
from agent_core.compaction import Compactor
from agent_core.events import (
    EventFeed,
    Notice,
    QueueMode,
    SessionConfigured,
    ThinkingLevel,
)
from agent_core.hooks import HookLimits, HookRunner, HookTable, SessionBegun
from agent_core.kernel import Clock, uuid7
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.mcp.servers import McpDeps
from agent_core.providers import Model
from agent_core.providers.http.client import HttpPool
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import Reloadable
from agent_core.session import AgentSession
from agent_core.session.changes.checkpoints.store import Checkpoints, checkpoints_of
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.review import ChangeReviewer
from agent_core.session.context import (
    EventPublisher,
    SessionContext,
    SessionOptions,
    SystemPrompt,
    WorkspaceContext,
    tool_options,
)
from agent_core.session.history.fork import ForkWriter
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.commands import NoTemplates, SlashCommands, TemplateSource
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.input.prompt_deduplication import MessageIndex
from agent_core.session.input.queue import InputQueue
from agent_core.session.input.system_prompt import Sections, SystemPromptSync
from agent_core.session.model_selection import Choosable, ModelResolver, ModelSelection, sees
from agent_core.session.permissions.broker import BrokerContext, PermissionBroker
from agent_core.session.permissions.permission_prompts import PermissionPrompts
from agent_core.session.permissions.prompt_hooks import PromptHooks
from agent_core.session.permissions.question_prompts import QuestionPrompts
from agent_core.session.permissions.trust import Trust, TrustManager
from agent_core.session.redaction import EventRedaction
from agent_core.session.runs.recovered_state import RecoveredState, recover_state
from agent_core.session.runs.recovery import recover, settle
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.runs.usage import UsageTracker
from agent_core.session.tools.redacted_processes import RedactedProcesses
from agent_core.session.tools.registry import ToolRegistry
from agent_core.storage import OpenedSession, SessionStore
from agent_core.tools import Tool
from agent_core.transcript import AnyEntry, Header, Transcript


class SessionDeps(Value, frozen=True, kw_only=True):
    """Everything a session is built from."""

    clock: Clock
    opened: OpenedSession
    """A log to write to, and the entries that are in it."""
    fork_writer: ForkWriter
    """Keeps another session where this one is kept; `fork_writer_for` makes it from a store."""
    place: WorkspaceContext
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
    trust: Trust | None = None
    """Workspace trust, checked before each run; None: the caller decides about trust and nothing is checked here."""
    settings: LiveSettings | None = None
    """Where the options come from; None: they stay as they are."""
    watches: FolderWatches | None = None
    """How it is seen that their files are changed; None: it is not."""
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from stored and published texts."""
    notices: Sequence[str] = ()
    """Notices shown to the user first, for example problems of the configuration."""


@asynccontextmanager
async def build_session(deps: SessionDeps) -> AsyncGenerator[AgentSession, None]:
    """Build a session and hold its tasks; leaving the context cancels what goes on and settles the file.

    The log is closed however it ends, also when no session can be built.
    """
    try:
        parts = _parts(deps)
    except BaseException:
        await deps.opened.log.close()
        raise
    restored = _restored(parts.recorder.transcript)
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        runs = ActivitySlot(group, settle=partial(settle, parts))
        group.start_soon(parts.recorder.keep_trying)
        parts.recorder.background.group = group
        if parts.servers is not None:
            parts.servers.live_in(group)
        if deps.watches is not None and parts.settings is not None:
            group.start_soon(parts.settings.watch, deps.watches)
        session = AgentSession(parts, runs)
        if deps.extensions is not None:
            deps.extensions.bind(session, parts, group, deps.source)
        sought = HookResourcePaths(parts, deps.templates)
        # Behind the code of others, which may give other folders now; what is read in them comes last.
        parts.reloads.append(sought)
        try:
            await sought.look("startup")
            await recover(parts, runs, restored)
            _ = await parts.hooks.ask(_begun(deps.opened))
            for text in (*deps.notices, *await deps.templates.refresh()):
                parts.publisher.backlog.append(Notice(level="warning", text=text))
            yield session
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            failure = error
        finally:
            await session.close()
            if deps.extensions is not None:
                deps.extensions.close()
            if deps.place.detector is not None:
                deps.place.detector.close()
            parts.recorder.background.group = None
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _begun(opened: OpenedSession) -> SessionBegun:
    return SessionBegun(reason="resume" if opened.entries else "new")


def fork_writer_for(store: SessionStore) -> ForkWriter:
    """Return a function that writes a new session to the store and returns its location, None when it has none."""

    async def keep(header: Header, entries: Sequence[AnyEntry]) -> str | None:
        log = await store.create(header)
        try:
            await log.append(entries)
        finally:
            await log.close()
        return None if log.location is None else str(log.location)

    return keep


def _restored(transcript: Transcript) -> RecoveredState:
    return recover_state(transcript.entries, path=transcript.path())


def _parts(deps: SessionDeps) -> SessionContext:
    inner = deps.place.workspace.processes
    processes = RedactedProcesses(inner, deps.redactor)
    deps.place.workspace = replace(deps.place.workspace, processes=processes)
    publisher = EventPublisher(feed=EventFeed(deps.clock), redaction=EventRedaction(deps.redactor))
    transcript = Transcript(deps.opened.take_entries())
    publisher.opened_after = transcript.newest
    restored = _restored(transcript)
    log = deps.opened.log
    recorder = _recorder(deps, publisher, transcript)
    changes = _changes(deps, publisher, recorder)
    checkpoints = _checkpoints(deps, publisher, recorder, changes)
    hooks = HookRunner(deps.hooks, report=report_to(publisher), limits=deps.hook_limits)
    if deps.pool is not None:
        deps.pool.hooks = hooks
    asking = PromptHooks(publisher, hooks, partial(_start_in_background, recorder))
    toolbox = ToolRegistry(deps.tools, active=deps.active_tools, extension_tools=_brought(deps))
    gate = _gate(deps, publisher, asking, recorder, toolbox)
    deferred = DeferredMessages(recorder, new_id=lambda: uuid7(deps.clock.now_ms()))
    models = _models(deps)
    parts = SessionContext(
        session=log.header.id,
        clock=deps.clock,
        publisher=publisher,
        recorder=recorder,
        fork_writer=deps.fork_writer,
        deferred=deferred,
        inbox=_inbox(deps, models),
        message_index=MessageIndex(restored.runs),
        models=models,
        toolbox=toolbox,
        hooks=hooks,
        compactor=Compactor(),
        tally=UsageTracker(restored.usage, restored.context_used),
        place=deps.place,
        contents=deps.contents,
        changes=changes,
        review=_review(
            deps, publisher, recorder, changes, deferred=deferred, checkpoints=checkpoints
        ),
        checkpoints=checkpoints,
        gate=gate,
        questions=_questions(deps, publisher, asking, recorder, gate),
        system_prompt=deps.system_prompt,
        prompting=deps.sections and SystemPromptSync(sections=deps.sections, clock=deps.clock),
        commands=SlashCommands(
            deps.templates, background=recorder.background, publish=publisher.publish
        ),
        reloads=list(deps.reloads),
        options=deps.options,
    )
    return replace(
        parts,
        trusting=_trusting(deps, parts),
        servers=build_servers(deps.servers, parts, wants=deps.wants_tool),
        settings=_settings(deps, parts),
    )


def _changes(deps: SessionDeps, publisher: EventPublisher, recorder: Recorder) -> ChangeRecord:
    changes = ChangeRecord(
        recorder,
        deps.contents,
        publish=publisher.publish,
        current_run=lambda: publisher.picture.activity.run,
    )
    publisher.picture.changes = changes.counts
    return changes


def _recorder(deps: SessionDeps, publisher: EventPublisher, transcript: Transcript) -> Recorder:
    return Recorder(
        deps.opened.log,
        transcript,
        clock=deps.clock,
        news=StorageStatusPublisher(publisher),
        durability=deps.options.durability,
        redactor=deps.redactor,
    )


def _inbox(deps: SessionDeps, models: ModelSelection) -> InputQueue:
    return InputQueue(
        steering=deps.steering,
        follow_up=deps.follow_up,
        may_go=lambda item: item.custom is not None or sees(models, item.content),
    )


def _models(deps: SessionDeps) -> ModelSelection:
    return ModelSelection(
        deps.source,
        model=deps.model,
        thinking=deps.thinking,
        why_none=deps.why_no_model,
        look_again=deps.look_again,
        scoped=deps.scoped_models,
        unwritten=deps.asked_for,
    )


def _review(
    deps: SessionDeps,
    publisher: EventPublisher,
    recorder: Recorder,
    changes: ChangeRecord,
    *,
    deferred: DeferredMessages,
    checkpoints: Checkpoints,
) -> ChangeReviewer:
    return build_review(
        changes,
        recorder,
        deferred,
        deps.place,
        clock=deps.clock,
        publish=publisher.publish,
        checkpoint=checkpoints.before_reverting,
    )


def _checkpoints(
    deps: SessionDeps, publisher: EventPublisher, recorder: Recorder, changes: ChangeRecord
) -> Checkpoints:
    checkpoints = Checkpoints(
        changes.log,
        contents=deps.contents,
        recorder=recorder,
        clock=deps.clock,
        new_id=lambda: uuid7(deps.clock.now_ms()),
        publish=publisher.publish,
        current_run=lambda: publisher.picture.activity.run,
        existing=checkpoints_of(recorder.transcript.entries),
    )
    changes.before_change = checkpoints.before
    return checkpoints


def _start_in_background(
    recorder: Recorder, work: Callable[[], Coroutine[object, None, None]]
) -> None:
    """Begin something that nobody waits for; nothing is begun while the session is not open."""
    if recorder.background.group is not None:
        recorder.background.group.start_soon(work)


def _gate(
    deps: SessionDeps,
    publisher: EventPublisher,
    asking: PromptHooks,
    recorder: Recorder,
    toolbox: ToolRegistry,
) -> PermissionBroker:
    return PermissionBroker(
        permissions=deps.place.permissions,
        prompts=PermissionPrompts(clock=deps.clock, recorder=recorder, publisher=asking),
        context=BrokerContext(
            session=deps.opened.log.header.id,
            workspace=deps.place.workspace,
            clock=deps.clock,
            new_id=lambda: uuid7(deps.clock.now_ms()),
            item_of=publisher.picture.item_of,
            publish=publisher.publish,
            settings_of=partial(tool_options, deps.options),
            server_of=toolbox.server_of,
        ),
        secrets=deps.place.secrets,
    )


def _questions(
    deps: SessionDeps,
    publisher: EventPublisher,
    asking: PromptHooks,
    recorder: Recorder,
    gate: PermissionBroker,
) -> QuestionPrompts:
    questions = QuestionPrompts(
        session=deps.opened.log.header.id,
        clock=deps.clock,
        recorder=recorder,
        publisher=asking,
        permissions=deps.place.permissions,
    )
    publisher.awaits_user = lambda: bool(gate.prompts.pending) or questions.holds_up
    return questions


def _settings(deps: SessionDeps, parts: SessionContext) -> SettingsTracker | None:
    if deps.settings is None:
        return None
    followed = SettingsTracker(live=deps.settings, parts=parts)
    # First: what is read beside them may depend on them.
    parts.reloads.insert(0, followed)
    return followed


def _brought(deps: SessionDeps) -> Sequence[Tool]:
    return () if deps.extensions is None else deps.extensions.tools


def _trusting(deps: SessionDeps, parts: SessionContext) -> TrustManager | None:
    if deps.trust is None:
        return None
    permission_state = deps.place.permissions
    trusting = TrustManager(
        session=deps.opened.log.header.id,
        trust=deps.trust,
        permissions=permission_state,
        prompts=parts.gate.prompts,
        clock=deps.clock,
        new_id=parts.new_id,
        publish=parts.publisher.publish,
        apply=partial(_apply_trust, deps, parts),
        is_trusted=permission_state.is_trusted(),
    )
    permission_state.is_trusted = lambda: trusting.is_trusted
    return trusting


async def _apply_trust(deps: SessionDeps, parts: SessionContext) -> None:
    """Apply a change of trust to settings, rules and extensions; publish the session configuration if it changed."""
    permission_state = deps.place.permissions
    before = parts.config()
    if deps.settings is not None:
        is_trusted = permission_state.is_trusted()
        await deps.settings.apply(deps.options, deps.place, is_trusted=is_trusted)
    if (after := parts.config()) != before:
        _ = parts.publisher.publish(SessionConfigured(config=after))
    _ = await permission_state.refresh()
    if deps.extensions is not None:
        await deps.extensions.reload_and_publish()
