"""Ports of the loop to a run: its transcript, the hooks of its input, and the preparation of its turns."""

from collections.abc import Sequence

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Struct

from agent_core.events import Notice, RetryEnded, RunStatus, SessionUsage
from agent_core.hooks import (
    HookRunner,
    InputHandled,
    InputReplaced,
    InputTyped,
    RunBegun,
    RunOver,
    RunSettled,
)
from agent_core.kernel import EntryId, RunId, new_entry_id
from agent_core.kernel.errors import TooManyDenials
from agent_core.loop import LoopContext, UserInput, notify_input_hooks
from agent_core.messages import (
    AssistantMessage,
    CustomMessage,
    Image,
    Message,
    Text,
    ToolResultMessage,
    UserContent,
)
from agent_core.session.context import ActiveRun
from agent_core.session.history.compaction import Compaction
from agent_core.session.history.entries import input_entries, message_entry, replaced_entry
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.commands import SlashCommands, may_name_template
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.input.queue import InputQueue, MessageIndex
from agent_core.session.permissions.permission_prompts import MOST_DENIALS, PermissionPrompts
from agent_core.session.permissions.trust import TrustManager
from agent_core.session.runs.slot import AFTER_CANCEL_S
from agent_core.session.runs.usage import RunBudgets, UsageTracker
from agent_core.transcript.entries import AnyEntry

LAST_ANSWER = "The run has reached its limit of {most} answers (maxTurns). The model is asked for a last one without tools."
LAST_REQUEST = (
    "This run has reached its limit of {most} answers, and no more tool calls are run. Write your last answer now: what "
    "is done, what is not done or not verified, and what the next step is."
)
TOO_MANY_DENIALS = f"the run ended because it was refused {MOST_DENIALS} times; say how it should go on, or allow more"


class Retries(Struct, kw_only=True):
    """How often a prompt's model calls were made again."""

    made: int = 0
    """Since the user's last words; an answer between them does not begin the count anew."""
    going_on: int = 0
    """The number of the one that goes on; 0: none does."""


class RunHooks:
    """Caller of the hooks of one run."""

    def __init__(
        self, run: RunId, *, hooks: HookRunner, usage: UsageTracker, recorder: Recorder
    ) -> None:
        self._run = run
        self._hooks = hooks
        self._usage = usage
        self._recorder = recorder
        self._is_open = False

    async def begun(self, loop: LoopContext, inputs: Sequence[UserInput]) -> None:
        """Report that the run begins, and of the words that it begins with."""
        self._is_open = True
        _ = await self._hooks.ask(RunBegun(run=self._run))
        for one in inputs:
            await notify_input_hooks(loop, one)

    async def turns_over(self) -> None:
        """Report that the turns have come to their end; a retry or a compaction may follow."""
        if self._hooks.listens(RunOver):
            used = self._usage.used()
            _ = await self._hooks.ask(
                RunOver(
                    run=self._run,
                    messages=self._recorder.context(),
                    duration_ms=used.duration_ms,
                    turns=used.answers,
                    tool_calls=used.calls,
                )
            )

    async def settled(self, status: RunStatus) -> None:
        """Report that the run is over, if it was told that it begins; of a cancelled one both ends are told."""
        if not self._is_open:
            return
        if status != "cancelled":
            await self._settled(status)
            return
        with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
            await self.turns_over()
            await self._settled(status)

    async def _settled(self, status: RunStatus) -> None:
        used = self._usage.used()
        _ = await self._hooks.ask(
            RunSettled(
                run=self._run,
                status=status,
                duration_ms=used.duration_ms,
                turns=used.answers,
                tool_calls=used.calls,
            )
        )


