"""Recovery of the tasks that a process left when it ended, from their own files."""

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import SessionNotFound
from agent_core.messages import AssistantMessage, Text, ToolResultMessage, Usage
from agent_core.messages.values import total_usage
from agent_core.session.history.entries import EntryFactory, message_entry
from agent_core.session.runs.recovered_state import RecoveredState
from agent_core.session.tools.given_task import (
    TOOL,
    GivenTask,
    TaskOutcome,
    end_entries,
    last_outcome,
    named,
    report_message,
    with_usage,
)
from agent_core.session.tools.task_run import TaskDeps
from agent_core.session.tools.tasks import SessionTasks
from agent_core.storage.port import StoredSession
from agent_core.tools.port import TaskReport
from agent_core.transcript.entries import AnyEntry, MessageEntry
from agent_core.transcript.tree import usages_of


class TaskRecovery:
    """Reports the tasks of an earlier process, each once: as the result of its call where that has none, else by a message."""

    def __init__(self, tasks: SessionTasks, deps: TaskDeps, restored: RecoveredState) -> None:
        self._tasks = tasks
        self._deps = deps
        self._restored = restored
        self._answered: set[str] = set()
        """Tasks whose report is the result of a call."""

    async def answer(self, call: ToolCallId) -> bool:
        """Write the report of a task as the result of the call that started it; False: the call started none."""
        id_ = self._restored.task_calls.get(call)
        if id_ is None:
            return False
        one, before = self._tasks.restored[id_], self._restored.tasks[id_]
        text = f"Task {named(one.info)} was started; its report is a message of its own."
        if not before.has_message:
            await self._settle(one)
            text = one.message
        returned = TaskReport(task=one.info, text=text, report=one.report)
        result = ToolResultMessage(
            call_id=call,
            tool_name=TOOL,
            content=(Text(text=text),),
            details=returned.details(),
            is_error=not before.has_message and one.info.state != "completed",
            at_ms=self._deps.services.clock.now_ms(),
        )
        _ = await self._deps.recorder.keep(message_entry(result), *self._end_of(one))
        self._answered.add(id_)
        return True

    async def report_rest(self) -> None:
        """Add a message for every other task without an end."""
        for id_, before in self._restored.tasks.items():
            one = self._tasks.restored[id_]
            if before.state is None and id_ not in self._answered:
                await self._settle(one)
                message = report_message(one, at_ms=self._deps.services.clock.now_ms())
                await self._deps.deferred.keep(message, flush_at="turn", beside=self._end_of(one))
            if one.info.state == "lost":
                self._deps.services.publisher.snapshot.tasks[id_] = one.info

    def _end_of(self, one: GivenTask) -> Sequence[EntryFactory]:
        is_recorded = self._restored.tasks[one.info.id].state is not None
        return () if is_recorded else end_entries(one)

    async def _settle(self, one: GivenTask) -> None:
        """Find out from the task's own file what became of it."""
        before = self._restored.tasks[one.info.id]
        outcome = TaskOutcome(state="lost")
        with suppress(SessionNotFound):
            stored = await self._deps.sessions.read(one.info.session)
            outcome = last_outcome(stored)
            one.model, one.spent = _spent(stored, since_ms=before.started_ms)
        if before.state is None:
            self._deps.spent(one.spent)
        else:
            outcome = replace(outcome, state=before.state)
        one.used = one.spent
        one.info = with_usage(replace(one.info, state=outcome.state), one.used)
        if one.info.worktree is not None:
            await self._deps.worktrees.end(one)
        one.settle_report(outcome.text)


def _spent(stored: StoredSession, *, since_ms: int) -> tuple[tuple[str, str], Usage]:
    """Return the model that answered last, and what was used since a time."""
    recent: list[AnyEntry] = [one for one in stored.entries if one.at_ms >= since_ms]
    model = ("", "")
    for entry in recent:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            model = (entry.message.provider, entry.message.model)
    return model, total_usage(usages_of(recent))
