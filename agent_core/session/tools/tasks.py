"""Tasks of a session: each is another session that works for this one and reports to it once."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Final

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_core.events import (
    Event,
    EventSubscription,
    RunResult,
    RunStarted,
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskState,
    TaskUpdated,
    ToolEnded,
    ToolRunning,
    ToolStarted,
    TurnEnded,
)
from agent_core.kernel import JsonValue, RunId, SessionId, ToolCallId, uuid7
from agent_core.kernel.errors import (
    RunMismatch,
    RunNotActive,
    SessionNotFound,
    TillerError,
    ToolError,
)
from agent_core.kernel.text import cut_bytes, one_line
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, CustomMessage, Text, Usage
from agent_core.resources.agents import NOT_FOR_TASKS, AgentDefinition
from agent_core.session.context import SessionServices
from agent_core.session.history.entries import (
    TASK,
    EntryFactory,
    task_entry,
    used_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.runs.recovered_state import RecoveredState, RecoveredTask
from agent_core.session.runs.recovery import last_run
from agent_core.session.tools.task_port import OuterSession, TaskOpening, TaskSession, TaskSessions
from agent_core.storage.port import StoredSession
from agent_core.tools.port import TaskOrder, TaskReport
from agent_core.transcript.entries import MessageEntry

MOST_RUNNING: Final = 4
MOST_UNENDED: Final = 32
"""Running and queued ones together."""
END_BOUND_S: Final = 8.0
"""How long the end of a task is waited for that was stopped."""
REPORT_BYTES: Final = 16_384
"""How much of a report the model gets; the rest stays in the session of the task."""
EVENT_CHARS: Final = 400
TITLE_CHARS: Final = 80
GO_ON: Final = "Go on with the task where it was interrupted, and report."
LEAD: Final = "[Report of Tiller, not of the user]"

log = logging.getLogger(__name__)
CUT_OFF: Final = frozenset({"started", "interrupted", "cancelled"})
"""Status of the last run in the file of a task whose process ended in the middle of it."""
ENDED: Final[Mapping[str, TaskState]] = {
    "completed": "completed",
    "budget": "budget",
    "cancelled": "cancelled",
}
"""States of tasks by the status of their run; any other status is a failure."""


class TaskDeps(Value, frozen=True, kw_only=True):
    """The parts of the session that its tasks use."""

    services: SessionServices
    sessions: TaskSessions
    recorder: Recorder
    deferred: DeferredMessages
    outer: Callable[[TaskInfo], OuterSession]
    """Returns the parts that a task's session uses."""
    active_tools: Callable[[], Sequence[str]]
    current_run: Callable[[], RunId | None]
    wake: Callable[[], Awaitable[None]]
    """Starts a run when the session is idle and the model has a report to answer."""
    spent: Callable[[Usage], None]
    exhausted: Callable[[], str | None]
    """Returns which budget of the session is used up, as a sentence; None: none is."""


class TaskOutcome(Value, frozen=True, kw_only=True):
    """Result of a task."""

    state: TaskState
    text: str = ""
    """The last words of its model."""
    error: str | None = None


class GivenTask(Struct, kw_only=True):
    """A task while the session is open."""

    info: TaskInfo
    call: ToolCallId
    order: TaskOrder
    attempt: int = 1
    is_awaited: bool
    """Whether the call of the tool waits for the end."""
    model: tuple[str, str] = ("", "")
    """Provider and id of the model that answered last."""
    spent: Usage = Usage()
    """Usage of this attempt."""
    used: Usage = Usage()
    """Usage of all attempts."""
    wanted: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when it is to stop."""
    stopped_as: TaskState = "cancelled"
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """It has ended, and that is in the file."""
    is_ending: bool = False
    """Whether it is decided how the model gets the report."""
    readers: int = 0
    """How many calls of tools wait for the report, besides the one that started the task."""
    report: str = ""
    """Empty: not read from the task's session yet."""