class RunInputHooks:
    """Asks hooks about the input of a run, and expands skills and templates."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        hooks: HookRunner,
        commands: SlashCommands,
        trust: TrustManager | None,
        recorder: Recorder,
        queue: InputQueue,
        usage: UsageTracker,
    ) -> None:
        self.handled = False
        """A hook dealt with the input."""
        self._run = run
        self._hooks = hooks
        self._commands = commands
        self._trust = trust
        self._recorder = recorder
        self._queue = queue
        self._usage = usage

    async def on_input(self, user_input: UserInput, entry: EntryId) -> None:
        """Ask the input hooks; content changed by them is stored beside the original message, which stays unchanged."""
        if user_input.custom is not None:
            return
        if user_input.queue_id is not None and not self._run.activity.abandoned:
            self._queue.publish()
        content = user_input.content
        match await self._hooks.ask(InputTyped(content=content, source=user_input.source)):
            case InputReplaced(content=replaced):
                content = replaced
            case InputHandled():
                self.handled = True
                _ = await self._recorder.keep(replaced_entry(entry, None))
                return
            case _:
                pass
        if user_input.source == "person":
            content = await self._expand(content)
        if content is not user_input.content:
            _ = await self._recorder.keep(replaced_entry(entry, content))
            self._usage.edited()

    async def _expand(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
        """Expand the skill or template that the content begins with."""
        if may_name_template(content) and self._trust is not None:
            # It may be the project's, and a person may be about to say that they trust it.
            await self._trust.before_run(self._run.id)
        return await self._commands.expand(content) or content


class RunTranscript:
    """Writes the messages of a run; also remembers its last text and its retries."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        recorder: Recorder,
        message_index: MessageIndex,
        usage: UsageTracker,
    ) -> None:
        self.text = ""
        """The last words of the model."""
        self.retries = Retries()
        self.recovered = False
        """An overflow since the user's last words was answered by a compaction already; there is only one."""
        self.attempt: EntryId | None = None
        """The newest answer, when it failed or was cut off and nothing has followed it."""
        self._run = run
        self._recorder = recorder
        self._message_index = message_index
        self._usage = usage

    async def exclude_attempt(self) -> None:
        """Leave the attempt that just failed out of the model's context; it stays in the file."""
        if self.attempt is None:
            return
        target, self.attempt = self.attempt, None
        _ = await self._recorder.keep(replaced_entry(target, None))
        self._usage.edited()

    async def add_user(self, user_input: UserInput) -> EntryId:
        """Keep words that enter the conversation."""
        self.recovered = False
        self.attempt = None
        if user_input.custom is None:
            # What a program adds is no prompt: one that adds words at every turn would retry without end.
            self.retries.made = 0
        entry = await self._recorder.keep(*input_entries(user_input, self._run.id))
        self._message_index.record(user_input.message_id, self._run.id)
        return entry

    def next_answer(self) -> EntryId:
        """Return an id for the entry of an answer that begins: its events have the ids that a reader of the file sees."""
        at_ms = self._run.services.clock.now_ms()
        return new_entry_id(self._recorder.transcript, at_ms=at_ms)

    async def add_assistant(self, message: AssistantMessage, entry: EntryId) -> EntryId:
        """Keep an answer, count it, and end a retry that it made good; too late for an abandoned run."""
        if self._run.activity.abandoned:
            return EntryId("")
        transcript, stored = self._recorder.transcript, message_entry(message)

        def draft(drawn: EntryId, parent: EntryId | None, at_ms: int) -> AnyEntry:
            return stored(drawn if entry in transcript else entry, parent, at_ms)

        kept = await self._recorder.keep(draft)
        self._usage.answered(message)
        self.attempt = None if message.stop_reason in {"stop", "tool_use"} else kept
        self.text = message.text or self.text
        whole = message.stop_reason not in {"error", "aborted"}
        if whole and self.retries.going_on:
            attempt, self.retries.going_on = self.retries.going_on, 0
            self._run.publish(RetryEnded(run=self._run.id, success=True, attempt=attempt))
        if whole or message.usage.total:
            self._run.publish(SessionUsage(usage=self._usage.of_session()))
        return kept

    async def store_images(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
        """Return content with its images stored; an image that cannot be stored stays in it."""
        if Image not in map(type, content):
            return content
        from agent_core.session.attachments import stored_result  # noqa: PLC0415 - at first use

        return await stored_result(content, self._recorder.attachments)

    async def add_tool_result(self, result: ToolResultMessage) -> EntryId:
        """Keep a tool's result, unless the run was abandoned and has a synthetic one already."""
        if self._run.activity.abandoned:
            return EntryId("")
        self.attempt = None
        self._usage.returned()
        return await self._recorder.keep(message_entry(result))

    def context(self) -> tuple[Message, ...]:
        """Return the conversation as the model should see it."""
        return self._recorder.context()


class TurnPreparation:
    """Checks before each turn whether the run may continue, and makes room for it."""

    def __init__(
        self,
        run: ActiveRun,
        *,
        prompts: PermissionPrompts,
        budgets: RunBudgets,
        deferred: DeferredMessages,
        compaction: Compaction,
    ) -> None:
        self._run = run
        self._prompts = prompts
        self._budgets = budgets
        self._deferred = deferred
        self._compaction = compaction

    async def before_turn(self) -> None:
        """Compact between two turns when the context is nearly full."""
        # A run that was cancelled meanwhile takes no more words out of the queue.
        await checkpoint()
        if self._prompts.is_over(self._run.id):
            raise TooManyDenials(TOO_MANY_DENIALS)
        self._budgets.check()
        if (most := self._budgets.last_turn) is not None:
            self._run.publish(Notice(level="info", text=LAST_ANSWER.format(most=most)))
            await self._deferred.accept(self._last_request(most), flush_at="turn")
        await self._deferred.flush("turn", run=self._run.id, publish=self._run.publish)
        await self.make_room()

    def _last_request(self, most: int) -> CustomMessage:
        return CustomMessage(
            custom_type="tiller.maxTurns",
            content=(Text(text=LAST_REQUEST.format(most=most)),),
            display=False,
            at_ms=self._run.services.clock.now_ms(),
        )

    async def make_room(self, *, pinned: EntryId | None = None) -> None:
        """Compact when the context is nearly full; after one failure not again in this run.

        Args:
            pinned: The user's newest words, which stay as they are.

        Raises:
            BudgetExceeded: The summary has used up what the run was given.
        """
        if self.is_full():
            _ = await self._compaction.compact(self._run.activity, "threshold", pinned=pinned)
            self._budgets.check()

    def is_full(self) -> bool:
        """Return whether room should be made and can be."""
        compaction = self._compaction
        return not compaction.gave_up_in(self._run.activity) and compaction.is_over_threshold()
