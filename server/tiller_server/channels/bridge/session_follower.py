"""Reads the events of a session from where it stopped, and stores what they mean for its chat."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
import msgspec

from agent_core.channels.messaging.delivery.sender import OutboxSender
from agent_core.channels.messaging.store import approvals, bindings, inbox
from agent_core.channels.messaging.store.approvals import StoredApproval
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import Transaction
from agent_core.channels.messaging.store.inbox import InboxRow
from agent_core.events import (
    Event,
    MessageDelta,
    MessageEnded,
    PermissionRequest,
    Question,
    ToolEnded,
    ToolRunning,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.values import threadsafe
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.agent_client.events import asked_of, event_of
from tiller_server.channels.bridge.approval_prompts import (
    EXPIRED,
    WITHDRAWN,
    ApprovalEnd,
    chosen_end,
    permission_draft,
    plan_draft,
    question_drafts,
    question_of,
)
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.run_reader import (
    Effect,
    PlanReady,
    PromptTaken,
    ReaderState,
    Resolved,
    RunFinished,
    RunShown,
    ShownRun,
    consume,
    line_of,
    live_text,
)

FOLLOW_MS: Final = 30 * 60_000
"""How long the events of a session are followed after the last one that matters."""
MOST_ITEMS: Final = 1000
RESOLVED: Final[Mapping[str, ApprovalEnd]] = {
    "timeout": EXPIRED,
    "cancelled": WITHDRAWN,
    "restart": WITHDRAWN,
}
_log = logging.getLogger(__name__)


class SessionFollower:
    """The reader of one session that is bound to a chat."""

    def __init__(
        self, session: str, link: DaemonLink, store: ChatStore, sender: OutboxSender, *, client: str
    ) -> None:
        """Prepare it.

        Args:
            session: Id of the session.
            link: The daemon.
            store: The store of the account.
            sender: Sender of the outbox, which shows running answers.
            client: Name of this client in the events of a session.
        """
        self._session = session
        self._link = link
        self._store = store
        self._sender = sender
        self._client = client
        self._state = ReaderState()
        self._epoch, self._seq, self._read = "", 0, 0
        self._growing = ""
        self._tool = ""
        self._used_ms = store.clock.now_ms()

    async def follow(self) -> bool:
        """Follow the session until nothing is expected of it; return False when it must be followed again.

        Raises:
            AgentRefused: The daemon cannot be reached, or does not have the session.
        """
        before = await self._store.run(lambda tx: inbox.started(tx, self._session))
        snapshot = as_object(
            await self._link.request("agent/session/open", {"session": self._session})
        )
        cursor = await self._store.run(lambda tx: bindings.cursor(tx, self._session))
        seq = _number(snapshot.get("seq"))
        if cursor is None or cursor.epoch != snapshot.get("epoch") or cursor.seq > seq:
            await self._begin_with(snapshot)
        else:
            self._epoch, self._seq = cursor.epoch, cursor.seq
            self._state = state_of(cursor.state)
        self._read = self._seq
        await self._resume_answer()
        return await self._receive(snapshot, seq, before)

    async def _receive(self, snapshot: JsonObject, seq: int, before: Sequence[InboxRow]) -> bool:
        frames: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        must_sweep = True

        async def subscribe() -> None:
            try:
                _ = await self._link.follow(
                    self._session,
                    epoch=self._epoch,
                    after=self._seq,
                    on_frame=lambda _, frame: frames.put_nowait(frame),
                )
            finally:
                frames.put_nowait(None)

        subscription = asyncio.get_running_loop().create_task(subscribe())
        try:
            while True:
                if must_sweep and self._read >= seq:
                    must_sweep = False
                    await self._finish_lost(snapshot, before)
                frame = await frames.get()
                if frame is None:
                    await subscription
                    return False
                if not await self._apply(frame):
                    return False
                if frame.get("kind") == "agent/heartbeat" and await self._is_idle():
                    return True
        finally:
            _ = subscription.cancel()
            with suppress(asyncio.CancelledError, AgentRefused):
                await subscription

    async def _apply(self, frame: JsonObject) -> bool:
        """Store what a frame means; return False when the session must be opened again."""
        kind = frame.get("kind")
        if kind in {"agent/snapshot", "agent/gap"}:
            return False
        events = frame.get("events")
        envelopes = [
            envelope
            for wire in (events if isinstance(events, list) else [])
            if is_object(wire)
            and (envelope := event_of(wire)) is not None
            and envelope.seq > self._seq
        ]
        state, effects, last = self._state, list[Effect](), 0
        for envelope in envelopes:
            self._see(envelope.event)
            if isinstance(envelope.event, MessageDelta):
                continue
            state, more = consume(state, envelope.event)
            effects.extend(more)
            last = envelope.seq
        if effects or state != self._state:
            await self._record(state, effects, seq=max(last, self._seq))
        self._read = max(self._read, _number(frame.get("to")))
        self._show()
        return True

    async def _record(self, state: ReaderState, effects: Sequence[Effect], *, seq: int) -> None:
        epoch, encoded = self._epoch, msgspec.json.encode(state).decode()

        def record(tx: Transaction) -> None:
            bindings.set_cursor(
                tx,
                self._session,
                epoch=epoch,
                seq=seq,
                state=encoded,
                now_ms=self._store.clock.now_ms(),
            )
            bound = bindings.of_session(tx, self._session)
            if bound is not None:
                for effect in effects:
                    self._record_effect(tx, effect, bound)

        await self._store.run(record)
        self._state, self._seq = state, seq
        if effects:
            self._used_ms = self._store.clock.now_ms()

    def _record_effect(self, tx: Transaction, effect: Effect, bound: Binding) -> None:
        match effect:
            case PromptTaken():
                self._record_prompt(tx, effect, bound)
            case RunShown(run=run):
                self._store.open_answer(tx, run, bound)
            case RunFinished():
                self._store.finish_run(tx, effect, bound)
            case PlanReady():
                self._record_plan(tx, effect, bound)
            case Resolved():
                for approval in approvals.lines_of(tx, effect.request):
                    end = _end_of(approval, effect, client=self._client)
                    _ = self._store.settle(tx, approval, end)
            case PermissionRequest():
                draft = permission_draft(
                    effect,
                    workspace=bound.workspace,
                    code=approvals.free_code(tx, effect.request),
                    cleaner=self._store.cleaner,
                )
                self._store.ask(tx, draft, session=self._session, run=effect.run, bound=bound)
            case Question():
                self._record_question(tx, effect, bound)

    def _record_prompt(self, tx: Transaction, effect: PromptTaken, bound: Binding) -> None:
        for row in inbox.by_message_id(tx, effect.message_id):
            inbox.set_started(
                tx, row, binding=bound.id, session=self._session, run=effect.run, queue_id=None
            )
            self._store.react(tx, row, "started")
        inbox.set_run(tx, effect.message_id, effect.run)
        for approval in approvals.open_ones(tx, self._session):
            if approval.kind == "plan":
                changes = ApprovalEnd(label="Changes requested", by=approval.by_name)
                _ = self._store.settle(tx, approval, changes)

    def _record_plan(self, tx: Transaction, effect: PlanReady, bound: Binding) -> None:
        draft = plan_draft(
            run=effect.run,
            markdown=effect.markdown,
            plan_hash=effect.sha256,
            workspace=bound.workspace,
            code=approvals.free_code(tx, f"plan-{effect.run}"),
            cleaner=self._store.cleaner,
        )
        self._store.ask(tx, draft, session=self._session, run=effect.run, bound=bound)

    def _record_question(self, tx: Transaction, question: Question, bound: Binding) -> None:
        codes = [
            approvals.free_code(tx, f"{question.request}#{number}")
            for number in range(len(question.questions))
        ]
        for draft in question_drafts(
            question, workspace=bound.workspace, codes=codes, cleaner=self._store.cleaner
        ):
            self._store.ask(tx, draft, session=self._session, run=question.run, bound=bound)

    def _see(self, event: Event) -> None:
        """Update the growing text."""
        match event:
            case MessageDelta(text=text):
                self._growing += text
            case MessageEnded(role="assistant"):
                self._growing = ""
            case ToolRunning(title=title):
                self._tool = title
            case ToolEnded():
                self._tool = ""
            case _:
                pass

    def _show(self) -> None:
        run = self._state.run
        if run is None or not run.is_shown:
            self._growing = self._tool = ""
            return
        text = live_text(self._state, self._growing, self._tool)
        if text:
            self._sender.live.show(run.run, self._store.first_part(text))

    async def _resume_answer(self) -> None:
        run = self._state.run
        if run is None or not run.is_shown:
            return
        bound = await self._store.run(lambda tx: bindings.of_session(tx, self._session))
        if bound is not None:
            await self._sender.resume(run.run, bound)

    async def _begin_with(self, snapshot: JsonObject) -> None:
        """Begin with a snapshot: the events between are no longer stored."""
        run = as_object(snapshot.get("run"))
        effects: list[Effect] = []
        state = ReaderState()
        if run:
            id_ = as_text(run.get("id"))
            rows = await self._store.run(lambda tx: inbox.of_run(tx, id_))
            parts, self._growing = _texts_of(run)
            state = ReaderState(run=ShownRun(run=id_, is_shown=bool(rows), parts=parts), ended=())
            effects.extend([RunShown(run=id_)] if rows else [])
        pending = snapshot.get("pending")
        asked = pending if isinstance(pending, list) else []
        requests = {as_text(as_object(wire).get("request")) for wire in asked}
        unanswered = await self._store.run(lambda tx: approvals.open_ones(tx, self._session))
        effects.extend(
            Resolved(request=request, option=None, by="timeout")
            for approval in unanswered
            if approval.kind != "plan"
            and (request := question_of(approval.request)) not in requests
        )
        for wire in asked:
            with suppress(msgspec.ValidationError, ValueError):
                effects.append(asked_of(wire))
        self._epoch = as_text(snapshot.get("epoch"))
        await self._record(state, effects, seq=_number(snapshot.get("seq")))

    async def _finish_lost(self, snapshot: JsonObject, before: Sequence[InboxRow]) -> None:
        """Answer messages whose run ended in events that are no longer stored."""
        if snapshot.get("run") or snapshot.get("queue"):
            return
        now = await self._store.run(lambda tx: inbox.started(tx, self._session))
        ids = {row.id for row in before}
        lost = [row for row in now if row.id in ids]
        for run in sorted({row.run or "" for row in lost}):
            text = await self._text_of_run(run) if run else ""
            line = "" if text else line_of("interrupted", None, has_text=False)
            over = RunFinished(
                run=run or f"lost-{lost[0].key}",
                text=text or line,
                outcome="completed" if text else "failed",
                is_shown=True,
            )
            rows = [row for row in lost if (row.run or "") == run]
            await self._record_lost(over, rows)

    async def _record_lost(self, over: RunFinished, rows: Sequence[InboxRow]) -> None:
        def record(tx: Transaction) -> None:
            bound = bindings.of_session(tx, self._session)
            if bound is None:
                return
            for row in rows:
                inbox.assign_run(tx, row, over.run)
            self._store.finish_run(tx, over, bound)

        await self._store.run(record)

    async def _text_of_run(self, run: str) -> str:
        params: JsonObject = {
            "session": self._session,
            "run": run,
            "part": "full",
            "limit": MOST_ITEMS,
        }
        read = as_object(await self._link.request("agent/session/read", params))
        return "\n\n".join(_texts_of(read)[0])

    async def _is_idle(self) -> bool:
        if self._store.clock.now_ms() - self._used_ms < FOLLOW_MS or self._state.run is not None:
            return False
        return self._session not in await self._store.run(bindings.active_sessions)


class SessionFollowers:
    """The readers of all bound sessions of which something is expected. `run` has to run."""

    def __init__(
        self, link: DaemonLink, store: ChatStore, sender: OutboxSender, *, client: str
    ) -> None:
        """Prepare them; as of `SessionFollower`."""
        self._link = link
        self._store = store
        self._sender = sender
        self._client = client
        self._sessions: set[str] = set()
        self._is_over = False
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Follow the sessions with messages that are not answered, and those of `ensure`, until it is cancelled."""
        async with self._tasks:
            for session in await self._store.run(bindings.active_sessions):
                self.ensure(session)
            try:
                await anyio.sleep_forever()
            finally:
                self._is_over = True

    def ensure(self, session: str) -> None:
        """Follow a session; nothing happens when it is followed, or when the bridge ends."""
        if session not in self._sessions and not self._is_over:
            self._sessions.add(session)
            _ = self._tasks.create_task(self._follow(session))

    async def _follow(self, session: str) -> None:
        is_over, failures = False, 0
        try:
            while not is_over:
                follower = SessionFollower(
                    session, self._link, self._store, self._sender, client=self._client
                )
                try:
                    is_over = await follower.follow()
                    failures = 0
                except AgentRefused as error:
                    is_over = error.data.get("kind") == "SessionNotFound"
                    failures += 1
                    _log.info("The session %s is not followed now: %s", session, error)
                if not is_over:
                    await self._store.clock.sleep(min(30.0, 0.1 * 2 ** min(failures, 9)))
        finally:
            self._sessions.discard(session)