class SessionTasks:
    """The tasks of one session."""

    def __init__(self, deps: TaskDeps, restored: RecoveredState) -> None:
        self._deps = deps
        self._count = len(restored.tasks)
        self._slots = anyio.CapacityLimiter(MOST_RUNNING)
        self._tasks = {one.id: restored_task(one) for one in restored.tasks.values()}

    @property
    def restored(self) -> Mapping[str, GivenTask]:
        """All tasks by id, for the recovery of a session."""
        return self._tasks

    def list(self) -> Sequence[TaskInfo]:
        """Return all tasks, oldest first."""
        return [one.info for one in self._tasks.values()]

    async def run(
        self, order: TaskOrder, *, call: ToolCallId, leave: anyio.Event | None
    ) -> TaskReport:
        """Start a task; wait for its end, unless it is to work in the background."""
        one = await self._start(order, call)
        if order.background:
            self._deps.sessions.had_background = True
            text = f"Task {named(one.info)} is {one.info.state} in the background. You are told when it has ended."
            return TaskReport(task=one.info, text=text)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when, one.over, group.cancel_scope)
                if leave is not None:
                    group.start_soon(_cancel_when, leave, group.cancel_scope)
                await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            one.wanted.set()
            with anyio.move_on_after(END_BOUND_S, shield=True):
                await one.over.wait()
            raise
        if one.is_ending:
            await one.over.wait()
            return TaskReport(task=one.info, text=one.report)
        one.is_awaited = False
        self._deps.sessions.had_background = True
        one.info = replace(one.info, background=True)
        self._publish_update(one)
        text = f"The user moved task {named(one.info)} to the background. You are told when it has ended."
        return TaskReport(task=one.info, text=text)

    async def results(self, ids: Sequence[str], *, wait_s: float) -> Sequence[TaskReport]:
        """Return tasks with their reports; waits until all of them have ended."""
        chosen = [self._named(id_) for id_ in ids] if ids else list(self._unended())
        await _wait_for(chosen, wait_s)
        return [TaskReport(task=one.info, text=await self._text(one)) for one in chosen]

    async def stop(self, id_: str) -> TaskReport:
        """Stop a task; one that has ended stays as it is."""
        one = self._named(id_)
        one.wanted.set()
        await _wait_for([one], END_BOUND_S)
        return TaskReport(task=one.info, text=await self._text(one))

    async def resume(self, id_: str) -> TaskInfo:
        """Continue a task that ended without a result where it stopped; it works in the background.

        Raises:
            ToolError: There is no such task, it has a result, or it runs.
        """
        one = self._named(id_)
        if one.info.state not in {"lost", "failed", "cancelled", "budget"}:
            message = f"Task {id_} is {one.info.state}; only a task that was lost, stopped or failed can be continued."
            raise ToolError(message)
        self._check_room()
        again = GivenTask(
            info=replace(one.info, state="queued", background=True, error=None),
            call=one.call,
            order=one.order,
            attempt=one.attempt + 1,
            is_awaited=False,
            used=one.used,
        )
        self._tasks[one.info.id] = again
        try:
            await self._deps.recorder.background.shielded(partial(self._write_and_follow, again))
        except TillerError:
            self._tasks[one.info.id] = one
            raise
        return again.info

    async def stop_for_user(self, id_: str) -> TaskInfo:
        """Stop a task; the model is told as of any other end.

        Raises:
            ToolError: There is no such task.
        """
        one = self._named(id_)
        one.wanted.set()
        with anyio.move_on_after(END_BOUND_S):
            await one.over.wait()
        return one.info

    async def wait(self) -> None:
        """Wait until none runs or waits for another."""
        for one in self._unended():
            await one.over.wait()

    async def close(self) -> None:
        """Stop all of them because the session closes; they can be continued when it is opened again."""
        running = self._unended()
        for one in running:
            if not one.wanted.is_set():
                one.stopped_as = "lost"
            one.wanted.set()
        with anyio.move_on_after(END_BOUND_S):
            for one in running:
                await one.over.wait()

    async def _start(self, order: TaskOrder, call: ToolCallId) -> GivenTask:
        agents = {one.name: one for one in self._deps.sessions.agents()}
        if order.preset not in agents:
            message = f"There is no agent {order.preset!r}; there are: {', '.join(agents)}."
            raise ToolError(message)
        if not order.prompt.strip():
            message = "The prompt of the task is empty: write what is to be done."
            raise ToolError(message)
        self._check_room()
        if why := self._deps.exhausted():
            message = f"The task was not started: {why}."
            raise ToolError(message)
        self._count += 1
        id_, now_ms = f"t{self._count}", self._deps.services.clock.now_ms()
        item = self._deps.services.publisher.snapshot.item_of(call)
        info = TaskInfo(
            id=id_,
            session=SessionId(uuid7(now_ms)),
            item=item,
            description=order.description,
            preset=order.preset,
            state="queued",
            background=order.background,
            started_ms=now_ms,
        )
        one = GivenTask(info=info, call=call, order=order, is_awaited=not order.background)
        self._tasks[id_] = one
        try:
            await self._deps.recorder.background.shielded(partial(self._write_and_follow, one))
        except anyio.get_cancelled_exc_class():
            one.wanted.set()
            raise
        except TillerError:
            del self._tasks[id_]
            raise
        return one

    async def _write_and_follow(self, one: GivenTask) -> None:
        _ = await self._deps.recorder.accept(started_entry(one))
        self._deps.services.publish(TaskCreated(run=self._deps.current_run(), task=one.info))
        self._deps.recorder.background.start(partial(self._follow, one))

    def _check_room(self) -> None:
        if len(self._unended()) >= MOST_UNENDED:
            message = f"{MOST_UNENDED} tasks run or wait, which is the most: wait for one with task_result, or stop one."
            raise ToolError(message)

    async def _follow(self, one: GivenTask) -> None:
        """Carry a task to its end, whatever happens."""
        outcome: TaskOutcome | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when, one.wanted, group.cancel_scope)
                async with self._slots:
                    outcome = await self._work(one)
                group.cancel_scope.cancel()
        finally:
            stopped = one.stopped_as if one.wanted.is_set() else "lost"
            with anyio.CancelScope(shield=True):
                await self._end(one, outcome or TaskOutcome(state=stopped))

    async def _work(self, one: GivenTask) -> TaskOutcome:
        try:
            async with self._deps.sessions.open(self._opening(one)) as session:
                return await self._run_session(one, session)
        except TillerError as error:
            return TaskOutcome(state="failed", error=str(error))
        except Exception as error:
            # A bug of ours ends this task, not the session that gave it.
            log.exception("task %s failed unexpectedly", one.info.id)
            why = f"internal error ({type(error).__name__}); the details are in the log"
            return TaskOutcome(state="failed", error=why)

    async def _run_session(self, one: GivenTask, session: TaskSession) -> TaskOutcome:
        one.info = replace(one.info, state="running")
        self._publish_update(one)
        result: RunResult | None = None
        with closing(session.subscribe()) as reader:
            await self._begin(one, session)
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch, one, reader)
                result = await session.wait_idle()
                group.cancel_scope.cancel()
        return _outcome(result)

    def _opening(self, one: GivenTask) -> TaskOpening:
        deps = self._deps
        agents = {each.name: each for each in deps.sessions.agents()}
        agent = agents.get(one.info.preset)
        if agent is None:
            message = (
                f"There is no agent {one.info.preset!r} any more; there are: {', '.join(agents)}."
            )
            raise ToolError(message)
        return TaskOpening(
            id=one.info.id,
            session=one.info.session,
            is_new=one.attempt == 1,
            agent=agent,
            model=one.order.model,
            tools=tools_for(agent, deps.active_tools()),
            budget=one.order.budget,
            outer=replace(deps.outer(one.info), on_spent=partial(self._spend, one)),
        )

    def _spend(self, one: GivenTask, usage: Usage) -> None:
        one.spent, one.used = one.spent.plus(usage), one.used.plus(usage)
        one.info = with_usage(one.info, one.used)
        self._deps.spent(usage)

    async def _begin(self, one: GivenTask, session: TaskSession) -> None:
        """Send the task its prompt, or continue its last run."""
        if one.attempt == 1:
            _ = await session.prompt(one.order.prompt, source="program")
            return
        with suppress(RunNotActive, RunMismatch, SessionNotFound):
            last = last_run((await self._deps.sessions.read(one.info.session)).entries)
            if last is not None:
                _ = await session.retry(last.run)
                return
        _ = await session.prompt(GO_ON, source="program")

    async def _watch(self, one: GivenTask, reader: EventSubscription) -> None:
        """Follow what the task does, for people."""
        async for stamped in reader:
            activity = one.info.activity
            follow(one, stamped.event)
            one.info = replace(one.info, duration_ms=self._age_ms(one.info))
            if one.info.activity != activity:
                self._publish_update(one)

    def _publish_update(self, one: GivenTask) -> None:
        self._deps.services.publish(TaskUpdated(task=one.info))

    def _age_ms(self, info: TaskInfo) -> int:
        return max(0, self._deps.services.clock.now_ms() - info.started_ms)

    async def _end(self, one: GivenTask, outcome: TaskOutcome) -> None:
        """Write the end and what the model is told of it in one step, then tell everybody."""
        deps, one.is_ending = self._deps, True
        one.info = replace(
            one.info,
            state=outcome.state,
            activity="",
            error=outcome.error,
            duration_ms=self._age_ms(one.info),
        )
        one.report = report_of(one.info, outcome.text)
        entries = end_entries(one)
        if one.is_awaited:
            # The call of the tool returns it, or was cancelled with its run.
            _ = await deps.recorder.keep(*entries)
        else:
            message = report_message(one, at_ms=deps.services.clock.now_ms())
            await deps.deferred.keep(message, flush_at="turn", beside=entries)
        short = one_line(outcome.text)[:EVENT_CHARS]
        deps.services.publish(TaskEnded(task=one.info, text=short))
        if not one.is_awaited:
            await deps.wake()
        # Last: a session that closes waits for it, and lets the file go then.
        one.over.set()

    async def _text(self, one: GivenTask) -> str:
        if not one.over.is_set():
            doing = f": {one.info.activity}" if one.info.activity else ""
            return f"Task {named(one.info)} is {one.info.state}{doing}."
        if not one.report:
            with suppress(SessionNotFound):
                outcome = last_outcome(await self._deps.sessions.read(one.info.session))
                one.report = report_of(one.info, outcome.text)
        return one.report or report_of(one.info, "")

    def _unended(self) -> Sequence[GivenTask]:
        return [one for one in self._tasks.values() if not one.over.is_set()]

    def _named(self, id_: str) -> GivenTask:
        one = self._tasks.get(id_) or self._tasks.get(f"t{id_}")
        if one is None:
            message = f"There is no task {id_!r}; there are: {', '.join(self._tasks) or 'none'}."
            raise ToolError(message)
        return one


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _wait_for(tasks: Sequence[GivenTask], wait_s: float) -> None:
    """Wait for the ends of tasks whose reports a call returns."""
    for one in tasks:
        one.readers += 1
    try:
        with anyio.move_on_after(wait_s):
            for one in tasks:
                await one.over.wait()
    finally:
        for one in tasks:
            one.readers -= 1


