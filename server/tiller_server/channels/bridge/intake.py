"""The way of a message from the inbox to a session: in order for each chat, once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from agent_core.channels.messaging.port import Inbound, InboundRecall
from agent_core.channels.messaging.store import approvals, inbox, outbox
from agent_core.channels.messaging.store.approvals import StoredApproval
from agent_core.channels.messaging.store.database import Transaction
from agent_core.channels.messaging.store.inbox import InboxRow
from agent_core.kernel import JsonObject
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.channels.bridge.admission import Admitted, Ignored, admission
from tiller_server.channels.bridge.approver import Approver
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.commands import ChatCommands
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.channels.bridge.prompt_sender import PromptSender

RECALLED: Final = "recalled"
_Lane = tuple[str, str | None]


class Intake:
    """Works through the inbox. `run` has to run; `notify` wakes it."""

    def __init__(
        self,
        link: DaemonLink,
        store: ChatStore,
        config: BridgeConfig,
        *,
        prompts: PromptSender,
        commands: ChatCommands,
        approver: Approver,
    ) -> None:
        self._link = link
        self._store = store
        self._config = config
        self._prompts = prompts
        self._commands = commands
        self._approver = approver
        self._lanes: set[_Lane] = set()
        self._changed = anyio.Event()

    def notify(self) -> None:
        """Look at the inbox again."""
        self._changed.set()

    async def run(self) -> None:
        """Work through the inbox, for as long as it is not cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed = anyio.Event()
                for row in await self._store.run(inbox.waiting):
                    lane = (row.chat, row.thread)
                    if lane not in self._lanes:
                        self._lanes.add(lane)
                        _ = tasks.create_task(self._run_lane(lane))
                await self._changed.wait()

    def store_event(self, tx: Transaction, event: Inbound, *, channel: str, account: str) -> None:
        """Store an event of the platform, once; a recalled message that was not handed over is over."""
        _ = inbox.insert(
            tx, event, channel=channel, account=account, now_ms=self._store.clock.now_ms()
        )
        if isinstance(event, InboundRecall):
            row = inbox.by_key(tx, event.message)
            if row is not None and row.state == "received":
                inbox.finish(tx, row, "ignored", RECALLED)

    async def _run_lane(self, lane: _Lane) -> None:
        while True:
            rows = await self._waiting(lane)
            if not rows:
                self._lanes.discard(lane)
                if await self._waiting(lane):
                    self.notify()
                return
            await self._take(rows[0])

    async def _waiting(self, lane: _Lane) -> Sequence[InboxRow]:
        return await self._store.run(lambda tx: inbox.waiting_in(tx, lane[0], lane[1]))

    async def _take(self, row: InboxRow) -> None:
        delay_s = (row.next_ms - self._store.clock.now_ms()) / 1000
        if delay_s > 0:
            await self._store.clock.sleep(delay_s)
        elif row.kind == "recall":
            await self._recall(row)
        elif row.kind != "message":
            await self._store.run(lambda tx: inbox.finish(tx, row, "ignored", "not a message"))
        else:
            await self._take_message(row)

    async def _take_message(self, row: InboxRow) -> None:
        admitted, approval = await self._store.run(lambda tx: self._admission(tx, row))
        if isinstance(admitted, Ignored):
            await self._store.run(lambda tx: self._ignore(tx, row, admitted))
        elif approval is not None:
            await self._answer(row, approval)
        elif admitted.command is None:
            batch = await self._batch(row)
            if batch:
                await self._prompts.send(batch)
        elif admitted.command.name == "queue":
            await self._queue(row, admitted.command.argument)
        else:
            await self._commands.run(row, admitted.command)

    def _admission(
        self, tx: Transaction, row: InboxRow
    ) -> tuple[Admitted | Ignored, StoredApproval | None]:
        message = row.message
        if inbox.recalled(tx, row.key):
            return Ignored(reason=RECALLED), None
        answers_us = message.reply_to is not None and outbox.is_ours(tx, message.reply_to)
        admitted = admission(message, self._config, answers_us=answers_us)
        approval = None
        if isinstance(admitted, Admitted) and admitted.command is None and message.reply_to:
            approval = approvals.with_message(tx, message.reply_to)
        takes_text = (
            approval is not None
            and approval.state != "settled"
            and approval.answer("text") is not None
        )
        return admitted, approval if takes_text else None

    def _ignore(self, tx: Transaction, row: InboxRow, ignored: Ignored) -> None:
        if ignored.reply:
            self._store.reply(tx, row, ignored.reply)
        inbox.finish(
            tx,
            row,
            "ignored",
            ignored.reason,
            keeps_text=self._config.context_messages > 0 and ignored.reason == inbox.NOT_ADDRESSED,
        )

    async def _answer(self, row: InboxRow, approval: StoredApproval) -> None:
        message = row.message
        reply = await self._approver.answer(approval, "text", message.sender, text=message.text)

        def record(tx: Transaction) -> None:
            if reply.kind != "success":
                self._store.reply(tx, row, reply.text)
            inbox.finish(tx, row, "done", "answer to a question")

        await self._store.run(record)

    async def _queue(self, row: InboxRow, text: str) -> None:
        if not text:
            usage = f"Write {self._store.limits.command_mark}queue TEXT."
            await self._store.run(
                lambda tx: self._ignore(tx, row, Ignored(reason="empty", reply=usage))
            )
            return
        await self._store.run(lambda tx: inbox.set_batch(tx, (row,)))
        await self._prompts.send((inbox.with_text(row, text),), is_follow_up=True)

    async def _batch(self, row: InboxRow) -> Sequence[InboxRow]:
        """Return the messages of a prompt: the first, and those of the same person right after it."""
        if row.batch is not None:
            return await self._store.run(lambda tx: inbox.of_batch(tx, row.batch or row.key))
        wait_s = self._config.merge_s - (self._store.clock.now_ms() - row.received_ms) / 1000
        if wait_s > 0:
            await self._store.clock.sleep(wait_s)

        def decide(tx: Transaction) -> Sequence[InboxRow]:
            waiting = inbox.waiting_in(tx, row.chat, row.thread)
            if not waiting or waiting[0].key != row.key:
                return ()  # recalled meanwhile
            batch = self._together(waiting, lambda other: self._is_prompt(tx, other))
            inbox.set_batch(tx, batch)
            return batch

        return await self._store.run(decide)

    def _is_prompt(self, tx: Transaction, row: InboxRow) -> bool:
        admitted, approval = self._admission(tx, row)
        return isinstance(admitted, Admitted) and admitted.command is None and approval is None

    def _together(
        self, waiting: Sequence[InboxRow], is_prompt: Callable[[InboxRow], bool]
    ) -> Sequence[InboxRow]:
        batch = [waiting[0]]
        for row in waiting[1:]:
            is_soon = row.received_ms - waiting[0].received_ms <= self._config.merge_s * 1000
            if row.kind != "message" or row.sender != batch[0].sender or not is_soon:
                break
            if row.batch is not None or not is_prompt(row):
                break
            batch.append(row)
        return batch

    async def _recall(self, row: InboxRow) -> None:
        event = row.event
        key = event.message if isinstance(event, InboundRecall) else ""
        recalled = await self._store.run(lambda tx: inbox.by_key(tx, key))
        is_waiting = recalled is not None and recalled.state == "started" and recalled.queue_id
        if recalled is not None and is_waiting and await self._remove_from_queue(recalled):
            await self._store.run(lambda tx: inbox.finish(tx, recalled, "done", RECALLED))
        await self._store.run(lambda tx: inbox.finish(tx, row, "done", key))

    async def _remove_from_queue(self, row: InboxRow) -> bool:
        """Remove a prompt from the queue of its session; return False when it is in the conversation already."""
        ops: JsonObject = {"op": "remove", "queueId": row.queue_id}
        try:
            _ = await self._link.request(
                "agent/queue/update", {"session": row.session, "ops": [ops]}
            )
        except AgentRefused:
            return False
        return True
