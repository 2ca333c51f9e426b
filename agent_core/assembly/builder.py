"""Builds a session out of its ports: no settings, no files of configuration, no choice of adapters."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import msgspec
from msgspec.structs import replace

from agent_core.assembly.change_review import build_review
from agent_core.assembly.config.settings import FollowedSettings, LiveSettings
from agent_core.assembly.extensions import Extending
from agent_core.assembly.failure_reports import DiskNews, report_to
from agent_core.assembly.mcp import build_servers
from agent_core.assembly.resource_hooks import SoughtResources
from agent_core.changes import Contents
from agent_core.compaction import Compactor
from agent_core.events import (
    Feed,
    Notice,
    QueueMode,
    SessionConfigured,
    ThinkingLevel,
)
from agent_core.hooks import HookLimits, HookRunner, HookTable, SessionBegun
from agent_core.kernel import Clock, uuid7
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.mcp.servers import Around
from agent_core.providers import Model
from agent_core.providers.http.client import HttpPool
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.load_result import Reloads
from agent_core.session import AgentSession
from agent_core.session.changes.checkpoints.store import Checkpoints, checkpoints_of
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.changes.review import Review
from agent_core.session.context import (
    Parts,
    Place,
    SessionOptions,
    SystemPrompt,
    Voice,
    tool_options,
)
from agent_core.session.history.fork import Offspring
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.commands import Commands, NoWords, WordSource
from agent_core.session.input.deferred_messages import Aside
from agent_core.session.input.message_index import KnownMessages
from agent_core.session.input.queue import Inbox
from agent_core.session.input.system_prompt import Prompting, Sections
from agent_core.session.model_selection import Choosable, ModelChoice, ModelSource, sees
from agent_core.session.permissions.broker import Gate, Surroundings
from agent_core.session.permissions.permission_prompts import Desk
from agent_core.session.permissions.prompt_hooks import PromptTeller
from agent_core.session.permissions.question_prompts import Questions
from agent_core.session.permissions.trust import Trust, Trusting
from agent_core.session.redaction import EventRedaction
from agent_core.session.runs.recovered_state import Restored, restore
from agent_core.session.runs.recovery import repair, settle
from agent_core.session.runs.slot import Runs
from agent_core.session.runs.usage import Tally
from agent_core.session.tools.redacted_processes import RedactedProcesses
from agent_core.session.tools.registry import Toolbox
from agent_core.storage import Opened, SessionStore
from agent_core.tools import Tool
from agent_core.transcript import AnyEntry, Header, Transcript


class Ingredients(Value, frozen=True, kw_only=True):
    """Everything a session is built from."""

    clock: Clock
    opened: Opened
    """A log to write to, and the entries that are in it."""
    offspring: Offspring
    """Keeps another session where this one is kept; `offspring_in` makes it from a store."""
    place: Place
    contents: Contents
    """Where older versions of changed files are kept."""
    source: ModelSource
    model: Model | None
    why_no_model: str = ""
    look_again: Callable[[], Model | None] = lambda: None
    """Chooses a model anew while there is none."""
    thinking: ThinkingLevel = "medium"
    scoped_models: Sequence[str] = ()
    """Patterns of the models to cycle through; none: all that have a key."""
    tools: Sequence[Tool]
    active_tools: str | Sequence[str] = "default"
    extensions: Extending | None = None
    """Code of others that is loaded already; None: there is none."""
    servers: Around | None = None
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
    words: WordSource = msgspec.field(default_factory=NoWords)
    """Skills and prompt templates."""
    reloads: Sequence[Reloads] = ()
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
async def build_session(ingredients: Ingredients) -> AsyncGenerator[AgentSession, None]:
    """Build a session and hold its tasks; leaving the context cancels what goes on and settles the file.

    The log is closed however it ends, also when no session can be built.
    """
    try:
        parts = _parts(ingredients)
    except BaseException:
        await ingredients.opened.log.close()
        raise
    restored = _restored(parts.recorder.transcript)
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        runs = Runs(group, settle=partial(settle, parts))
        group.start_soon(parts.recorder.keep_trying)
        parts.recorder.steps.group = group
        if parts.servers is not None:
            parts.servers.live_in(group)
        if ingredients.watches is not None and parts.settings is not None:
            group.start_soon(parts.settings.watch, ingredients.watches)
        session = AgentSession(parts, runs)
        if ingredients.extensions is not None:
            ingredients.extensions.bind(session, parts, group, ingredients.source)
        sought = SoughtResources(parts, ingredients.words)
        # Behind the code of others, which may give other folders now; what is read in them comes last.
        parts.reloads.append(sought)
        try:
            await sought.look("startup")
            await repair(parts, runs, restored)
            _ = await parts.hooks.ask(_begun(ingredients.opened))
            for text in (*ingredients.notices, *await ingredients.words.refresh()):
                parts.voice.greetings.append(Notice(level="warning", text=text))
            yield session
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again below, outside of the group that would wrap it
            failure = error
        finally:
            await session.close()
            if ingredients.extensions is not None:
                ingredients.extensions.close()
            if ingredients.place.lookout is not None:
                ingredients.place.lookout.close()
            parts.recorder.steps.group = None
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _begun(opened: Opened) -> SessionBegun:
    return SessionBegun(reason="resume" if opened.entries else "new")


def offspring_in(store: SessionStore) -> Offspring:
    """Return a function that writes a new session to the store and returns its location, None when it has none."""

    async def keep(header: Header, entries: Sequence[AnyEntry]) -> str | None:
        log = await store.create(header)
        try:
            await log.append(entries)
        finally:
            await log.close()
        return None if log.location is None else str(log.location)

    return keep


def _restored(transcript: Transcript) -> Restored:
    return restore(transcript.entries, path=transcript.path())


def _parts(given: Ingredients) -> Parts:
    inner = given.place.workspace.processes
    processes = RedactedProcesses(inner, given.redactor)
    given.place.workspace = replace(given.place.workspace, processes=processes)
    voice = Voice(feed=Feed(given.clock), redaction=EventRedaction(given.redactor))
    transcript = Transcript(given.opened.take_entries())
    voice.opened_after = transcript.newest
    restored = _restored(transcript)
    log = given.opened.log
    recorder = _recorder(given, voice, transcript)
    changes = ChangeRecord(
        recorder,
        given.contents,
        say=voice.say,
        current_run=lambda: voice.picture.activity.run,
    )
    voice.picture.changes = changes.counts
    checkpoints = _checkpoints(given, voice, recorder, changes)
    hooks = HookRunner(given.hooks, report=report_to(voice), limits=given.hook_limits)
    if given.pool is not None:
        given.pool.hooks = hooks
    asking = PromptTeller(voice, hooks, partial(_aside, recorder))
    toolbox = Toolbox(given.tools, active=given.active_tools, brought=_brought(given))
    gate = _gate(given, voice, asking, recorder, toolbox)
    aside = Aside(recorder, new_id=lambda: uuid7(given.clock.now_ms()))
    models = _models(given)
    parts = Parts(
        session=log.header.id,
        clock=given.clock,
        voice=voice,
        recorder=recorder,
        offspring=given.offspring,
        aside=aside,
        inbox=_inbox(given, models),
        known=KnownMessages(restored.runs),
        models=models,
        toolbox=toolbox,
        hooks=hooks,
        compactor=Compactor(),
        tally=Tally(restored.usage, restored.context_used),
        place=given.place,
        contents=given.contents,
        changes=changes,
        review=_review(given, voice, recorder, changes, aside=aside, checkpoints=checkpoints),
        checkpoints=checkpoints,
        gate=gate,
        questions=_questions(given, voice, asking, recorder, gate),
        system_prompt=given.system_prompt,
        prompting=given.sections and Prompting(sections=given.sections, clock=given.clock),
        commands=Commands(given.words, steps=recorder.steps, say=voice.say),
        reloads=list(given.reloads),
        options=given.options,
    )
    return replace(
        parts,
        trusting=_trusting(given, parts),
        servers=build_servers(given.servers, parts, wants=given.wants_tool),
        settings=_settings(given, parts),
    )


def _recorder(given: Ingredients, voice: Voice, transcript: Transcript) -> Recorder:
    return Recorder(
        given.opened.log,
        transcript,
        clock=given.clock,
        news=DiskNews(voice),
        durability=given.options.durability,
        redactor=given.redactor,
    )


def _inbox(given: Ingredients, models: ModelChoice) -> Inbox:
    return Inbox(
        steering=given.steering,
        follow_up=given.follow_up,
        may_go=lambda item: item.custom is not None or sees(models, item.content),
    )


def _models(given: Ingredients) -> ModelChoice:
    return ModelChoice(
        given.source,
        model=given.model,
        thinking=given.thinking,
        why_none=given.why_no_model,
        look_again=given.look_again,
        scoped=given.scoped_models,
        unwritten=given.asked_for,
    )


def _review(
    given: Ingredients,
    voice: Voice,
    recorder: Recorder,
    changes: ChangeRecord,
    *,
    aside: Aside,
    checkpoints: Checkpoints,
) -> Review:
    return build_review(
        changes,
        recorder,
        aside,
        given.place,
        clock=given.clock,
        say=voice.say,
        checkpoint=checkpoints.before_reverting,
    )


def _checkpoints(
    given: Ingredients, voice: Voice, recorder: Recorder, changes: ChangeRecord
) -> Checkpoints:
    checkpoints = Checkpoints(
        changes.log,
        contents=given.contents,
        recorder=recorder,
        clock=given.clock,
        new_id=lambda: uuid7(given.clock.now_ms()),
        say=voice.say,
        current_run=lambda: voice.picture.activity.run,
        known=checkpoints_of(recorder.transcript.entries),
    )
    changes.before_change = checkpoints.before
    return checkpoints


def _aside(recorder: Recorder, work: Callable[[], Coroutine[object, None, None]]) -> None:
    """Begin something that nobody waits for; nothing is begun while the session is not open."""
    if recorder.steps.group is not None:
        recorder.steps.group.start_soon(work)


def _gate(
    given: Ingredients, voice: Voice, asking: PromptTeller, recorder: Recorder, toolbox: Toolbox
) -> Gate:
    return Gate(
        standing=given.place.standing,
        desk=Desk(clock=given.clock, recorder=recorder, voice=asking),
        around=Surroundings(
            session=given.opened.log.header.id,
            workspace=given.place.workspace,
            clock=given.clock,
            new_id=lambda: uuid7(given.clock.now_ms()),
            item_of=voice.picture.item_of,
            say=voice.say,
            settings_of=partial(tool_options, given.options),
            server_of=toolbox.server_of,
        ),
        secrets=given.place.secrets,
    )


def _questions(
    given: Ingredients, voice: Voice, asking: PromptTeller, recorder: Recorder, gate: Gate
) -> Questions:
    questions = Questions(
        session=given.opened.log.header.id,
        clock=given.clock,
        recorder=recorder,
        voice=asking,
        standing=given.place.standing,
    )
    voice.is_asked = lambda: bool(gate.desk.pending) or questions.holds_up
    return questions


def _settings(given: Ingredients, parts: Parts) -> FollowedSettings | None:
    if given.settings is None:
        return None
    followed = FollowedSettings(live=given.settings, parts=parts)
    # First: what is read beside them may depend on them.
    parts.reloads.insert(0, followed)
    return followed


def _brought(given: Ingredients) -> Sequence[Tool]:
    return () if given.extensions is None else given.extensions.tools


def _trusting(given: Ingredients, parts: Parts) -> Trusting | None:
    if given.trust is None:
        return None
    standing = given.place.standing
    trusting = Trusting(
        session=given.opened.log.header.id,
        trust=given.trust,
        standing=standing,
        desk=parts.gate.desk,
        clock=given.clock,
        new_id=parts.new_id,
        say=parts.voice.say,
        apply=partial(_apply_trust, given, parts),
        is_trusted=standing.is_trusted(),
    )
    standing.is_trusted = lambda: trusting.is_trusted
    return trusting


async def _apply_trust(given: Ingredients, parts: Parts) -> None:
    """Apply a change of trust to settings, rules and extensions; publish the session configuration if it changed."""
    standing = given.place.standing
    before = parts.config()
    if given.settings is not None:
        is_trusted = standing.is_trusted()
        await given.settings.apply(given.options, given.place, is_trusted=is_trusted)
    if (after := parts.config()) != before:
        _ = parts.voice.say(SessionConfigured(config=after))
    _ = await standing.refresh()
    if given.extensions is not None:
        await given.extensions.reload_and_tell()