def follow(one: GivenTask, event: Event) -> None:
    """Keep what an event of its session says about a task."""
    info = one.info
    match event:
        case RunStarted(model=model):
            provider, _, id_ = model.partition("/")
            one.model = provider, id_
        case ToolStarted(title=title) | ToolRunning(title=title):
            one.info = replace(info, activity=one_line(title)[:TITLE_CHARS])
        case ToolEnded():
            one.info = replace(info, tool_calls=info.tool_calls + 1)
        case TurnEnded():
            one.info = replace(info, turns=info.turns + 1)
        case _:
            pass


def tools_for(agent: AgentDefinition, active: Sequence[str]) -> tuple[str, ...]:
    """Return the tools of a task: never one that the session which gave it does not have.

    Raises:
        ToolError: None is left.
    """
    found = tuple(
        name
        for name in active
        if name not in NOT_FOR_TASKS and (agent.tools is None or name in agent.tools)
    )
    if not found:
        message = f"The agent {agent.name!r} has none of the tools that are active here; choose another agent."
        raise ToolError(message)
    return found


def named(info: TaskInfo) -> str:
    """Return how people and models know a task."""
    return f"{info.id} ({info.description})"


def with_usage(info: TaskInfo, used: Usage) -> TaskInfo:
    """Return a task that has used something."""
    return replace(info, tokens=used.total, usd=None if used.cost is None else used.cost.total)


