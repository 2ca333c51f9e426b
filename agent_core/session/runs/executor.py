"""Executes runs: from their start to their end, with attempts between."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint

from agent_core.events import (
    ChangeCounts,
    Failure,
    Notice,
    RunEnded,
    RunResult,
    RunStarted,
    RunStatus,
)
from agent_core.events.values import RunStage
from agent_core.hooks import HookRunner, RunPrepared, RunPreparing
from agent_core.kernel import EntryId, ItemId, MessageId, RunId
from agent_core.kernel.errors import ProviderError, SessionClosed, TillerError
from agent_core.kernel.values import Value
from agent_core.loop import LoopContext, UserInput, publish_input
from agent_core.loop.batch import CANCELLED
from agent_core.messages import Text, ToolResultMessage
from agent_core.session.changes.checkpoints import Checkpoints
from agent_core.session.changes.record import ChangeRecord
from agent_core.session.config import ActiveConfig
from agent_core.session.context import ActiveRun, SessionServices, failure_of, status_of
from agent_core.session.history.compaction import Compaction
from agent_core.session.history.entries import (
    TASK,
    added_entry,
    interruption_entry,
    message_entry,
    run_ended_entry,
    run_started_entry,
)
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages, publish_added
from agent_core.session.input.queue import InputQueue
from agent_core.session.input.system_prompt import RunSystemPrompt
from agent_core.session.model_selection import ModelSelection
from agent_core.session.permissions.broker import PermissionBroker
from agent_core.session.runs.attempts import Attempts, RunRequests
from agent_core.session.runs.recovered_state import recover_state
from agent_core.session.runs.retry_policy import (
    CompactAndContinue,
    CompactAndStop,
    RetryAfter,
    RetryWithoutThinking,
    StopRun,
    whole_answer,
)
from agent_core.session.runs.slot import Activity, ActivitySlot
from agent_core.session.runs.transcript_port import (
    RunHooks,
    RunInputHooks,
    RunTranscript,
    TurnPreparation,
)
from agent_core.session.runs.usage import RunBudgets, RunUsage, UsageTracker
from agent_core.session.tools.registry import ToolContexts, ToolRegistry
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
)
from agent_core.workspace import Workspace

log = logging.getLogger(__name__)


COUNT_S = 5.0
"""How long the changes of a run may take to be counted."""
UNCOUNTED = "The changes of the run were not counted, because other work on them did not end; open the list of changes."


class RunEnd(Value, frozen=True, kw_only=True):
    """End of a run, as its executor knows it."""

    status: RunStatus
    failure: Failure | None
    failed_in: RunStage | None
    text: str
    """The last text of the model."""


class RunEndWriter:
    """Writes and publishes the ends of runs."""

    def __init__(
        self,
        services: SessionServices,
        *,
        recorder: Recorder,
        deferred: DeferredMessages,
        usage: UsageTracker,
        changes: ChangeRecord,
        checkpoints: Checkpoints,
        queue: InputQueue,
        runs: ActivitySlot,
        workspace: Workspace,
        broker: PermissionBroker,
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._deferred = deferred
        self._usage = usage
        self._changes = changes
        self._checkpoints = checkpoints
        self._queue = queue
        self._runs = runs
        self._workspace = workspace
        self._broker = broker

    async def settle(self, run: ActiveRun, end: RunEnd) -> None:
        """Write and publish the end of a run; of an abandoned run both were done by its canceller."""
        self._broker.end_run(run.id)
        if run.activity.abandoned:
            dropped = self._services.publisher.dropped
            log.warning("run %s was cut off; %d late events were dropped so far", run.id, dropped)
            return
        usage, used = self._usage.of_run(), self._usage.used()
        counts = await self._counts(run)
        run.enter("persist")
        await self._store(run, end.status)
        if (lost := self._changes.lost(run.id, self._workspace.root)) is not None:
            run.publish(Notice(level="warning", text=lost))
        if end.status != "completed":
            self._queue.pause()
        result = RunResult(
            run=run.id,
            status=end.status,
            text=end.text,
            usage=usage,
            changes=counts,
            error=end.failure,
        )
        self._finish(result, used, stage=end.failed_in, publish=run.publish)
        self._services.publisher.set_state("idle")

    async def _counts(self, run: ActiveRun) -> ChangeCounts:
        """Count the changes of a run; a count that takes too long is a notice and leaves the result as it is."""
        counts = ChangeCounts()
        with anyio.move_on_after(COUNT_S, shield=True) as limit:
            counts = await self._changes.counts_of(run.id)
        if limit.cancelled_caught:
            run.publish(Notice(level="warning", text=UNCOUNTED))
        self._changes.settle()
        return counts

    async def _store(self, run: ActiveRun, status: RunStatus) -> None:
        await self._deferred.flush("turn", "run", run=run.id, publish=run.publish)
        interrupted = status == "cancelled" and run.activity.is_interrupted
        marks = (interruption_entry,) if interrupted else ()
        _ = await self._recorder.keep(*marks, run_ended_entry(run.id, status))
        await self._checkpoints.settle_run(run.id)

    async def abandon(self, activity: Activity) -> None:
        """Stop waiting for an activity: answer its open calls, publish its end, and drop its later events."""
        if activity.abandoned:
            # Two cancels ran out of time at once: the first one publishes the end.
            await activity.over.wait()
            return
        activity.abandoned = True
        self._queue.pause()
        for call in recover_state(self._recorder.path()).unanswered:
            result = ToolResultMessage(
                call_id=call.id,
                tool_name=call.name,
                content=(Text(text=CANCELLED),),
                is_error=True,
                unfinished="cancelled",
                at_ms=self._services.clock.now_ms(),
            )
            _ = await self._recorder.keep(message_entry(result))
        publish = self._services.publish
        await self._deferred.flush("turn", "run", run=activity.run, publish=publish)
        if activity.run is not None:
            usage, used = self._usage.of_run(), self._usage.used()
            counts = await self._changes.counts_of(activity.run)
            failure = Failure(
                kind="CancelTimeout", message="the run did not stop in time and was cut off"
            )
            marks = (interruption_entry,) if activity.is_interrupted else ()
            _ = await self._recorder.keep(*marks, run_ended_entry(activity.run, "cancelled"))
            result = RunResult(
                run=activity.run,
                status="cancelled",
                text="",
                usage=usage,
                changes=counts,
                error=failure,
            )
            self._finish(result, used, stage=activity.stage, publish=publish)
        self._services.publisher.set_state("idle")
        self._runs.release(activity)

    def _finish(
        self,
        result: RunResult,
        used: RunUsage,
        *,
        stage: RunStage | None,
        publish: Callable[[RunEnded], object],
    ) -> None:
        """Hand the result to those who wait for it, and publish the end."""
        self._runs.finish(result)
        _ = publish(
            RunEnded(
                run=result.run,
                status=result.status,
                usage=result.usage,
                changes=result.changes,
                error=result.error,
                stage=stage,
                duration_ms=used.duration_ms,
                turns=used.answers,
                tool_calls=used.calls,
                parent=self._services.parent,
            )
        )


class RunInput(Value, frozen=True, kw_only=True):
    """The words that a run begins with; an entry when the transcript holds them already."""

    user_input: UserInput
    entry: EntryId | None


class RunCheck(Protocol):
    """Check that is made before a run sends its first request."""

    async def before_run(self, run: RunId) -> None:
        """Check; waits while a person is asked."""
        ...


class RunPreparation:
    """Builds the system prompt of a run, and lets hooks change it and add messages."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        system_prompt: RunSystemPrompt,
        requests: RunRequests,
        toolbox: ToolRegistry,
        tools: ToolContexts,
        hooks: HookRunner,
        recorder: Recorder,
        compaction: Compaction,
    ) -> None:
        self._run = run
        self._system_prompt = system_prompt
        self._requests = requests
        self._toolbox = toolbox
        self._tools = tools
        self._hooks = hooks
        self._recorder = recorder
        self._compaction = compaction

    async def prepare(self, openings: Sequence[RunInput]) -> None:
        """Prepare the first request."""
        specs = tuple(tool.spec for tool in self._toolbox.active().values())
        self._tools.look_ahead(specs)
        system, changed = await self._system_prompt.of_run(
            specs, conversation=self._recorder.context()
        )
        content = tuple(part for opening in openings for part in opening.user_input.content)
        answer = await self._hooks.ask(RunPreparing(content=content, system=system))
        prepared = answer if isinstance(answer, RunPrepared) else RunPrepared()
        self._requests.system = system if prepared.system is None else prepared.system
        self._compaction.set_overhead(self._requests.system, self._toolbox.declarations())
        for message in (*changed, *prepared.messages):
            entry = await self._recorder.keep(added_entry(message))
            publish_added(
                message,
                run=self._run.id,
                item=ItemId(self._run.services.new_id()),
                entry=entry,
                delivery=None,
                publish=self._run.publish,
            )


