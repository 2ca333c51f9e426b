"""Tasks of a session: each is another session that works for this one and reports to it once."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
from msgspec.structs import replace

from agent_core.events import (
    TaskCreated,
    TaskEnded,
    TaskInfo,
    TaskUpdated,
)
from agent_core.kernel import SessionId, ToolCallId, uuid7
from agent_core.kernel.errors import (
    SessionNotFound,
    TillerError,
    ToolError,
)
from agent_core.kernel.text import one_line
from agent_core.session.runs.recovered_state import RecoveredState
from agent_core.session.tools.given_task import (
    GivenTask,
    TaskOutcome,
    calls_of_tasks,
    end_entries,
    last_outcome,
    named,
    report_message,
    restored_task,
    started_entry,
)
from agent_core.session.tools.task_run import TaskDeps, TaskRun, age_ms
from agent_core.session.tools.task_worktrees import TaskMerges, worktree_of
from agent_core.tools.port import TaskOrder, TaskReport

MOST_RUNNING: Final = 4
MOST_UNENDED: Final = 32
"""Running and queued ones together."""
END_BOUND_S: Final = 8.0
"""How long the end of a task is waited for that was stopped."""
EVENT_CHARS: Final = 400


class SessionTasks:
    """The tasks of one session."""

    def __init__(self, deps: TaskDeps, restored: RecoveredState) -> None:
        self._deps = deps
        self._count = max((_number(id_) for id_ in restored.tasks), default=0)
        self._numbers: dict[ToolCallId, int] = {}
        """Numbers of tasks whose calls have not begun yet."""
        self._slots = anyio.CapacityLimiter(MOST_RUNNING)
        self._tasks = {one.id: restored_task(one) for one in restored.tasks.values()}

    @property
    def restored(self) -> Mapping[str, GivenTask]:
        """All tasks by id, for the recovery of a session."""
        return self._tasks

    @property
    def merges(self) -> TaskMerges:
        """Changes that tasks made in worktrees."""
        return TaskMerges(self._named, self._deps.worktrees, self._deps.services.publish)

    def list(self) -> Sequence[TaskInfo]:
        """Return all tasks, oldest first."""
        return [self._tasks[id_].info for id_ in sorted(self._tasks, key=_number)]

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
            return TaskReport(task=one.info, text=one.message, report=one.report)
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
        return [await self._report(one) for one in chosen]

    async def stop(self, id_: str) -> TaskReport:
        """Stop a task; one that has ended stays as it is."""
        one = self._named(id_)
        one.wanted.set()
        await _wait_for([one], END_BOUND_S)
        return await self._report(one)

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
            info=replace(
                one.info,
                state="queued",
                background=True,
                error=None,
                worktree=worktree_of(one.order, one.info.id, one.info.session),
            ),
            call=one.call,
            order=one.order,
            attempt=one.attempt + 1,
            is_awaited=False,
            is_unchanged=one.is_unchanged,
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
        id_, now_ms = f"t{self._take_number(call)}", self._deps.services.clock.now_ms()
        session = SessionId(uuid7(now_ms))
        item = self._deps.services.publisher.snapshot.item_of(call)
        info = TaskInfo(
            id=id_,
            session=session,
            item=item,
            description=order.description,
            preset=order.preset,
            state="queued",
            background=order.background,
            started_ms=now_ms,
            worktree=worktree_of(order, id_, session),
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

    def _take_number(self, call: ToolCallId) -> int:
        """Return the number of a task. Calls side by side begin in any order, and have numbers in the order of the answer."""
        if call not in self._numbers:
            calls = calls_of_tasks(self._deps.recorder.path())
            for each in calls if call in calls else (call,):
                self._count += 1
                self._numbers[each] = self._count
        return self._numbers.pop(call)

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
                    outcome = await TaskRun(one, self._deps).work()
                group.cancel_scope.cancel()
        finally:
            stopped = one.stopped_as if one.wanted.is_set() else "lost"
            with anyio.CancelScope(shield=True):
                await self._end(one, outcome or TaskOutcome(state=stopped))

    def _publish_update(self, one: GivenTask) -> None:
        self._deps.services.publish(TaskUpdated(task=one.info))

    async def _end(self, one: GivenTask, outcome: TaskOutcome) -> None:
        """Write the end and what the model is told of it in one step, then tell everybody."""
        deps, one.is_ending = self._deps, True
        one.info = replace(
            one.info,
            state=outcome.state,
            activity="",
            error=outcome.error,
            duration_ms=age_ms(one.info, deps.services.clock),
        )
        if one.info.worktree is not None:
            await deps.worktrees.end(one)
        one.settle_report(outcome.text)
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

    async def _report(self, one: GivenTask) -> TaskReport:
        if not one.over.is_set():
            doing = f": {one.info.activity}" if one.info.activity else ""
            text = f"Task {named(one.info)} is {one.info.state}{doing}."
            return TaskReport(task=one.info, text=text)
        if not one.message:
            with suppress(SessionNotFound):
                outcome = last_outcome(await self._deps.sessions.read(one.info.session))
                one.settle_report(outcome.text)
        if not one.message:
            one.settle_report("")
        return TaskReport(task=one.info, text=one.message, report=one.report)

    def _unended(self) -> Sequence[GivenTask]:
        return [one for one in self._tasks.values() if not one.over.is_set()]

    def _named(self, id_: str) -> GivenTask:
        one = self._tasks.get(id_) or self._tasks.get(f"t{id_}")
        if one is None:
            message = f"There is no task {id_!r}; there are: {', '.join(self._tasks) or 'none'}."
            raise ToolError(message)
        return one


def _number(id_: str) -> int:
    digits = id_.removeprefix("t")
    return int(digits) if digits.isdecimal() else 0


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
