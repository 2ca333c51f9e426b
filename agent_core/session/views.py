"""The named views of a session: its models, its tools, and what can be known of it."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from agent_core.events import (
    Budgets,
    ModelChanged,
    PermissionMode,
    QueueMode,
    SessionConfig,
    SessionConfigured,
    ThinkingLevel,
)
from agent_core.kernel import RunId
from agent_core.messages import AssistantMessage, Message
from agent_core.providers import Model, ModelInfo
from agent_core.providers.catalog.provider_state import ProviderState
from agent_core.providers.catalog.references import Named
from agent_core.session.changes.user_edits import UserEdits
from agent_core.session.context import SessionContext, refresh_models
from agent_core.session.event_view import EventsView
from agent_core.session.history.entries import model_entry, thinking_entry, tools_entry
from agent_core.session.input.queue_events import hold_images
from agent_core.session.model_hooks import SelectedModel, notify_model_change
from agent_core.session.model_selection import CycleDirection, Servers
from agent_core.session.runs.budgets import check_tighter
from agent_core.session.runs.slot import ActivitySlot
from agent_core.session.snapshot import SessionSnapshot
from agent_core.session.stats import ContextUsage, SessionStats, session_stats
from agent_core.storage.session_start import begins_session
from agent_core.tools import Tool
from agent_core.transcript.entries import AnyEntry, MessageEntry

_Source: TypeAlias = Literal["set", "cycle"]


class ModelView:
    """The choice of model and thinking level; changes count from the next request."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    @property
    def current(self) -> ModelInfo | None:
        """The model in force; None: there is none."""
        model = self._parts.models.model
        return model.facts if model else None

    @property
    def thinking(self) -> ThinkingLevel:
        """The level wished for; when the model has no such level, each request takes the nearest that it has."""
        return self._parts.models.thinking

    def available(self) -> tuple[ModelInfo, ...]:
        """List every model that can be asked."""
        return self._parts.models.available()

    def all_models(self) -> tuple[ModelInfo, ...]:
        """List every model there is, those of extensions too, and also those that cannot be asked."""
        return self._parts.models.all_models()

    def providers(self) -> Mapping[str, ProviderState]:
        """Return the providers by id, those of extensions too, and whether they can be asked; `refresh` reads that anew."""
        return self._parts.models.providers()

    async def refresh(self, *, servers: Servers = "keep") -> None:
        """Read models.json and what the user has logged in to again; a model that can be used only now is told.

        Args:
            servers: `find` asks the model servers of this machine what they have, too.
        """
        await refresh_models(self._parts, servers=servers)

    def scoped(self) -> tuple[Named, ...]:
        """List the models that `cycle` goes through: the `scopedModels` of the settings, else all that have a key."""
        return self._parts.models.scoped().models

    async def choose(self, ref: str) -> ModelInfo:
        """Choose a model as people name one: `provider/id`, an id, a pattern or a part of it.

        A thinking level behind a colon (`anthropic/claude-x:high`) is chosen with it; without one the level stays.

        Raises:
            ModelUnknown: No such model, or no credentials for it; the choice stays.
        """
        before = self._now()
        return await self._changed(self._parts.models.choose(ref), before=before, source="set")

    async def cycle(self, direction: CycleDirection = "forward") -> ModelInfo | None:
        """Choose the next of the scoped models, round and round; None: there is no other, and nothing changed.

        A level in the scoped name is chosen with it.

        Raises:
            ModelUnknown: Its credentials are gone; the choice stays.
        """
        before = self._now()
        model = self._parts.models.cycle(direction)
        if model is None:
            return None
        return await self._changed(model, before=before, source="cycle")

    async def think(self, level: ThinkingLevel) -> None:
        """Choose how hard the model thinks."""
        if level == self.thinking:
            return
        before = self._now()
        self._parts.models.thinking = level
        await self._thinks(level, before=before, source="set")

    async def cycle_thinking(self) -> ThinkingLevel | None:
        """Choose the next level that the model has, round and round; None: there is no other, and nothing changed."""
        before = self._now()
        level = self._parts.models.cycle_thinking()
        if level is not None:
            await self._thinks(level, before=before, source="cycle")
        return level

    def _now(self) -> SelectedModel:
        return SelectedModel.of(self._parts.models)

    async def _changed(self, model: Model, *, before: SelectedModel, source: _Source) -> ModelInfo:
        """Write and tell a choice that is in force already: the model, and the level if it is another."""
        facts, level = model.facts, self.thinking
        drafts = [model_entry(facts.provider, facts.id)]
        if level != before.thinking:
            drafts.append(thinking_entry(level))
        _ = await self._parts.recorder.keep(*drafts)
        self._publish_choice(facts.ref, level, source=source)
        hold_images(self._parts)
        await notify_model_change(self._parts.hooks, before, self._now(), source=source)
        return facts

    async def _thinks(
        self, level: ThinkingLevel, *, before: SelectedModel, source: _Source
    ) -> None:
        ref = self._parts.models.ref or ""
        _ = await self._parts.recorder.keep(thinking_entry(level))
        self._publish_choice(ref, level, source=source)
        await notify_model_change(self._parts.hooks, before, self._now(), source=source)

    def _publish_choice(self, ref: str, level: ThinkingLevel, *, source: _Source) -> None:
        publisher = self._parts.publisher
        _ = publisher.publish(ModelChanged(model=ref, thinking=level, source=source))
        _ = publisher.publish(SessionConfigured(config=self._parts.config()))