class RunOpening:
    """Accepts the prompts of a run and prepares its first request."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        recorder: Recorder,
        transcript: RunTranscript,
        inputs: RunInputHooks,
        checkpoints: Checkpoints,
        checks: Sequence[RunCheck],
        budgets: RunBudgets,
        turns: TurnPreparation,
        deferred: DeferredMessages,
        preparation: RunPreparation,
    ) -> None:
        self._run = run
        self._recorder = recorder
        self._transcript = transcript
        self._inputs = inputs
        self._checkpoints = checkpoints
        self._checks = tuple(checks)
        self._budgets = budgets
        self._turns = turns
        self._deferred = deferred
        self._preparation = preparation

    async def open(self, loop: LoopContext, openings: Sequence[RunInput]) -> bool:
        """Accept the prompts and prepare the first request; False: a hook handled them, or nothing is left to do."""
        if not openings and (answer := whole_answer(self._transcript.context())) is not None:
            self._transcript.text = answer.text
            return False
        if any(opening.entry is None for opening in openings):
            _ = await self._recorder.keep(run_started_entry(self._run.id))
        first: EntryId | None = None
        for opening in openings:
            entry = opening.entry or await self._transcript.add_user(opening.user_input)
            publish_input(loop, opening.user_input, entry, turn=None)
            await self._inputs.on_input(opening.user_input, entry)
            first = first or entry
        self._mark(first)
        if self._inputs.handled:
            return False
        for check in self._checks:
            await check.before_run(self._run.id)
        self._budgets.check()
        await self._turns.make_room(pinned=first)
        if any(opening.user_input.custom is None for opening in openings):
            await self._deferred.flush("prompt", run=self._run.id, publish=self._run.publish)
        await self._preparation.prepare(openings)
        return True

    def _mark(self, first: EntryId | None) -> None:
        """Report where the conversation stood before the run's words, for the checkpoint that it may need."""
        transcript = self._recorder.transcript
        entry = None if first is None else transcript.get(first)
        leaf = transcript.leaf if entry is None else entry.parent
        self._checkpoints.begin_run(self._run.id, leaf)


