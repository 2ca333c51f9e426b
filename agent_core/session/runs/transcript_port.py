"""Port of the loop to a run: accepts messages, writes the transcript, compacts between turns."""

from collections.abc import Callable

from anyio.lowlevel import checkpoint
from msgspec import Struct

from agent_core.events import Event, RetryEnded, SessionUsage
from agent_core.hooks import InputHandled, InputReplaced, InputTyped
from agent_core.kernel import EntryId, RunId
from agent_core.kernel.errors import BudgetExceeded, TooManyDenials
from agent_core.loop import UserInput
from agent_core.messages import AssistantMessage, Message, ToolResultMessage, UserContent
from agent_core.session.context import SessionContext
from agent_core.session.history.compaction import Compaction
from agent_core.session.history.entries import input_entries, message_entry, replaced_entry
from agent_core.session.input.commands import may_name_template
from agent_core.session.input.queue_events import publish_queue
from agent_core.session.permissions.permission_prompts import MOST_DENIALS
from agent_core.session.runs.budgets import exhausted_budget, unpriced
from agent_core.session.runs.slot import Activity

TOO_MANY_DENIALS = f"the run ended because it was refused {MOST_DENIALS} times; say how it should go on, or allow more"


class Retries(Struct, kw_only=True):
    """How often a prompt's model calls were made again."""

    made: int = 0
    """Since the user's last words; an answer between them does not begin the count anew."""
    going_on: int = 0
    """The number of the one that goes on; 0: none does."""


class RunTranscript:
    """The run as its loop sees it; also remembers what the run has said and how often it was retried."""

    def __init__(
        self,
        parts: SessionContext,
        activity: Activity,
        *,
        run: RunId,
        compaction: Compaction,
        publish: Callable[[Event], None],
    ) -> None:
        self.text = ""
        """The last words of the model."""
        self.retries = Retries()
        self.handled = False
        """A hook dealt with the user's words."""
        self.recovered = False
        """An overflow since the user's last words was answered by a compaction already; there is only one."""
        self._attempt: EntryId | None = None
        self._parts = parts
        self._activity = activity
        self._run = run
        self._compaction = compaction
        self._publish = publish

    async def on_input(self, user_input: UserInput, entry: EntryId) -> None:
        """Ask the input hooks; content changed by them is stored beside the original message, which stays unchanged."""
        if user_input.custom is not None:
            return
        if user_input.queue_id is not None and not self._activity.abandoned:
            publish_queue(self._parts)
        content = user_input.content
        match await self._parts.hooks.ask(InputTyped(content=content, source=user_input.source)):
            case InputReplaced(content=replaced):
                content = replaced
            case InputHandled():
                self.handled = True
                _ = await self._parts.recorder.keep(replaced_entry(entry, None))
                return
            case _:
                pass
        if user_input.source == "person":
            content = await self._expand(content)
        if content is not user_input.content:
            _ = await self._parts.recorder.keep(replaced_entry(entry, content))
            self._parts.tally.edited()

    async def _expand(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...]:
        """Expand the skill or template that the content begins with."""
        if may_name_template(content) and self._parts.trusting is not None:
            # It may be the project's, and a person may be about to say that they trust it.
            await self._parts.trusting.before_run(self._run)
        return await self._parts.commands.expand(content) or content

    async def before_turn(self) -> None:
        """Compact between two turns when the context is nearly full."""
        # A run that was cancelled meanwhile takes no more words out of the queue.
        await checkpoint()
        if self._parts.gate.prompts.is_over(self._run):
            raise TooManyDenials(TOO_MANY_DENIALS)
        self.check_budgets()
        await self._parts.deferred.flush("turn", run=self._run, publish=self._publish)
        await self.make_room()

    def check_budgets(self) -> None:
        """Check that the run may send its next request to the model.

        Raises:
            BudgetExceeded: A budget is used up, or its use cannot be measured.
        """
        parts = self._parts
        budgets = parts.place.allowance.budgets
        why = exhausted_budget(budgets, parts.tally.used(parts.clock.monotonic_s()))
        why = why or unpriced(budgets, parts.models.required().facts)
        if why is not None:
            raise BudgetExceeded(why)

    async def make_room(self, *, pinned: EntryId | None = None) -> None:
        """Compact when the context is nearly full; after one failure not again in this run.

        Args:
            pinned: The user's newest words, which stay as they are.

        Raises:
            BudgetExceeded: The summary has used up what the run was given.
        """
        if self.is_full():
            _ = await self._compaction.compact(self._activity, "threshold", pinned=pinned)
            self.check_budgets()

    def is_full(self) -> bool:
        """Return whether room should be made and can be."""
        compaction = self._compaction
        return not compaction.gave_up_in(self._activity) and compaction.is_over_threshold()

    async def exclude_attempt(self) -> None:
        """Leave the attempt that just failed out of the model's context; it stays in the file."""
        if self._attempt is None:
            return
        target, self._attempt = self._attempt, None
        _ = await self._parts.recorder.keep(replaced_entry(target, None))
        self._parts.tally.edited()

    @property
    def attempt(self) -> EntryId | None:
        """The newest answer, when it failed or was cut off and nothing has followed it."""
        return self._attempt

    async def add_user(self, user_input: UserInput) -> EntryId:
        """Keep words that enter the conversation."""
        self.recovered = False
        self._attempt = None
        if user_input.custom is None:
            # What a program adds is no prompt: one that adds words at every turn would retry without end.
            self.retries.made = 0
        entry = await self._parts.recorder.keep(*input_entries(user_input, self._run))
        self._parts.message_index.record(user_input.message_id, self._run)
        return entry

    async def add_assistant(self, message: AssistantMessage) -> EntryId:
        """Keep an answer, count it, and end a retry that it made good; too late for a run that was fenced off."""
        if self._activity.abandoned:
            return EntryId("")
        entry = await self._parts.recorder.keep(message_entry(message))
        parts = self._parts
        parts.tally.answered(message)
        self._attempt = None if message.stop_reason in {"stop", "tool_use"} else entry
        self.text = message.text or self.text
        whole = message.stop_reason not in {"error", "aborted"}
        if whole and self.retries.going_on:
            attempt, self.retries.going_on = self.retries.going_on, 0
            self._publish(RetryEnded(run=self._run, success=True, attempt=attempt))
        if whole or message.usage.total:
            self._publish(SessionUsage(usage=parts.tally.of_session(parts.models.context_window)))
        return entry

    async def add_tool_result(self, result: ToolResultMessage) -> EntryId:
        """Keep a tool's result, unless the run was fenced off and has a synthetic one already."""
        if self._activity.abandoned:
            return EntryId("")
        self._attempt = None
        self._parts.tally.returned()
        return await self._parts.recorder.keep(message_entry(result))

    def context(self) -> tuple[Message, ...]:
        """Return the conversation as the model should see it."""
        return self._parts.recorder.context()
