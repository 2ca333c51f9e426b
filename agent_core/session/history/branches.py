"""Goes from one branch of a session to another, and makes new sessions of its branches."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agent_core.compaction.compactor import Summariser
from agent_core.compaction.prompts import (
    BranchPreparation,
    BranchSummary,
    branch_prompt,
    branch_summary,
)
from agent_core.events import (
    EntryLabelled,
    LeafMoved,
    ModelChanged,
    Notice,
    SessionUsage,
    ThinkingLevel,
)
from agent_core.hooks import HookRunner, SessionForked, TreeNavigated
from agent_core.kernel import EntryId, SessionId, new_entry_id
from agent_core.kernel.errors import EntryUnknown, ForkRefused, SessionBusy
from agent_core.kernel.threads import run_in_thread, uncancelled
from agent_core.kernel.values import Value
from agent_core.messages import UserMessage, text_of
from agent_core.providers.messages.request_options import LEVELS
from agent_core.session.config import ActiveConfig
from agent_core.session.context import SessionOptions, SessionServices
from agent_core.session.history.compaction import SummaryRetry, SummarySpending
from agent_core.session.history.entries import (
    LEAF,
    EntryFactory,
    ForkWriter,
    branch_summary_entry,
    fork_entries,
    kind_of,
    label_before_entry,
    label_entry,
    labels_of,
    leaf_entry,
    name_entry,
    role_of,
    shown_from,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.history.tree_hooks import (
    NavigationHooks,
    SummaryWish,
    TreeMove,
    branch_left,
    check_fork,
)
from agent_core.session.model_selection import ModelSelection, SelectedModel
from agent_core.session.runs.executor import RunStarter
from agent_core.session.runs.recovered_state import recover_state, tools_of
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot
from agent_core.session.runs.usage import UsageTracker
from agent_core.session.tools.registry import ToolRegistry
from agent_core.storage.port import SessionStore, begins_session
from agent_core.tools.port import ReadCache
from agent_core.transcript import Transcript, build_context
from agent_core.transcript.entries import (
    AnyEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    MessageEntry,
)


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


class Forked(Value, frozen=True, kw_only=True):
    """A new session that is a copy of a part of this one. It is stored and closed; a client opens it on demand."""

    session: SessionId | None
    """None: nothing was said before the entry, so there is nothing to keep; begin a new session."""
    text: str
    """The words of the user's message before which it ends, for the editor; empty after `clone`."""
    location: str | None
    """The new session's file; None in memory."""


class Navigated(Value, frozen=True, kw_only=True):
    """Where the conversation goes on now."""

    leaf: EntryId | None
    """As the tree shows it; None: at the very beginning."""
    editor_text: str | None
    """The words of the message that was gone to: they can be said anew in another way."""
    summary: str | None
    """Summary of the branch that was left; None: there is none."""
    cancelled: bool = False
    """The summary was stopped, so nothing moved."""


class BranchTree:
    """Reads the tree of a session, and checks that nothing goes on before it is changed."""

    def __init__(self, recorder: Recorder, runs: ActivitySlot) -> None:
        self._recorder = recorder
        self._runs = runs

    @property
    def leaf(self) -> EntryId | None:
        """The last entry of the present branch that the tree shows."""
        transcript = self._recorder.transcript
        return shown_from(transcript, transcript.leaf)

    def get_entry(self, entry: EntryId) -> AnyEntry:
        """Return an entry.

        Raises:
            EntryUnknown: There is none of that id.
        """
        found = self._recorder.transcript.get(entry)
        if found is None:
            message = f"the session has no entry {entry!r}; look at its tree for those that it has"
            raise EntryUnknown(message)
        return found

    async def prompt_text(self, entry: AnyEntry) -> str | None:
        """Return the words that go back to the editor; None: the entry is none that people or programs said."""
        if role_of(entry) != "user" and kind_of(entry) != "custom_message":
            return None
        (whole,) = await self._recorder.load((entry,))
        match whole:
            case (
                MessageEntry(message=UserMessage(content=content))
                | CustomMessageEntry(content=content)
            ):
                return text_of(content)
            case _:
                return None

    def parent_of(self, entry: AnyEntry) -> EntryId | None:
        """Return the entry before another one; None: it is the first."""
        path = self._recorder.transcript.path(entry.id)
        return path[-2].id if len(path) > 1 else None

    def check_idle(self, done: str) -> None:
        """Refuse while something goes on.

        Raises:
            SessionBusy: Something does.
        """
        current = self._runs.current
        if current is not None:
            message = f"{TITLES[current.kind]} is going on; the session can be {done} when it is over, or cancel it"
            raise SessionBusy(message)


