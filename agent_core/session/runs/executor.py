"""A run from its first event to its last: intake, turns, and what follows them."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import anyio

from agent_core.compaction import estimate_text
from agent_core.events import (
    Event,
    Failure,
    Notice,
    RunEnded,
    RunResult,
    RunStarted,
    RunStatus,
)
from agent_core.hooks import RunPrepared, RunPreparing
from agent_core.kernel import EntryId, ItemId, MessageId, RunId
from agent_core.kernel.errors import BudgetExceeded, ProviderError, TillerError, TooManyDenials
from agent_core.kernel.values import Value
from agent_core.loop import LoopContext, RequestConfig, TurnCount, UserInput, publish_input
from agent_core.messages import CustomMessage, ToolCall
from agent_core.providers.messages.cache_retention import configured_retention
from agent_core.session.context import SessionContext, failure_of, refresh_models, status_of
from agent_core.session.history.compaction import Compaction
from agent_core.session.history.entries import (
    added_entry,
    interruption_entry,
    run_ended_entry,
    run_started_entry,
)
from agent_core.session.input.deferred_messages import publish_added
from agent_core.session.input.queue_events import pause_queue
from agent_core.session.input.system_prompt import PromptCacheKey
from agent_core.session.runs.attempts import Attempts
from agent_core.session.runs.budgets import exhausted_budget
from agent_core.session.runs.hooks import RunHooks
from agent_core.session.runs.retry_policy import (
    CompactAndContinue,
    CompactAndStop,
    RetryAfter,
    RetryWithoutThinking,
    StopRun,
    whole_answer,
)
from agent_core.session.runs.slot import Activity, ActivitySlot
from agent_core.session.runs.transcript_port import RunTranscript
from agent_core.session.tools.context import look_ahead, tool_context
from agent_core.tools import ToolContext, ToolSpec
from agent_core.tools.runner import ToolRunner

SETTLE_S = 5.0
"""How long a run may take to write its end."""
LAST_TURN_S = 5.0
"""How long the turn going on may last when the run's minutes are over: most are done by then, and a hung one is not waited for."""
MINUTE_S = 60
OUT_OF_TIME = "the run ended because its minutes were over (budgets.minutes); say «go on» for another run, or raise the budget"

T = TypeVar("T")

log = logging.getLogger(__name__)


class RunInput(Value, frozen=True, kw_only=True):
    """The words that a run begins with; an entry when the transcript holds them already."""

    user_input: UserInput
    entry: EntryId | None


