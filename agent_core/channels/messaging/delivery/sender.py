"""Sends the outbox of an account: in order for each chat, within the rates, repeated until it is confirmed or dead."""

import asyncio
import logging
from random import SystemRandom
from typing import Final, assert_never

import anyio

from agent_core.channels.messaging.delivery.live_answers import LiveAnswers
from agent_core.channels.messaging.delivery.rate_limit import CallRate
from agent_core.channels.messaging.port import (
    ApprovalPrompt,
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    MessagingChannel,
    RunningAnswer,
    Target,
)
from agent_core.channels.messaging.store import approvals, bindings, outbox
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.channels.messaging.store.outbox import (
    KEYED,
    AnswerRow,
    AskApproval,
    FinishAnswer,
    OpenAnswer,
    OutboxRow,
    PostFile,
    PostText,
    SetReaction,
    SettleApproval,
)
from agent_core.kernel import Clock
from agent_core.kernel.values import Value

MOST_S: Final = 86_400.0
"""How long a message is repeated before it is dead."""
OPTIONAL_S: Final = 60.0
"""How long a reaction is repeated; it is dropped afterwards."""
MOST_DELAY_S: Final = 60.0
WINDOW_SHARE: Final = 0.9
"""Part of the key window in which a key is trusted."""
LOOK_BACK_S: Final = 60.0
_log = logging.getLogger(__name__)


class Sent(Value, frozen=True, kw_only=True):
    """A confirmation, with everything that is recorded with it."""

    message: str | None = None
    thread: str | None = None
    answer: AnswerRow | None = None


class _SentAsText(Exception):
    """An answer that grows cannot be finished; its text is sent as a message."""