class Forks:
    """Copies branches to new sessions."""

    def __init__(
        self,
        services: SessionServices,
        tree: BranchTree,
        *,
        recorder: Recorder,
        hooks: HookRunner,
        root: Path,
        writer: ForkWriter,
    ) -> None:
        self._services = services
        self._tree = tree
        self._recorder = recorder
        self._hooks = hooks
        self._root = root
        self._writer = writer

    async def fork(self, target: EntryId, *, title: str | None = None) -> Forked:
        """Make a session of everything before a message of the user."""
        self._tree.check_idle("forked")
        entry = self._tree.get_entry(target)
        if role_of(entry) != "user":
            message = (
                f"a session is forked at a message of the user, and entry {target!r} is "
                f"{_called(entry)}; choose the message before it, or clone the whole branch"
            )
            raise ForkRefused(message)
        await check_fork(self._hooks, target)
        self._tree.check_idle("forked")
        parent = self._tree.parent_of(entry)
        path = () if parent is None else self._recorder.transcript.path(parent)
        return await self._write_fork(
            path, text=await self._tree.prompt_text(entry) or "", title=title
        )

    async def clone(self, *, title: str | None = None) -> Forked:
        """Make a session of the present branch."""
        self._tree.check_idle("cloned")
        path = self._recorder.path()
        if not any(role_of(entry) in {"user", "assistant"} for entry in path):
            message = "nothing has been said on this branch, so there is nothing to clone"
            raise ForkRefused(message)
        await check_fork(self._hooks, None)
        self._tree.check_idle("cloned")
        return await self._write_fork(self._recorder.path(), text="", title=title)

    async def _write_fork(
        self, path: Sequence[AnyEntry], *, text: str, title: str | None
    ) -> Forked:
        whole = await self._recorder.load(path)
        labels = labels_of(self._recorder.transcript.entries)
        entries = await run_in_thread(partial(fork_entries, whole, labels=labels))
        if not begins_session(entries):
            await self._notify_fork(None, None)
            return Forked(session=None, text=text, location=None)
        header = Header(
            id=SessionId(self._services.new_id()),
            at_ms=self._services.clock.now_ms(),
            cwd=str(self._root),
            parent_session=self._recorder.location or self._services.session,
        )
        if title is not None:
            entries = (*entries, _named(entries, title, at_ms=header.at_ms))
        location = await self._writer(header, entries)
        await self._notify_fork(header.id, location)
        return Forked(session=header.id, text=text, location=location)

    async def _notify_fork(self, session: SessionId | None, location: str | None) -> None:
        forked = SessionForked(
            session=session,
            location=location,
            previous=self._services.session,
            previous_location=self._recorder.location,
        )
        _ = await self._hooks.ask(forked)


class BranchSummaries:
    """Summarises branches that are left."""

    def __init__(
        self,
        services: SessionServices,
        *,
        models: ModelSelection,
        options: SessionOptions,
        recorder: Recorder,
        usage: UsageTracker,
    ) -> None:
        self._services = services
        self._models = models
        self._options = options
        self._recorder = recorder
        self._spending = SummarySpending(
            publisher=services.publisher, models=models, recorder=recorder, usage=usage
        )

    async def summarise(
        self, activity: Activity, target: AnyEntry, wish: SummaryWish | None
    ) -> BranchSummary | None:
        """Summarise the branch that is left; None: no summary was requested, or there is nothing to summarise."""
        prepared = None if wish is None else self._left(target.id)
        if wish is None or prepared is None:
            return None
        model = self._models.required()
        self._services.publisher.set_state("compacting")
        try:
            async with self._spending.tracked("branchSummary") as spending:
                scribe = Summariser(
                    model,
                    thinking=self._models.thinking if model.facts.reasoning else "off",
                    patience=SummaryRetry(self._services, self._options, activity),
                    spending=spending,
                )
                notes = await scribe.notes(
                    prepared.messages,
                    lambda text: branch_prompt(
                        text, instructions=wish.instructions, replaces=wish.replaces
                    ),
                )
        finally:
            if not activity.abandoned:
                self._services.publisher.set_state("idle")
        return branch_summary(notes, prepared, usage=spending.usage)

    def _left(self, target: EntryId) -> BranchPreparation | None:
        return branch_left(self._recorder, self._models, self._options, target)