def started_entry(one: GivenTask) -> EntryFactory:
    """Write that a task was started."""
    data: dict[str, JsonValue] = {
        "op": "started",
        "id": one.info.id,
        "session": one.info.session,
        "call": one.call,
        "description": one.info.description,
        "preset": one.info.preset,
        "background": one.info.background,
        "attempt": one.attempt,
    }
    return task_entry(data)


def end_entries(one: GivenTask) -> Sequence[EntryFactory]:
    """Write how a task ended and what it used."""
    report = "result" if one.is_awaited else "message"
    ended = task_entry(
        {"op": "ended", "id": one.info.id, "state": one.info.state, "report": report}
    )
    if one.spent == Usage():
        return (ended,)
    provider, model = one.model
    return (ended, used_entry("task", provider=provider, model=model, usage=one.spent))


def report_message(one: GivenTask, *, at_ms: int) -> CustomMessage:
    """Create the message that tells the model of the end of a task."""
    text = one.report
    if one.readers:
        text = f"Task {named(one.info)} has ended ({one.info.state}). Its report is the result of your call; task_result returns it again."
    return CustomMessage(
        custom_type=TASK,
        content=(Text(text=f"{LEAD} {text}"),),
        # Events have told people already.
        display=False,
        details={"id": one.info.id, "attempt": one.attempt},
        at_ms=at_ms,
    )