class RunExecutor:
    """Executes one run."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        loop: LoopContext,
        models: ModelSelection,
        config: ActiveConfig,
        usage: UsageTracker,
        budgets: RunBudgets,
        queue: InputQueue,
        opening: RunOpening,
        hooks: RunHooks,
        attempts: Attempts,
        ending: RunEndWriter,
    ) -> None:
        self._run = run
        self._loop = loop
        self._models = models
        self._config = config
        self._usage = usage
        self._budgets = budgets
        self._queue = queue
        self._opening = opening
        self._hooks = hooks
        self._attempts = attempts
        self._ending = ending

    async def run(self, openings: Sequence[RunInput]) -> None:
        """Run to the end. Publishes `run.started` first and `run.ended` last, whatever happens between."""
        self._begin(openings[0].user_input.message_id if openings else None)
        self._run.enter("prepare")
        status: RunStatus = "failed"
        failure: Failure | None = None
        try:
            ended_by: TillerError | None = None
            # The last turn is cut short; what was said of it stays.
            with anyio.move_on_after(self._budgets.time_limit_s) as time_limit:
                ended_by = await self._work(openings)
                if ended_by is None:
                    self._budgets.check_turns()
            if time_limit.cancelled_caught:
                ended_by = self._budgets.out_of_time()
            status = "completed" if ended_by is None else status_of(ended_by)
            failure = None if ended_by is None else failure_of(ended_by)
        except anyio.get_cancelled_exc_class():
            status = "cancelled"
            raise
        except TillerError as error:
            status, failure = status_of(error), failure_of(error)
        except Exception as error:
            # A bug of ours: it ends this run, not the daemon with its other sessions.
            log.exception("run %s failed unexpectedly", self._run.id)
            text = f"internal error ({type(error).__name__}); the details are in the log"
            failure = Failure(kind="Internal", message=text)
        finally:
            failed_in = None if failure is None else self._run.activity.stage
            self._run.enter("summarize")
            try:
                await self._hooks.settled(status)
            finally:
                end = RunEnd(
                    status=status, failure=failure, failed_in=failed_in, text=self._attempts.text
                )
                with anyio.CancelScope(shield=True):
                    await self._ending.settle(self._run, end)

    def _begin(self, message_id: MessageId | None) -> None:
        self._usage.begin_run()
        model = self._models.ref or ""
        parent = self._run.services.parent
        self._run.publish(
            RunStarted(run=self._run.id, message_id=message_id, model=model, parent=parent)
        )
        self._run.services.publisher.set_state("running")

    async def _work(self, openings: Sequence[RunInput]) -> ProviderError | None:
        """Accept the prompts, then run turns until nothing follows; return the error that ends the run, if any."""
        await self._refresh_models()
        if not await self._opening.open(self._loop, openings):
            return None
        await self._hooks.begun(self._loop, [opening.user_input for opening in openings])
        self._run.enter("execute")
        while True:
            step = await self._attempts.run_attempt(self._loop)
            await self._hooks.turns_over()
            match step:
                case StopRun(error=None) if self._more():
                    continue
                case StopRun(error=error):
                    return self._attempts.fail(error)
                case RetryWithoutThinking() | RetryAfter():
                    await self._attempts.prepare_retry(step)
                case CompactAndContinue(error=error):
                    recovered = await self._attempts.recover(step)
                    if not recovered and not (error is None and self._more()):
                        return self._attempts.fail(error)
                case CompactAndStop():
                    await self._attempts.make_room(step)
                    if not self._more():
                        return None

    async def _refresh_models(self) -> None:
        """Read addresses and keys, which may have been corrected since the last run; a task was opened with the present ones."""
        if self._run.services.parent is None:
            await self._config.refresh_models()

    def _more(self) -> bool:
        """Return whether words came while the run was about to end."""
        return self._queue.has_steering() or self._queue.has_follow_ups()


class RunStarter:
    """Begins one run after the other. Between finding the session idle and reserving it there is no waiting."""

    def __init__(
        self,
        services: SessionServices,
        *,
        runs: ActivitySlot,
        queue: InputQueue,
        models: ModelSelection,
        budgets: RunBudgets,
        recorder: Recorder,
        new_executor: Callable[[ActiveRun], RunExecutor],
        after_run: Callable[[RunResult], None],
        begin_reads: Callable[[], None],
    ) -> None:
        self.closed = False
        self._begin_reads = begin_reads
        self._services = services
        self._runs = runs
        self._queue = queue
        self._models = models
        self._budgets = budgets
        self._recorder = recorder
        self._new_executor = new_executor
        self._answered: EntryId | None = None
        """The report of a task for which a run was begun last."""
        self._after_run = after_run

    def check_open(self) -> None:
        """Check that the session is open.

        Raises:
            SessionClosed: The session was closed.
        """
        if self.closed:
            message = f"session {self._services.session!r} is closed; open it again"
            raise SessionClosed(message)

    def reserve(self) -> tuple[Activity, RunId]:
        """Reserve the session for a new run; the caller has just found it idle.

        Raises:
            ModelUnknown: There is no usable model.
            PriceUnknown: There is a budget of money, and the model has no price.
        """
        self._budgets.check_priced()
        run = RunId(self._services.new_id())
        activity = self._runs.reserve("run", run)
        self._begin_reads()
        return activity, run

    def start(self, activity: Activity, run: RunId, openings: tuple[RunInput, ...]) -> None:
        """Start what was reserved; without openings it goes on from where the transcript stands."""
        active = ActiveRun(id=run, activity=activity, services=self._services)
        self._recorder.background.start(partial(self._run, active, openings))

    async def _run(self, run: ActiveRun, openings: tuple[RunInput, ...]) -> None:
        # The requester gets its receipt before the first event of the run (decision 0027).
        await cancel_shielded_checkpoint()
        with self._recorder.background.in_own_task():
            async with self._runs.hold(run.activity):
                if unwritten := self._models.take_unwritten():
                    _ = await self._recorder.keep(*unwritten)
                await self._new_executor(run).run(openings)
        self.go_on()
        result = await self._runs.wait(run.id)
        if result is not None and not self.closed:
            self._after_run(result)

    def go_on(self) -> None:
        """Begin a run with what waits, when nothing goes on and nothing holds it back."""
        if self.closed or self._queue.paused or self._runs.current is not None:
            return
        inputs = self._queue.take_next()
        if not inputs:
            self._queue.hold_images(self._models)
            self._answer_report()
            return
        run = RunId(self._services.new_id())
        activity = self._runs.reserve("run", run)
        self.start(activity, run, tuple(RunInput(user_input=one, entry=None) for one in inputs))

    def _answer_report(self) -> None:
        """Begin a run when the last message is the report of a task, unless the last run did not end well."""
        newest, report = self._runs.newest, _last_report(self._recorder.path())
        if report is None or report == self._answered:
            return
        if newest is not None and newest.status != "completed":
            return
        try:
            activity, run = self.reserve()
        except TillerError as error:
            log.warning("no run answers the report of a task: %s", error)
            return
        self._answered = report
        self._recorder.background.start(partial(self._run_for_report, activity, run))

    async def _run_for_report(self, activity: Activity, run: RunId) -> None:
        _ = await self._recorder.keep(run_started_entry(run))
        await self._run(ActiveRun(id=run, activity=activity, services=self._services), ())


def _last_report(path: Sequence[AnyEntry]) -> EntryId | None:
    """Return the entry of the last message when it is the report of a task."""
    for entry in reversed(path):
        match entry:
            case CustomMessageEntry(custom_type=kind):
                return entry.id if kind == TASK else None
            case MessageEntry() | CompactionEntry() | BranchSummaryEntry() | ColdEntry():
                return None
            case _:
                pass
    return None