class BranchState:
    """Restores the state of a branch to which the conversation has moved."""

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        models: ModelSelection,
        toolbox: ToolRegistry,
        usage: UsageTracker,
        config: ActiveConfig,
        seen: ReadCache,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._models = models
        self._toolbox = toolbox
        self._usage = usage
        self._config = config
        self._seen = seen

    def restore(
        self, leaf: EntryId | None, *, left: EntryId | None, summary: BranchSummary | None
    ) -> None:
        """Publish a move, and restore the choices of the branch.

        Args:
            leaf: The leaf now, as the tree shows it.
            left: The leaf before.
            summary: Summary of the branch that was left.
        """
        if summary is not None and summary.usage is not None:
            self._usage.spent(summary.usage)
        self._seen.clear()
        self._services.publish(LeafMoved(leaf=leaf, from_=left))
        self._take_up_choice()
        self._usage.moved(recover_state(self._recorder.path()).context_used)
        usage = self._usage.of_session()
        self._services.publish(SessionUsage(usage=usage))

    def _take_up_choice(self) -> None:
        """Restore the model, thinking level and tools of the branch, as far as they are available."""
        models = self._models
        before, tools = (models.ref, models.thinking), self._toolbox.active_names
        context = build_context(self._recorder.path())
        if context.model not in {None, models.ref} and not models.take_up(context.model or ""):
            text = f"this branch was with {context.model}, which cannot be used now; {models.ref} goes on"
            self._services.publish(Notice(level="warning", text=text))
        models.thinking = _supported_level(context.thinking) or models.thinking
        missing = self._toolbox.take_up(tools_of(self._recorder.path()))
        if missing:
            text = f"this branch was with tools that are not there now: {', '.join(missing)}"
            self._services.publish(Notice(level="warning", text=text))
        if before != (models.ref, models.thinking):
            changed = ModelChanged(
                model=models.ref or "", thinking=models.thinking, source="restore"
            )
            self._services.publish(changed)
        if (*before, tools) != (models.ref, models.thinking, self._toolbox.active_names):
            self._config.publish()