def report_of(info: TaskInfo, text: str) -> str:
    """Return what the model is told of a task that has ended."""
    how = {
        "completed": "completed",
        "failed": f"failed: {info.error or 'its run did not end well'}",
        "cancelled": "was stopped before it was done",
        "budget": "stopped at its budget before it was done",
        "lost": "was interrupted when Tiller was closed; the user can continue it",
    }[info.state]
    text = text.strip()
    body = cut_bytes(text, REPORT_BYTES)
    cut = "\n[The report is cut.]" if len(body) < len(text) else ""
    last = "Its report:" if info.state == "completed" else "Its last words:"
    said = f"\n{last}\n{body}{cut}" if text else " It reported nothing."
    return f"Task {named(info)} {how}.{said}"


def _outcome(result: RunResult | None) -> TaskOutcome:
    if result is None:
        return TaskOutcome(state="failed", error="its run ended without a result")
    state: TaskState = ENDED.get(result.status, "failed")
    error = None if result.error is None else result.error.message
    return TaskOutcome(state=state, text=result.text, error=error)


def restored_task(one: RecoveredTask) -> GivenTask:
    """Return a task of the session file. One without an end there counts as lost until its own file says more."""
    info = TaskInfo(
        id=one.id,
        session=one.session,
        item=None,
        description=one.description,
        preset=one.preset,
        state=one.state or "lost",
        background=one.background,
        started_ms=one.started_ms,
    )
    order = TaskOrder(description=one.description, prompt="", preset=one.preset)
    task = GivenTask(info=info, call=one.call, order=order, attempt=one.attempt, is_awaited=False)
    task.over.set()
    return task


def last_outcome(stored: StoredSession) -> TaskOutcome:
    """Return what became of the newest run of a task by its own file."""
    text = ""
    for entry in stored.entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            text = entry.message.text or text
    last = last_run(stored.entries)
    # A run that was cut off with its process can be continued.
    if last is None or last.status in CUT_OFF:
        return TaskOutcome(state="lost", text=text)
    return TaskOutcome(state=ENDED.get(last.status, "failed"), text=text)