class OutboxSender:
    """The sender of one account. `run` has to run; `notify` wakes it after each transaction that wrote a message."""

    def __init__(
        self,
        database: MessagingDatabase,
        channel: MessagingChannel,
        *,
        clock: Clock,
    ) -> None:
        """Prepare it.

        Args:
            database: The open file of the account.
            channel: The platform.
            clock: Time.
        """
        self._database = database
        self._channel = channel
        self._clock = clock
        self._random = SystemRandom()
        limits = channel.capabilities
        self._rate = CallRate(chat_rate=limits.chat_rate, app_rate=limits.app_rate, clock=clock)
        self.live: Final = LiveAnswers(
            self._rate,
            interval_s=limits.stream_interval_s,
            store_token=self._store_token,
            clock=clock,
        )
        self._lanes: set[str] = set()
        self._changed = anyio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether no message is being sent and no answer grows."""
        return not self._lanes and not self.live.count

    def notify(self) -> None:
        """Look at the outbox again."""
        self._changed.set()

    async def run(self) -> None:
        """Send what is in the outbox, for as long as it is not cancelled.

        Raises:
            StorageUnavailable: The file cannot be used.
        """
        async with asyncio.TaskGroup() as tasks:
            _ = tasks.create_task(self.live.run())
            while True:
                self._changed = anyio.Event()
                for chat in await self._database.run(outbox.chats_waiting):
                    if chat not in self._lanes:
                        self._lanes.add(chat)
                        _ = tasks.create_task(self._send_chat(chat))
                await self._changed.wait()

    async def resume(self, run: str, bound: Binding) -> None:
        """Show the texts of a run in the answer that a former process began; nothing happens when there is none."""
        stored = await self._database.run(lambda tx: outbox.answer_of(tx, run))
        if stored is None or not stored.token or self.live.is_open(run):
            return
        await self._rate.acquire(bound.chat)
        try:
            answer = await self._channel.open_answer(
                bound.target, key=stored.key, resume_token=stored.token
            )
        except DeliveryError as error:
            _log.info("The answer of the run %s is not shown while it grows: %s", run, error)
        else:
            if not self.live.is_open(run):
                self.live.opened(run, bound.chat, answer)

    async def wait_rate(self, chat: str) -> None:
        """Wait until a call for a chat is within the rates, and count it: for calls beside the outbox."""
        await self._rate.acquire(chat)

    async def _send_chat(self, chat: str) -> None:
        """Send the messages of a chat one after the other until none is left."""
        while True:
            row = await self._database.run(lambda tx: outbox.next_row(tx, chat))
            if row is None:
                # No await in between: a message that is stored from now on starts another task.
                self._lanes.discard(chat)
                if await self._database.run(lambda tx: outbox.next_row(tx, chat)) is not None:
                    self.notify()
                return
            delay_s = (row.next_ms - self._clock.now_ms()) / 1000
            if delay_s > 0:
                await self._clock.sleep(delay_s)
            await self._send(row)

    async def _send(self, row: OutboxRow) -> None:
        await self._rate.acquire(row.chat)
        try:
            await self._try(row)
        except DeliveryImpossible as error:
            if isinstance(row.content, AskApproval):
                await self._send_as_text(row)
            else:
                await self._end(row, str(error))
        except DeliveryError as error:
            await self._delay(row, error)
        except _SentAsText:
            await self._send_as_text(row)

    async def _try(self, row: OutboxRow) -> None:
        """Send a message once.

        Raises:
            DeliveryError: It is not confirmed.
        """
        body = row.content
        bound = await self._database.run(
            lambda tx: None if row.binding is None else bindings.binding(tx, row.binding)
        )
        target = Target(chat=row.chat, thread=row.thread) if bound is None else bound.target
        if row.tried_ms is not None and isinstance(body, KEYED):
            message = await self._already_sent(row, target)
            if message is not None:
                await self._confirm(row, _confirmed_by_history(row, body, message))
                return
        now_ms = self._clock.now_ms()
        await self._database.run(lambda tx: outbox.set_sending(tx, row, now_ms=now_ms))
        await self._confirm(row, await self._call(row, target, bound))

    async def _already_sent(self, row: OutboxRow, target: Target) -> str | None:
        """Return the id of a message that may have been applied, if it is in the history; None: it may be sent."""
        limits = self._channel.capabilities
        age_s = (self._clock.now_ms() - (row.tried_ms or 0)) / 1000
        if age_s < limits.key_window_s * WINDOW_SHARE:
            return None
        if not limits.history:
            message = "it may have been sent, and the platform cannot be asked"
            raise DeliveryImpossible(message)
        since_ms = row.created_ms - round(LOOK_BACK_S * 1000)
        sent = await self._channel.find_sent(target, key=row.key, since_ms=since_ms)
        if sent is None:
            await self._database.run(lambda tx: outbox.set_absent(tx, row))
        return sent

    async def _call(self, row: OutboxRow, target: Target, bound: Binding | None) -> Sent:
        channel, body = self._channel, row.content
        root = bound.root if bound is not None and bound.opens_thread else None
        opens = root is not None and channel.capabilities.has_threads
        match body:
            case PostText(text=text, reply_to=reply_to):
                sent = await channel.post(
                    target, text, key=row.key, reply_to=root or reply_to, in_thread=opens
                )
            case PostFile(name=name, content=content, reply_to=reply_to):
                sent = await channel.post_file(
                    target, name, content, key=row.key, reply_to=root or reply_to
                )
            case AskApproval(prompt=prompt, reply_to=reply_to):
                sent = await channel.ask(target, prompt, key=row.key, reply_to=root or reply_to)
            case OpenAnswer(run=run, reply_to=reply_to):
                answer = await channel.open_answer(
                    target, key=row.key, reply_to=root or reply_to, in_thread=opens
                )
                self.live.opened(run, row.chat, answer)
                return _opened(row, run, answer, now_ms=self._clock.now_ms())
            case FinishAnswer():
                await self._finish(body, target)
                return Sent()
            case SettleApproval(prompt=prompt, settlement=settlement):
                asked = await self._database.run(lambda tx: approvals.approval(tx, prompt.request))
                if asked is not None and asked.message is not None:
                    await channel.settle(target, asked.message, prompt, settlement)
                return Sent()
            case SetReaction(message=message, reaction=reaction):
                await channel.react(message, reaction)
                return Sent()
            case _:
                assert_never(body)
        return Sent(message=sent.message, thread=sent.thread)

    async def _finish(self, body: FinishAnswer, target: Target) -> None:
        answer = await self.live.ended(body.run)
        stored = await self._database.run(lambda tx: outbox.answer_of(tx, body.run))
        if stored is None or not stored.token:
            raise _SentAsText
        try:
            if answer is None:
                answer = await self._channel.open_answer(
                    target, key=stored.key, resume_token=stored.token
                )
            await answer.finish(body.text, body.outcome)
        except DeliveryImpossible as error:
            _log.warning("The answer of the run %s is sent as text: %s", body.run, error)
            raise _SentAsText from error

    async def _confirm(self, row: OutboxRow, sent: Sent) -> None:
        body = row.content

        def record(tx: Transaction) -> None:
            outbox.set_sent(tx, row, sent.message)
            if sent.thread is not None and row.binding is not None:
                bindings.set_thread(tx, row.binding, sent.thread)
            if sent.answer is not None:
                outbox.add_answer(tx, sent.answer)
            match body:
                case AskApproval(prompt=prompt) if sent.message is not None:
                    approvals.set_message(tx, prompt.request, sent.message)
                case FinishAnswer(run=run):
                    outbox.remove_answer(tx, run)
                case _:
                    pass

        await self._database.run(record)

    async def _delay(self, row: OutboxRow, error: DeliveryError) -> None:
        now_ms = self._clock.now_ms()
        age_s = (now_ms - row.created_ms) / 1000
        if age_s > (OPTIONAL_S if row.is_optional else MOST_S):
            await self._end(row, f"not confirmed for {round(age_s / 3600)} h; last: {error}")
            return
        stated_s = error.retry_after_s if isinstance(error, DeliveryDelayed) else None
        backoff_s = min(MOST_DELAY_S, 2.0 ** min(row.tries, 10)) * (1 - self._random.random() / 2)
        delay_s = backoff_s if stated_s is None else stated_s + self._random.random()
        if stated_s is not None:
            self._rate.hold(row.chat, stated_s)
        # A refusal of this try proves nothing about an earlier one that may have been applied.
        is_applied = not isinstance(error, DeliveryDelayed) or row.tried_ms is not None
        next_ms = now_ms + round(delay_s * 1000)
        _log.info("A message for %s is sent again in %.1f s: %s", row.chat, delay_s, error)
        await self._database.run(
            lambda tx: outbox.set_refused(
                tx, row, reason=str(error), next_ms=next_ms, is_applied=is_applied
            )
        )

    async def _end(self, row: OutboxRow, reason: str) -> None:
        """Record that a message is not delivered; an optional one is dropped, as is an answer that would only grow."""
        if row.is_optional or isinstance(row.content, OpenAnswer):
            _log.info("A message for %s is left out: %s", row.chat, reason)
            await self._database.run(lambda tx: outbox.set_sent(tx, row, None))
            return
        _log.error("A message for %s is not delivered: %s", row.chat, reason)
        body = row.content

        def record(tx: Transaction) -> None:
            outbox.set_dead(tx, row, reason)
            if isinstance(body, FinishAnswer):
                outbox.remove_answer(tx, body.run)

        await self._database.run(record)

    async def _send_as_text(self, row: OutboxRow) -> None:
        body = row.content

        def record(tx: Transaction) -> None:
            match body:
                case FinishAnswer(run=run, text=text):
                    outbox.remove_answer(tx, run)
                    outbox.replace_body(tx, row, PostText(text=text))
                case AskApproval(prompt=prompt, reply_to=reply_to):
                    post = PostText(text=_text_of(prompt), reply_to=reply_to)
                    outbox.replace_body(tx, row, post)
                case _:
                    pass

        await self._database.run(record)

    async def _store_token(self, run: str, token: str) -> None:
        await self._database.run(lambda tx: outbox.set_token(tx, run, token))


def _text_of(prompt: ApprovalPrompt) -> str:
    """Return an approval as a text, for platforms that do not accept its buttons."""
    answers = ", ".join(f"`/approve {prompt.code} {option.id}`" for option in prompt.options)
    return f"**{prompt.title}** ({prompt.detail})\n{prompt.body}\n\nAnswers: {answers}"


def _opened(row: OutboxRow, run: str, answer: RunningAnswer, *, now_ms: int) -> Sent:
    sent = answer.sent
    stored = AnswerRow(
        run=run,
        key=row.key,
        message=sent.message,
        thread=sent.thread,
        token=answer.resume_token,
        created_ms=now_ms,
    )
    return Sent(message=sent.message, thread=sent.thread, answer=stored)


def _confirmed_by_history(
    row: OutboxRow, body: PostText | PostFile | OpenAnswer | AskApproval, message: str
) -> Sent:
    """Return the confirmation of a message that was found in the history; an answer there cannot be gone on with."""
    answer = None
    if isinstance(body, OpenAnswer):
        answer = AnswerRow(
            run=body.run,
            key=row.key,
            message=message,
            thread=None,
            token="",
            created_ms=row.created_ms,
        )
    return Sent(message=message, answer=answer)