class ToolView:
    """The tools of a session; changes count from the next request."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the tools that the model sees."""
        return self._parts.toolbox.active_names

    @property
    def all(self) -> tuple[str, ...]:
        """Names of all tools there are."""
        return self._parts.toolbox.all_names

    async def activate(self, names: str | Sequence[str]) -> None:
        """Choose the active tools: a preset, names, or `+name` and `-name`.

        The session has them again when it is opened the next time, as far as they are there then.

        Raises:
            ToolSetInvalid: Empty or unknown; the set stays.
        """
        before = self.active
        self._parts.toolbox.activate(names)
        if self.active != before:
            _ = await self._parts.recorder.keep(tools_entry(self.active))
        self._publish_config()

    def register(self, tool: Tool) -> None:
        """Add a tool and activate it.

        Raises:
            ToolSetInvalid: The name is taken.
        """
        self._parts.toolbox.register(tool)
        self._publish_config()

    def _publish_config(self) -> None:
        _ = self._parts.publisher.publish(SessionConfigured(config=self._parts.config()))


class SessionView:  # noqa: PLR0904 - what can be known of a session is one view
    """State of a session, and its switches."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot) -> None:
        self._parts = parts
        self._runs = runs

    @property
    def events(self) -> EventsView:
        """The events, for who keeps them."""
        return EventsView(self._parts)

    @property
    def edits(self) -> UserEdits:
        """Where editors tell what their users made of the agent's edits."""
        return UserEdits(self._parts)

    @property
    def config(self) -> SessionConfig:
        """Configuration in force for the next request."""
        return self._parts.config()

    @property
    def allowed_mode(self) -> PermissionMode:
        """The most that the user's own settings allow."""
        return self._parts.place.allowed

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it."""
        return self._parts.recorder.context()

    @property
    def entries(self) -> tuple[AnyEntry, ...]:
        """The entries of the current branch."""
        return self._parts.recorder.path()

    @property
    def location(self) -> str | None:
        """The session's file; None in memory, or before anything was said."""
        return self._parts.recorder.location

    @property
    def is_stored(self) -> bool:
        """Return whether a file holds the session as it is: something was said, and the disk took all of it."""
        recorder = self._parts.recorder
        if recorder.location is None or recorder.unsaved:
            return False
        return begins_session(recorder.path())

    @property
    def root(self) -> str:
        """The folder it works in."""
        return str(self._parts.place.workspace.root)

    def is_running(self, run: RunId) -> bool:
        """Return whether a run is still going on."""
        current = self._runs.current
        return current is not None and current.run == run

    def snapshot(self) -> SessionSnapshot:
        """Return the picture of this moment; events after its `seq` continue it without a hole."""
        parts = self._parts
        publisher = parts.publisher
        return SessionSnapshot(
            session=parts.session,
            seq=publisher.feed.seq,
            state=publisher.state,
            activity=publisher.picture.activity,
            title=parts.recorder.transcript.title,
            run=publisher.picture.run,
            queue=parts.inbox.items(),
            paused=parts.inbox.paused,
            pending=(*parts.gate.prompts.pending, *parts.questions.pending),
            sandbox=parts.place.permissions.containment(),
            config=parts.config(),
            usage=parts.tally.of_session(parts.models.context_window),
            changes=publisher.picture.changes,
            views=publisher.picture.views.all,
            checkpoints=tuple(one.id for one in parts.checkpoints.all),
            unsaved=parts.recorder.unsaved,
        )

    def stats(self) -> SessionStats:
        """Count all that the session holds and has cost, branches that were left included."""
        recorder = self._parts.recorder
        return session_stats(recorder.transcript.entries, file=recorder.location)

    def context_usage(self) -> ContextUsage:
        """Return how full the model's context window is."""
        report = self._parts.tally.of_session(self._parts.models.context_window)
        return ContextUsage(used=report.context_used, size=report.context_size)

    def last_answer(self) -> str | None:
        """Return the words of the newest answer that is more than an abort; None: there are none."""
        for entry in reversed(self._parts.recorder.path()):
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
        parts = self._parts
        if budgets is not None:
            check_tighter(parts.place.allowance.ceiling, budgets)
            parts.place.allowance.requested = budgets
        if mode is not None:
            parts.place.permissions.mode = mode
        if auto_compact is not None:
            parts.options.auto_compact = auto_compact
        if steering is not None:
            parts.inbox.steering_mode = steering
        if follow_up is not None:
            parts.inbox.follow_up_mode = follow_up
        config = parts.config()
        _ = parts.publisher.publish(SessionConfigured(config=config))
        return config
