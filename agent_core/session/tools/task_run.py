"""One run of a task in its session, until it ends."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import anyio
from msgspec.structs import replace

from agent_core.events import EventSubscription, RunResult, TaskInfo, TaskUpdated
from agent_core.kernel import Clock, RunId
from agent_core.kernel.errors import (
    RunMismatch,
    RunNotActive,
    SessionNotFound,
    TillerError,
    ToolError,
)
from agent_core.kernel.values import Value
from agent_core.messages import Usage
from agent_core.session.context import SessionServices
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.runs.recovery import last_run
from agent_core.session.tools.given_task import (
    GivenTask,
    TaskOutcome,
    follow,
    outcome_of,
    tools_for,
    with_usage,
)
from agent_core.session.tools.task_port import OuterSession, TaskOpening, TaskSession, TaskSessions
from agent_core.session.tools.task_worktrees import TaskWorktrees

GO_ON: Final = "Go on with the task where it was interrupted, and report."

log = logging.getLogger(__name__)


class TaskDeps(Value, frozen=True, kw_only=True):
    """The parts of the session that its tasks use."""

    services: SessionServices
    sessions: TaskSessions
    worktrees: TaskWorktrees
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


class TaskRun:
    """An attempt at a task."""

    def __init__(self, task: GivenTask, deps: TaskDeps) -> None:
        self._task = task
        self._deps = deps

    async def work(self) -> TaskOutcome:
        """Open the session of the task, and run it to its end. Raises nothing but cancellation."""
        one = self._task
        try:
            is_new = one.attempt == 1 or not await self._is_stored()
            folder = None
            if one.info.worktree is not None:
                may_create = is_new or one.is_unchanged
                folder = await self._deps.worktrees.open(one.info, may_create=may_create)
            opening = self._opening(is_new=is_new, folder=folder)
            async with self._deps.sessions.open(opening) as session:
                return await self._run_session(session, is_new=is_new)
        except TillerError as error:
            return TaskOutcome(state="failed", error=str(error))
        except Exception as error:
            # A bug of ours ends this task, not the session that gave it.
            log.exception("task %s failed unexpectedly", one.info.id)
            why = f"internal error ({type(error).__name__}); the details are in the log"
            return TaskOutcome(state="failed", error=why)

    async def _is_stored(self) -> bool:
        """Return whether anything was said in the session of a task."""
        try:
            _ = await self._deps.sessions.read(self._task.info.session)
        except SessionNotFound:
            return False
        return True

    async def _run_session(self, session: TaskSession, *, is_new: bool) -> TaskOutcome:
        one = self._task
        one.info = replace(one.info, state="running")
        self._publish_update()
        result: RunResult | None = None
        with closing(session.subscribe()) as reader:
            await self._begin(session, is_new=is_new)
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch, reader)
                result = await session.wait_idle()
                group.cancel_scope.cancel()
        return outcome_of(result)

    def _opening(self, *, is_new: bool, folder: Path | None) -> TaskOpening:
        deps, one = self._deps, self._task
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
            is_new=is_new,
            folder=folder,
            agent=agent,
            model=one.order.model,
            tools=tools_for(agent, deps.active_tools()),
            budget=one.order.budget,
            outer=replace(deps.outer(one.info), on_spent=self._spend),
            on_activity=self._show,
        )

    def _spend(self, usage: Usage) -> None:
        one = self._task
        one.spent, one.used = one.spent.plus(usage), one.used.plus(usage)
        one.info = with_usage(one.info, one.used)
        self._deps.spent(usage)

    async def _begin(self, session: TaskSession, *, is_new: bool) -> None:
        """Send the task its prompt, or continue its last run."""
        one = self._task
        if is_new:
            _ = await session.prompt(one.order.prompt, source="program")
            return
        with suppress(RunNotActive, RunMismatch):
            last = last_run((await self._deps.sessions.read(one.info.session)).entries)
            if last is not None:
                _ = await session.retry(last.run)
                return
        _ = await session.prompt(GO_ON, source="program")

    async def _watch(self, reader: EventSubscription) -> None:
        """Follow the activity of the task, for people."""
        one = self._task
        async for stamped in reader:
            activity = one.info.activity
            follow(one, stamped.event)
            one.info = replace(one.info, duration_ms=age_ms(one.info, self._deps.services.clock))
            if one.info.activity != activity:
                self._publish_update()

    def _show(self, activity: str) -> None:
        one = self._task
        age = age_ms(one.info, self._deps.services.clock)
        one.info = replace(one.info, activity=activity, duration_ms=age)
        self._publish_update()

    def _publish_update(self) -> None:
        self._deps.services.publish(TaskUpdated(task=self._task.info))


def age_ms(task: TaskInfo, clock: Clock) -> int:
    """Return the time since the first start of a task."""
    return max(0, clock.now_ms() - task.started_ms)
