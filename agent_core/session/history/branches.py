"""Goes from one branch of a session to another, and makes new sessions of its branches."""

from collections.abc import Callable, Sequence
from functools import partial

from anyio import to_thread

from agent_core.compaction.branch_summary import (
    BranchSummary,
    branch_prompt,
    branch_summary,
)
from agent_core.compaction.compactor import Summariser
from agent_core.events import (
    EntryLabelled,
    LeafMoved,
    ModelChanged,
    Notice,
    SessionConfigured,
    SessionUsage,
    ThinkingLevel,
)
from agent_core.hooks import TreeNavigated
from agent_core.kernel import EntryId, SessionId, new_entry_id
from agent_core.kernel.errors import EntryUnknown, ForkRefused, SessionBusy
from agent_core.kernel.shield import uncancelled
from agent_core.kernel.values import Value
from agent_core.messages import UserMessage, text_of
from agent_core.providers.messages.thinking_level import LEVELS
from agent_core.session.context import SessionContext
from agent_core.session.history.compaction_events import SummaryRetry, tracked_spending
from agent_core.session.history.entries import (
    LEAF,
    EntryFactory,
    branch_summary_entry,
    label_before_entry,
    label_entry,
    leaf_entry,
    name_entry,
)
from agent_core.session.history.fork import fork_entries, labels_of
from agent_core.session.history.tree_hooks import (
    SummaryWish,
    TreeMove,
    ask_navigation_hooks,
    branch_left,
    check_fork,
    notify_fork,
    notify_move,
)
from agent_core.session.history.tree_nodes import kind_of, role_of, shown_from
from agent_core.session.model_hooks import SelectedModel
from agent_core.session.runs.recovered_state import recover_state, tools_of
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot
from agent_core.storage.session_start import begins_session
from agent_core.transcript import Transcript, build_context
from agent_core.transcript.entries import (
    AnyEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    MessageEntry,
)


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