class Branches:
    """Moves the leaf while nothing else goes on."""

    def __init__(
        self,
        tree: BranchTree,
        *,
        services: SessionServices,
        recorder: Recorder,
        models: ModelSelection,
        hooks: NavigationHooks,
        summaries: BranchSummaries,
        state: BranchState,
        runs: ActivitySlot,
        starter: RunStarter,
    ) -> None:
        self._tree = tree
        self._services = services
        self._recorder = recorder
        self._models = models
        self._hooks = hooks
        self._summaries = summaries
        self._state = state
        self._runs = runs
        self._starter = starter

    async def navigate(
        self, target: EntryId, *, wish: SummaryWish | None, label: str | None
    ) -> Navigated:
        """Go on from another entry; the session is held until that is done."""
        entry = self._tree.get_entry(target)
        self._tree.check_idle("moved to another branch")
        if target in {self._recorder.transcript.leaf, self._tree.leaf}:
            return self._stayed()
        if wish is not None:
            _ = self._models.required()
        activity = self._runs.reserve("navigation", None)
        navigated: Navigated | None = None
        try:
            async with self._runs.hold(activity):
                move = await self._hooks.ask(
                    TreeMove(target=target, wish=wish, label=label), left=self._tree.leaf
                )
                if move is not None:
                    before, left = SelectedModel.of(self._models), self._tree.leaf
                    text = await self._tree.prompt_text(entry)
                    place = target if text is None else self._tree.parent_of(entry)
                    summary = move.given or await self._summaries.summarise(
                        activity, entry, move.wish
                    )
                    if not activity.abandoned:
                        step = self._arrive(place, summary=summary, target=target, label=move.label)
                        await uncancelled(step)
                        summary_text = None if summary is None else summary.summary
                        navigated = Navigated(
                            leaf=self._tree.leaf, editor_text=text, summary=summary_text
                        )
                        event = TreeNavigated(
                            new_leaf=self._tree.leaf,
                            old_leaf=left,
                            summary=summary_text,
                            from_hook=move.given is not None,
                        )
                        await self._hooks.notify(event, before)
        finally:
            # Prompts that were queued meanwhile are sent also when the move failed.
            self._starter.go_on()
        return navigated or self._stayed(cancelled=True)

    async def return_to(self, place: EntryId | None) -> str | None:
        """Go on from behind an entry, None from the beginning, in an activity of the caller's; gives the words that followed it.

        Raises:
            StorageError: It cannot be written; nothing has moved.
        """
        path = self._recorder.path()
        behind = next((at + 1 for at, one in enumerate(path) if one.id == place), 0)
        said = next((one for one in path[behind:] if role_of(one) == "user"), None)
        text = None if said is None else await self._tree.prompt_text(said)
        await uncancelled(
            self._arrive(place, summary=None, target=place or EntryId(""), label=None)
        )
        return text

    async def _arrive(
        self,
        place: EntryId | None,
        *,
        summary: BranchSummary | None,
        target: EntryId,
        label: str | None,
    ) -> None:
        """Move, write where to, and tell it; when it cannot be written, everything is as before."""
        recorder = self._recorder
        left, shown = recorder.transcript.leaf, self._tree.leaf
        stays = summary is None and _rests_at(recorder.transcript, place)
        drafts = () if stays else (_arrival(summary, left),)
        if label is not None:
            mark = label_entry(target, label) if summary is None else label_before_entry(label)
            drafts = (*drafts, mark)
        if not stays:
            await recorder.move(place)
        try:
            written = await recorder.accept(*drafts) if drafts else target
        except BaseException:
            await recorder.move(left)
            raise
        if not stays:
            self._state.restore(self._tree.leaf, left=shown, summary=summary)
        if label is not None:
            entry = target if summary is None else written
            self._services.publish(EntryLabelled(entry=entry, label=label))

    def _stayed(self, *, cancelled: bool = False) -> Navigated:
        return Navigated(leaf=self._tree.leaf, editor_text=None, summary=None, cancelled=cancelled)


def _named(entries: Sequence[AnyEntry], title: str, *, at_ms: int) -> AnyEntry:
    """Return the entry that names a new session, behind the others."""
    entry = new_entry_id({one.id for one in entries}, at_ms=at_ms)
    return name_entry(" ".join(title.split()))(entry, entries[-1].id, at_ms)


def _supported_level(level: str | None) -> ThinkingLevel | None:
    """A session of a later version may have a level that this one has not."""
    return next((one for one in LEVELS if one == level), None)


def _arrival(summary: BranchSummary | None, left: EntryId | None) -> EntryFactory:
    return leaf_entry(left) if summary is None else branch_summary_entry(summary, left=left)


def _called(entry: AnyEntry) -> str:
    names = {
        "assistant": "an answer of the model",
        "toolResult": "the result of a tool",
        "bashExecution": "a command that the user ran",
        "custom_message": "a message of a program",
        "compaction": "a summary of older messages",
        "branch_summary": "a summary of another branch",
    }
    return names.get(role_of(entry) or kind_of(entry) or "", "none of the conversation")


def _rests_at(transcript: Transcript, place: EntryId | None) -> bool:
    if transcript.leaf == place:
        return True
    last = None if transcript.leaf is None else transcript.get(transcript.leaf)
    return isinstance(last, CustomEntry) and last.custom_type == LEAF and last.parent == place