def _end_of(approval: StoredApproval, effect: Resolved, *, client: str) -> ApprovalEnd:
    """Return how an approval has ended by an event of its session."""
    if effect.by in RESOLVED:
        return RESOLVED[effect.by]
    if effect.by == client and approval.state == "claimed":
        return chosen_end(approval)
    option = effect.option or ""
    if approval.kind == "question":
        label = "Answered" if option else "Declined"
        return ApprovalEnd(label=label, by=effect.by, allowed=bool(option))
    if option.startswith("reject") or not option:
        return ApprovalEnd(label="Denied", by=effect.by)
    label = "Allowed once" if option == "allowOnce" else "Allowed"
    return ApprovalEnd(label=label, by=effect.by, allowed=True)


def state_of(stored: str) -> ReaderState:
    """Return the state of the reader of a session from its cursor."""
    if not stored:
        return ReaderState()
    return msgspec.json.decode(stored, type=threadsafe(ReaderState))


def _texts_of(run: JsonObject) -> tuple[tuple[str, ...], str]:
    """Return the texts of the model in the items of a run: those that are complete, and the one that grows."""
    complete: list[str] = []
    growing = ""
    items = run.get("items")
    for wire in items if isinstance(items, list) else []:
        item = as_object(wire)
        content = item.get("content")
        if item.get("kind") != "message" or item.get("role") != "assistant":
            continue
        blocks = content if isinstance(content, list) else []
        text = "".join(as_text(as_object(part).get("text")) for part in blocks)
        if "turn" in item or "stopReason" in item:
            complete.extend([text] if text else [])
        else:
            growing = text
    return tuple(complete), growing


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
