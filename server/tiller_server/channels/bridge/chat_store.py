"""Transactions of a bridge: writes to the store of its account, after each of which the outbox is looked at."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from agent_core.channels.messaging.delivery.sender import OutboxSender
from agent_core.channels.messaging.delivery.text_parts import text_parts
from agent_core.channels.messaging.port import Capabilities, Reaction, Settlement, Target
from agent_core.channels.messaging.store import approvals, inbox, outbox
from agent_core.channels.messaging.store.approvals import StoredApproval
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.channels.messaging.store.inbox import InboxRow
from agent_core.channels.messaging.store.outbox import (
    FinishAnswer,
    OpenAnswer,
    PostText,
    SetReaction,
    SettleApproval,
    key_of,
)
from agent_core.kernel import Clock
from agent_core.kernel.redaction.redactor import TextRedactor
from tiller_server.channels.bridge.approval_prompts import ApprovalEnd, PromptDraft
from tiller_server.channels.bridge.run_reader import RunFinished

T = TypeVar("T")
REACTIONS: Final[Mapping[str, Reaction]] = {
    "completed": "completed",
    "aborted": "aborted",
    "failed": "failed",
}


class ChatStore:
    """The store of an account, as the parts of a bridge write it."""

    def __init__(
        self,
        database: MessagingDatabase,
        sender: OutboxSender,
        *,
        limits: Capabilities,
        cleaner: TextRedactor,
        clock: Clock,
    ) -> None:
        """Prepare it.

        Args:
            database: The open file.
            sender: Sender of its outbox.
            limits: Limits of the platform.
            cleaner: Removes secrets from everything that is stored in the outbox.
            clock: Time.
        """
        self._database = database
        self._sender = sender
        self.limits: Final = limits
        self.cleaner: Final = cleaner
        self.clock: Final = clock

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Return the result of a function that runs in a transaction; as of `MessagingDatabase.run`."""
        result = await self._database.run(work)
        self._sender.notify()
        return result

    async def prune(self) -> None:
        """Forget what is over and old."""
        now_ms = self.clock.now_ms()

        def prune(tx: Transaction) -> None:
            inbox.prune(tx, now_ms=now_ms)
            outbox.prune(tx, now_ms=now_ms)
            approvals.prune(tx, now_ms=now_ms)

        await self._database.run(prune)

    def post(
        self,
        tx: Transaction,
        text: str,
        *,
        cause: str,
        target: Target,
        binding: int | None = None,
        reply_to: str | None = None,
    ) -> None:
        """Store a text as one message or several.

        Args:
            tx: The transaction.
            text: Markdown.
            cause: Identity of its cause; the same cause posts once.
            target: Where it goes.
            binding: Conversation, whose thread counts.
            reply_to: Message that it answers.
        """
        parts = self._parts(text)
        for number, part in enumerate(parts):
            _ = outbox.add(
                tx,
                PostText(text=part, reply_to=reply_to),
                key=key_of("text", cause, str(number)),
                chat=target.chat,
                thread=target.thread,
                binding=binding,
                now_ms=self.clock.now_ms(),
            )

    def reply(self, tx: Transaction, row: InboxRow, text: str, *, cause: str = "reply") -> None:
        """Store a line that answers a message where it stands."""
        is_group = row.message.chat_kind == "group"
        self.post(
            tx,
            text,
            cause=f"{cause} {row.key}",
            target=row.target,
            reply_to=row.key if is_group else None,
        )

    def react(self, tx: Transaction, row: InboxRow, reaction: Reaction) -> None:
        """Store a reaction to a message."""
        _ = outbox.add(
            tx,
            SetReaction(message=row.key, reaction=reaction),
            key=key_of("react", row.key, reaction),
            chat=row.chat,
            thread=row.thread,
            now_ms=self.clock.now_ms(),
        )

    def open_answer(self, tx: Transaction, run: str, bound: Binding) -> None:
        """Store the begin of the answer of a run."""
        rows = inbox.of_run(tx, run)
        reply_to = rows[0].key if rows and bound.kind == "group" else None
        _ = outbox.add(
            tx,
            OpenAnswer(run=run, reply_to=reply_to),
            key=key_of("open", run),
            chat=bound.chat,
            binding=bound.id,
            now_ms=self.clock.now_ms(),
        )

    def finish_run(self, tx: Transaction, over: RunFinished, bound: Binding) -> None:
        """Store the whole answer of a run, and the end of the messages that it answers."""
        if over.is_shown:
            self._finish_answer(tx, over, bound)
        for row in inbox.of_run(tx, over.run):
            self.react(tx, row, REACTIONS[over.outcome])
            inbox.finish(tx, row, "done", over.outcome)

    def _finish_answer(self, tx: Transaction, over: RunFinished, bound: Binding) -> None:
        first, *others = self._parts(over.text)
        finished = FinishAnswer(run=over.run, text=first, outcome=over.outcome)
        _ = outbox.add(
            tx,
            finished,
            key=key_of("finish", over.run),
            chat=bound.chat,
            binding=bound.id,
            now_ms=self.clock.now_ms(),
        )
        for number, part in enumerate(others):
            _ = outbox.add(
                tx,
                PostText(text=part),
                key=key_of("rest", over.run, str(number)),
                chat=bound.chat,
                binding=bound.id,
                now_ms=self.clock.now_ms(),
            )

    def ask(
        self, tx: Transaction, draft: PromptDraft, *, session: str, run: str | None, bound: Binding
    ) -> None:
        """Store an approval, once."""
        now_ms = self.clock.now_ms()
        is_new = approvals.add(
            tx,
            draft.prompt,
            kind=draft.kind,
            session=session,
            run=run,
            binding=bound.id,
            chat=bound.chat,
            answers=draft.answers,
            now_ms=now_ms,
        )
        if is_new:
            _ = outbox.add(
                tx,
                outbox.AskApproval(prompt=draft.prompt),
                key=key_of("ask", draft.prompt.request),
                chat=bound.chat,
                binding=bound.id,
                now_ms=now_ms,
            )

    def settle(self, tx: Transaction, approval: StoredApproval, end: ApprovalEnd) -> Settlement:
        """Store how an approval ended, unless it had ended; return how it has ended."""
        if (settled := approval.settled) is not None:
            return settled
        now_ms = self.clock.now_ms()
        settlement = Settlement(label=end.label, by=end.by, at_ms=now_ms, allowed=end.allowed)
        if approvals.settle(tx, approval.request, settlement):
            _ = outbox.add(
                tx,
                SettleApproval(prompt=approval.shown, settlement=settlement),
                key=key_of("settle", approval.request),
                chat=approval.chat,
                binding=approval.binding,
                now_ms=now_ms,
            )
        return settlement

    def first_part(self, text: str) -> str:
        """Return the part of a text that a running answer shows, without secrets."""
        return self._parts(text)[0]

    def _parts(self, text: str) -> Sequence[str]:
        return text_parts(self.cleaner.text(text), limit_bytes=self.limits.text_bytes)