class RunExecutor:
    """Conducts one run."""

    def __init__(
        self,
        parts: SessionContext,
        activity: Activity,
        *,
        runs: ActivitySlot,
        compaction: Compaction,
    ) -> None:
        self._parts = parts
        self._activity = activity
        self._runs = runs
        self._compaction = compaction
        self._run = activity.run or RunId(parts.new_id())
        self._system = ""
        self._port = RunTranscript(
            parts, activity, run=self._run, compaction=compaction, publish=self._publish
        )
        self._hooks = RunHooks(parts, self._run)
        self._attempts = Attempts(
            parts,
            activity,
            run=self._run,
            port=self._port,
            compaction=compaction,
            publish=self._publish,
        )

    async def run(self, openings: Sequence[RunInput]) -> None:
        """Run to the end. Tells `run.started` first and `run.ended` last, whatever happens between."""
        message_id = openings[0].user_input.message_id if openings else None
        self._begin(message_id)
        status: RunStatus = "failed"
        failure: Failure | None = None
        try:
            error = await _in_time(self._parts, self._work(openings))
            status = "completed" if error is None else status_of(error)
            failure = None if error is None else failure_of(error)
        except anyio.get_cancelled_exc_class():
            status = "cancelled"
            raise
        except TooManyDenials as error:
            status, failure = "refused", failure_of(error)
        except BudgetExceeded as error:
            status, failure = "budget", failure_of(error)
        except TillerError as error:
            status, failure = status_of(error), failure_of(error)
        except Exception as error:
            # A bug of ours: it ends this run, not the daemon with its other sessions.
            log.exception("run %s failed unexpectedly", self._run)
            text = f"internal error ({type(error).__name__}); the details are in the log"
            failure = Failure(kind="Internal", message=text)
        finally:
            try:
                await self._hooks.settled(status)
            finally:
                with anyio.move_on_after(SETTLE_S, shield=True):
                    await self._settle(status, failure)

    def _begin(self, message_id: MessageId | None) -> None:
        self._parts.tally.begin_run(self._parts.clock.monotonic_s())
        model = self._parts.models.ref or ""
        self._publish(RunStarted(run=self._run, message_id=message_id, model=model))
        self._parts.publisher.set_state("running")

    async def _settle(self, status: RunStatus, failure: Failure | None) -> None:
        self._parts.gate.end_run(self._run)
        parts = self._parts
        if self._activity.abandoned:
            dropped = parts.publisher.dropped
            log.warning(
                "run %s was cut off; %d late events were dropped so far", self._run, dropped
            )
            return
        usage = parts.tally.of_run(parts.models.context_window)
        used = parts.tally.used(parts.clock.monotonic_s())
        counts = await parts.changes.counts_of(self._run)
        parts.changes.settle()
        await parts.deferred.flush("turn", "run", run=self._run, publish=self._publish)
        marks = (
            (interruption_entry,) if status == "cancelled" and self._activity.is_interrupted else ()
        )
        _ = await parts.recorder.keep(*marks, run_ended_entry(self._run, status))
        await parts.checkpoints.settle_run(self._run)
        if (lost := parts.changes.lost(self._run, parts.place.workspace.root)) is not None:
            self._publish(Notice(level="warning", text=lost))
        if status != "completed":
            pause_queue(parts)
        self._runs.finish(
            RunResult(
                run=self._run,
                status=status,
                text=self._port.text,
                usage=usage,
                changes=counts,
                error=failure,
            )
        )
        self._publish(
            RunEnded(
                run=self._run,
                status=status,
                usage=usage,
                changes=counts,
                error=failure,
                duration_ms=used.duration_ms,
                turns=used.answers,
                tool_calls=used.calls,
            )
        )
        parts.publisher.set_state("idle")

    async def _work(self, openings: Sequence[RunInput]) -> ProviderError | None:
        """Accept the prompts, then run turns until nothing follows; return the error that ends the run, if any."""
        # An address or a key may have been corrected since the last run.
        await refresh_models(self._parts)
        loop = self._loop()
        if not await self._open(loop, openings):
            return None
        await self._hooks.begun(loop, [opening.user_input for opening in openings])
        while True:
            step = await self._attempts.run_attempt(loop)
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

    async def _open(self, loop: LoopContext, openings: Sequence[RunInput]) -> bool:
        """Accept the prompts and prepare the first request; False: a hook handled them, or nothing is left to do."""
        if not openings and (answer := whole_answer(self._port.context())) is not None:
            self._port.text = answer.text
            return False
        if any(opening.entry is None for opening in openings):
            _ = await self._parts.recorder.keep(run_started_entry(self._run))
        first: EntryId | None = None
        for opening in openings:
            entry = opening.entry or await self._port.add_user(opening.user_input)
            publish_input(loop, opening.user_input, entry, turn=None)
            await self._port.on_input(opening.user_input, entry)
            first = first or entry
        self._mark(first)
        if self._port.handled:
            return False
        if self._parts.trusting is not None:
            await self._parts.trusting.before_run(self._run)
        if self._parts.servers is not None:
            await self._parts.servers.before_run(self._run)
        self._port.check_budgets()
        await self._port.make_room(pinned=first)
        if any(opening.user_input.custom is None for opening in openings):
            await self._parts.deferred.flush("prompt", run=self._run, publish=self._publish)
        await self._prepare(openings)
        return True

    def _mark(self, first: EntryId | None) -> None:
        """Report where the conversation stood before the run's words, for the checkpoint that it may need."""
        transcript = self._parts.recorder.transcript
        entry = None if first is None else transcript.get(first)
        leaf = transcript.leaf if entry is None else entry.parent
        self._parts.checkpoints.begin_run(self._run, leaf)

    def _more(self) -> bool:
        """Return whether words came while the run was about to end."""
        return self._parts.inbox.has_steering() or self._parts.inbox.has_follow_ups()

    async def _prepare(self, openings: Sequence[RunInput]) -> None:
        """Build the system prompt and let hooks change it and add words."""
        parts = self._parts
        specs = tuple(tool.spec for tool in parts.toolbox.active().values())
        look_ahead(parts, specs)
        system, changed = await self._system_of(specs)
        content = tuple(part for opening in openings for part in opening.user_input.content)
        answer = await parts.hooks.ask(RunPreparing(content=content, system=system))
        prepared = answer if isinstance(answer, RunPrepared) else RunPrepared()
        self._system = system if prepared.system is None else prepared.system
        declared = "".join(map(repr, parts.toolbox.declarations()))
        self._compaction.overhead_tokens = estimate_text(self._system) + estimate_text(declared)
        for message in (*changed, *prepared.messages):
            entry = await parts.recorder.keep(added_entry(message))
            item = ItemId(parts.new_id())
            publish_added(
                message, run=self._run, item=item, entry=entry, delivery=None, publish=self._publish
            )

    async def _system_of(self, specs: Sequence[ToolSpec]) -> tuple[str, tuple[CustomMessage, ...]]:
        """Return the system prompt, and what is told in the conversation of parts that have changed since it was sent."""
        parts = self._parts
        if parts.prompting is None:
            return await parts.system_prompt(specs), ()
        now = PromptCacheKey(
            model=parts.models.ref,
            trusted=parts.place.permissions.is_trusted(),
            roots=tuple(parts.place.workspace.roots),
        )
        return await parts.prompting.of_run(specs, conversation=parts.recorder.context(), now=now)

    def _publish(self, event: Event) -> None:
        self._parts.publisher.publish_for(self._activity, event)

    def _loop(self) -> LoopContext:
        parts = self._parts
        runner = ToolRunner(
            tools=parts.toolbox.active,
            hooks=parts.hooks,
            policy=parts.gate,
            clock=parts.clock,
            context=self._context,
            run=self._run,
        )
        return LoopContext(
            run=self._run,
            session=parts.session,
            demand=self._demand,
            tools=runner,
            inbox=parts.inbox,
            recording=self._port,
            intake=self._port,
            before_turn=self._port,
            hooks=parts.hooks,
            publish=self._publish,
            clock=parts.clock,
            new_id=parts.new_id,
            items=self._activity,
            turns=TurnCount(),
        )

    def _demand(self) -> RequestConfig:
        parts = self._parts
        model = parts.models.required()
        self._attempts.asked = model.facts
        return RequestConfig(
            model=model,
            thinking=parts.models.thinking,
            system=self._system,
            tools=parts.toolbox.declarations(),
            without_thoughts=self._attempts.plain,
            parallel=parts.options.tool_execution == "parallel",
            skip_on_steer=parts.options.skip_on_steer,
            steer_grace_s=parts.options.steer_grace_s,
            cache=configured_retention(model.facts) or parts.options.cache,
        )

    def _context(self, call: ToolCall, output: Callable[[str], None]) -> ToolContext:
        return tool_context(self._parts, call, run=self._run, output=output, publish=self._publish)


async def _in_time(parts: SessionContext, work: Coroutine[object, None, T]) -> T:
    """Work; a turn that does not end soon after the run's minutes are over is cut short, and what was said of it stays.

    Raises:
        BudgetExceeded: They are over.
    """
    minutes = parts.place.allowance.budgets.minutes
    with anyio.move_on_after(None if minutes is None else minutes * MINUTE_S + LAST_TURN_S):
        return await work
    used = parts.tally.used(parts.clock.monotonic_s())
    raise BudgetExceeded(exhausted_budget(parts.place.allowance.budgets, used) or OUT_OF_TIME)