class Branches:
    """Moves the leaf while nothing else goes on, and copies branches."""

    def __init__(
        self, parts: SessionContext, runs: ActivitySlot, *, go_on: Callable[[], None]
    ) -> None:
        self._parts = parts
        self._runs = runs
        self._go_on = go_on

    @property
    def leaf(self) -> EntryId | None:
        """The last entry of the present branch that the tree shows."""
        transcript = self._parts.recorder.transcript
        return shown_from(transcript, transcript.leaf)

    def get_entry(self, entry: EntryId) -> AnyEntry:
        """Return an entry.

        Raises:
            EntryUnknown: There is none of that id.
        """
        found = self._parts.recorder.transcript.get(entry)
        if found is None:
            message = f"the session has no entry {entry!r}; look at its tree for those that it has"
            raise EntryUnknown(message)
        return found

    async def fork(self, target: EntryId, *, title: str | None = None) -> Forked:
        """Make a session of everything before a message of the user."""
        self.check_idle("forked")
        entry = self.get_entry(target)
        if role_of(entry) != "user":
            message = (
                f"a session is forked at a message of the user, and entry {target!r} is "
                f"{_called(entry)}; choose the message before it, or clone the whole branch"
            )
            raise ForkRefused(message)
        await check_fork(self._parts.hooks, target)
        self.check_idle("forked")
        parent = self._parent_of(entry)
        path = () if parent is None else self._parts.recorder.transcript.path(parent)
        return await self._write_fork(path, text=await self._text_of(entry) or "", title=title)

    async def clone(self, *, title: str | None = None) -> Forked:
        """Make a session of the present branch."""
        self.check_idle("cloned")
        path = self._parts.recorder.path()
        if not any(role_of(entry) in {"user", "assistant"} for entry in path):
            message = "nothing has been said on this branch, so there is nothing to clone"
            raise ForkRefused(message)
        await check_fork(self._parts.hooks, None)
        self.check_idle("cloned")
        return await self._write_fork(self._parts.recorder.path(), text="", title=title)

    async def navigate(
        self, target: EntryId, *, wish: SummaryWish | None, label: str | None
    ) -> Navigated:
        """Go on from another entry; the session is held until that is done."""
        entry = self.get_entry(target)
        self.check_idle("moved to another branch")
        if target in {self._parts.recorder.transcript.leaf, self.leaf}:
            return self._stayed()
        if wish is not None:
            _ = self._parts.models.required()
        activity = self._runs.reserve("navigation", None)
        ended: list[Navigated] = []

        async def work() -> None:
            move = await ask_navigation_hooks(
                self._parts, TreeMove(target=target, wish=wish, label=label), left=self.leaf
            )
            if move is None:
                return
            before, left = SelectedModel.of(self._parts.models), self.leaf
            text = await self._text_of(entry)
            place = target if text is None else self._parent_of(entry)
            summary = move.given or await self._summary(activity, entry, move.wish)
            if not activity.abandoned:
                step = self._arrive(place, summary=summary, target=target, label=move.label)
                await uncancelled(step)
                summary_text = None if summary is None else summary.summary
                ended.append(Navigated(leaf=self.leaf, editor_text=text, summary=summary_text))
                navigated = TreeNavigated(
                    new_leaf=self.leaf,
                    old_leaf=left,
                    summary=summary_text,
                    from_hook=move.given is not None,
                )
                await notify_move(self._parts, navigated, before)

        try:
            await self._runs.execute(activity, work, self._go_on)
        except BaseException:
            # Words that were prompted meanwhile are said also when the move came to nothing.
            self._go_on()
            raise
        return ended[0] if ended else self._stayed(cancelled=True)

    async def return_to(self, place: EntryId | None) -> str | None:
        """Go on from behind an entry, None from the beginning, in an activity of the caller's; gives the words that followed it.

        Raises:
            StorageError: It cannot be written; nothing has moved.
        """
        path = self._parts.recorder.path()
        behind = next((at + 1 for at, one in enumerate(path) if one.id == place), 0)
        said = next((one for one in path[behind:] if role_of(one) == "user"), None)
        text = None if said is None else await self._text_of(said)
        await uncancelled(
            self._arrive(place, summary=None, target=place or EntryId(""), label=None)
        )
        return text

    async def _summary(
        self, activity: Activity, target: AnyEntry, wish: SummaryWish | None
    ) -> BranchSummary | None:
        """Summarise the branch that is left; None: no summary was requested, or there is nothing to summarise."""
        parts = self._parts
        prepared = None if wish is None else branch_left(parts, target.id)
        if wish is None or prepared is None:
            return None
        model = parts.models.required()
        parts.publisher.set_state("compacting")
        try:
            async with tracked_spending(parts, "branchSummary") as spending:
                scribe = Summariser(
                    model,
                    thinking=parts.models.thinking if model.facts.reasoning else "off",
                    patience=SummaryRetry(parts, activity),
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
                parts.publisher.set_state("idle")
        return branch_summary(notes, prepared, usage=spending.usage)

    async def _arrive(
        self,
        place: EntryId | None,
        *,
        summary: BranchSummary | None,
        target: EntryId,
        label: str | None,
    ) -> None:
        """Move, write where to, and tell it; when it cannot be written, everything is as before."""
        recorder = self._parts.recorder
        left, shown = recorder.transcript.leaf, self.leaf
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
            self._publish_move(shown, summary)
        if label is not None:
            entry = target if summary is None else written
            _ = self._parts.publisher.publish(EntryLabelled(entry=entry, label=label))

    def _publish_move(self, left: EntryId | None, summary: BranchSummary | None) -> None:
        parts = self._parts
        if summary is not None and summary.usage is not None:
            parts.tally.spent(summary.usage)
        parts.seen.clear()
        _ = parts.publisher.publish(LeafMoved(leaf=self.leaf, from_=left))
        self._take_up_choice()
        parts.tally.moved(recover_state(parts.recorder.path()).context_used)
        usage = parts.tally.of_session(parts.models.context_window)
        _ = parts.publisher.publish(SessionUsage(usage=usage))

    def _take_up_choice(self) -> None:
        """Restore the model, thinking level and tools of the branch, as far as they are available."""
        parts, models = self._parts, self._parts.models
        before, tools = (models.ref, models.thinking), parts.toolbox.active_names
        context = build_context(parts.recorder.path())
        if context.model not in {None, models.ref} and not models.take_up(context.model or ""):
            text = f"this branch was with {context.model}, which cannot be used now; {models.ref} goes on"
            _ = parts.publisher.publish(Notice(level="warning", text=text))
        models.thinking = _supported_level(context.thinking) or models.thinking
        missing = parts.toolbox.take_up(tools_of(parts.recorder.path()))
        if missing:
            text = f"this branch was with tools that are not there now: {', '.join(missing)}"
            _ = parts.publisher.publish(Notice(level="warning", text=text))
        if before != (models.ref, models.thinking):
            changed = ModelChanged(
                model=models.ref or "", thinking=models.thinking, source="restore"
            )
            _ = parts.publisher.publish(changed)
        if (*before, tools) != (models.ref, models.thinking, parts.toolbox.active_names):
            _ = parts.publisher.publish(SessionConfigured(config=parts.config()))

    async def _write_fork(
        self, path: Sequence[AnyEntry], *, text: str, title: str | None
    ) -> Forked:
        parts = self._parts
        whole = await parts.recorder.load(path)
        labels = labels_of(parts.recorder.transcript.entries)
        entries = await to_thread.run_sync(partial(fork_entries, whole, labels=labels))
        if not begins_session(entries):
            await notify_fork(parts.hooks, None, None)
            return Forked(session=None, text=text, location=None)
        header = Header(
            id=SessionId(parts.new_id()),
            at_ms=parts.clock.now_ms(),
            cwd=str(parts.place.workspace.root),
            parent_session=parts.recorder.location or parts.session,
        )
        if title is not None:
            entries = (*entries, _named(entries, title, at_ms=header.at_ms))
        location = await parts.fork_writer(header, entries)
        await notify_fork(parts.hooks, header.id, location)
        return Forked(session=header.id, text=text, location=location)

    async def _text_of(self, entry: AnyEntry) -> str | None:
        """Return the words that go back to the editor; None: the entry is none that people or programs said."""
        if role_of(entry) != "user" and kind_of(entry) != "custom_message":
            return None
        (whole,) = await self._parts.recorder.load((entry,))
        match whole:
            case (
                MessageEntry(message=UserMessage(content=content))
                | CustomMessageEntry(content=content)
            ):
                return text_of(content)
            case _:
                return None

    def _parent_of(self, entry: AnyEntry) -> EntryId | None:
        path = self._parts.recorder.transcript.path(entry.id)
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

    def _stayed(self, *, cancelled: bool = False) -> Navigated:
        return Navigated(leaf=self.leaf, editor_text=None, summary=None, cancelled=cancelled)


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
