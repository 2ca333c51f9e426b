"""Recovery of a session from its file, and repetition of a run on request."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from agent_core.events import Notice, RunEnded, RunResult
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import RunMismatch, RunNotActive, SessionBusy, StorageError
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, CustomMessage, Text, ToolResultMessage
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.context import SessionServices
from agent_core.session.history.entries import (
    BACKGROUND,
    DAEMON_RESTART,
    RUN,
    background_entry,
    message_entry,
    run_interrupted_entry,
    run_retried_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.input.queue import InputQueue, MessageIndex, retry_id
from agent_core.session.input.submission import Receipt
from agent_core.session.runs.executor import RunStarter
from agent_core.session.runs.recovered_state import RecoveredState
from agent_core.session.runs.slot import TITLES, Activity, ActivitySlot
from agent_core.session.runs.usage import UsageTracker
from agent_core.transcript.entries import AnyEntry, CustomEntry

INTERRUPTED = (
    "Interrupted: the program that ran this call ended before it was over. Its effects, if any, may be half done; "
    "look before you repeat it."
)
GO_ON = "the last run was interrupted when its process ended; retry it, or say «go on», to continue"


class RecoveredTasks(Protocol):
    """Reports the tasks that an earlier process left."""

    async def answer(self, call: ToolCallId) -> bool:
        """Write the report of a task as the result of the call that started it; False: the call started none."""
        ...

    async def report_rest(self) -> None:
        """Add a message for every other task without an end."""
        ...


class SessionRecovery:
    """Finishes what a process that died left open."""

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        queue: InputQueue,
        deferred: DeferredMessages,
        usage: UsageTracker,
        changes: ChangeRecord,
        runs: ActivitySlot,
        tasks: "RecoveredTasks | None",
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._queue = queue
        self._deferred = deferred
        self._usage = usage
        self._changes = changes
        self._runs = runs
        self._tasks = tasks

    async def recover(self, restored: RecoveredState) -> None:
        """Finish what a process that died left open: every call gets a result, every run an end."""
        for call in restored.unanswered:
            if self._tasks is not None and await self._tasks.answer(call.id):
                continue
            result = ToolResultMessage(
                call_id=call.id,
                tool_name=call.name,
                content=(Text(text=INTERRUPTED),),
                is_error=True,
                unfinished="cancelled",
                at_ms=self._services.clock.now_ms(),
            )
            _ = await self._recorder.keep(message_entry(result))
        if restored.interrupted is not None:
            await self._end(restored.interrupted)
        for waiting in restored.waiting:
            self._queue.put(waiting.item, waiting.message_id)
            self._queue.paused = True
        for laid in restored.deferred:
            self._deferred.put(laid)
        if self._tasks is not None:
            await self._tasks.report_rest()
        await self._deferred.flush("turn", "run", run=None, publish=self._services.publish)
        for id_, command in restored.background.items():
            await self._end_background(id_, command)

    async def _end_background(self, id_: str, command: str) -> None:
        """Report to the model, with the next prompt, that a background command ended with the process before this one."""
        text = (
            f"[Report of Tiller, not of the user] The background command {id_} ($ {command}) ended when Tiller was "
            "closed. Start it again if you need it."
        )
        message = CustomMessage(
            custom_type=BACKGROUND,
            content=(Text(text=text),),
            display=False,
            details={"id": id_},
            at_ms=self._services.clock.now_ms(),
        )
        with suppress(StorageError):
            ended = background_entry(id_, "ended", command)
            await self._deferred.accept(message, flush_at="prompt", beside=(ended,))

    async def _end(self, run: RunId) -> None:
        """End the run that the process took along. It is told to whoever listens first."""
        _ = await self._recorder.keep(run_interrupted_entry(run))
        usage = self._usage.of_session()
        counts = await self._changes.counts_of(run)
        self._runs.finish(
            RunResult(
                run=run,
                status="interrupted",
                text=_last_answer(self._recorder),
                usage=usage,
                changes=counts,
            )
        )
        self._services.publisher.backlog += [
            RunEnded(
                run=run,
                status="interrupted",
                usage=usage,
                changes=counts,
                cause=DAEMON_RESTART,
                resumable=True,
                parent=self._services.parent,
            ),
            Notice(level="warning", text=GO_ON),
        ]


def _last_answer(recorder: Recorder) -> str:
    said = (one.text for one in reversed(recorder.context()) if isinstance(one, AssistantMessage))
    return next(said, "")


FINISHED = frozenset({"completed", "refused"})
"""How a run ended that left nothing undone."""


class LastRun(Value, frozen=True, kw_only=True):
    """The newest run of a branch."""

    run: RunId
    status: str


def last_run(path: Sequence[AnyEntry]) -> LastRun | None:
    """Find the newest run of a branch; None: there was none."""
    for entry in reversed(path):
        if isinstance(entry, CustomEntry) and entry.custom_type == RUN:
            data = as_object(entry.data)
            return LastRun(run=RunId(str(data.get("run"))), status=str(data.get("status")))
    return None


class RunRetrier:
    """Retries runs. A run is retried once: a second request returns the receipt of the run that continues it."""

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        message_index: MessageIndex,
        queue: InputQueue,
        runs: ActivitySlot,
        starter: RunStarter,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._message_index = message_index
        self._queue = queue
        self._runs = runs
        self._starter = starter

    async def retry(self, run: RunId) -> Receipt:
        """Go on with a run, as `AgentSession.retry` says."""
        self._starter.check_open()
        again = retry_id(run)
        if await self._message_index.is_recorded(again):
            seq = self._services.publisher.feed.seq
            return Receipt(accepted="duplicate", run=self._message_index.run_of(again), seq=seq)
        self._check(run)
        activity, new = self._starter.reserve()
        self._message_index.begin(again)
        step = partial(self._write_and_start, activity, new, of=run)
        return await self._recorder.background.shielded(step)

    async def _write_and_start(self, activity: Activity, new: RunId, *, of: RunId) -> Receipt:
        again = retry_id(of)
        try:
            _ = await self._recorder.accept(run_retried_entry(new, of=of))
            self._message_index.record(again, new)
        except BaseException:
            self._runs.release(activity)
            raise
        finally:
            self._message_index.end(again)
        self._queue.release()
        self._starter.start(activity, new, ())
        return Receipt(accepted="started", run=new, seq=self._services.publisher.feed.seq)

    def _check(self, run: RunId) -> None:
        current = self._runs.current
        if current is not None:
            what = f"run {current.run!r}" if current.kind == "run" else TITLES[current.kind]
            message = (
                f"{what} is going on; wait for its end or cancel it before run {run!r} is retried"
            )
            raise SessionBusy(message)
        last = last_run(self._recorder.path())
        if last is None or last.run != run:
            newest = None if last is None else last.run
            message = f"run {run!r} cannot be retried: the newest run here is {newest!r}"
            raise RunMismatch(message)
        if last.status in FINISHED:
            message = f"run {run!r} ended as {last.status!r} and left nothing undone; send a prompt instead"
            raise RunNotActive(message)
