"""Prompts of a chat for the daemon: sent with the same id until their acceptance is stored."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Literal

from agent_core.channels.messaging.port import InboundMessage
from agent_core.channels.messaging.store import bindings, inbox
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import Transaction
from agent_core.channels.messaging.store.inbox import InboxRow
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.channels.bridge.attachments import ChatAttachments
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.channels.bridge.conversations import Conversations
from tiller_server.channels.bridge.run_reader import ReaderState
from tiller_server.channels.bridge.session_follower import SessionFollowers, state_of

REQUEST_S: Final = 60.0
MOST_DELAY_S: Final = 60.0
MOST_MS: Final = 24 * 3_600_000
"""How long a message is repeated to a daemon that cannot be used; it is dead afterwards."""
LATE_TRIES: Final = 4
"""Tries after which its author is informed, about 15 s."""
RETRYABLE: Final = frozenset({"SessionBusy", "Overloaded", "QueueFull"})
LATE: Final = (
    "The agent cannot be reached now. Your message is kept and is handed over as soon as it can be."
)
_log = logging.getLogger(__name__)


class PromptSender:
    """Hands messages over to the sessions of their conversations."""

    def __init__(
        self,
        link: DaemonLink,
        store: ChatStore,
        config: BridgeConfig,
        *,
        conversations: Conversations,
        followers: SessionFollowers,
        attachments: ChatAttachments,
    ) -> None:
        self._link = link
        self._store = store
        self._config = config
        self._conversations = conversations
        self._followers = followers
        self._attachments = attachments

    async def send(self, rows: Sequence[InboxRow], *, is_follow_up: bool = False) -> None:
        """Send messages as one prompt; they stay received when the daemon cannot take them now.

        Args:
            rows: Messages of one batch, oldest first.
            is_follow_up: Whether it waits until the run that is going on has ended.
        """
        first = rows[0]
        try:
            async with asyncio.timeout(REQUEST_S):
                await self._send(rows, is_follow_up=is_follow_up)
        except TimeoutError:
            await self._repeat_later(rows, "no answer of the agent in time", None)
        except AgentRefused as error:
            kind = as_text(error.data.get("kind"))
            if error.code is None or kind in RETRYABLE:
                after = error.data.get("retryAfterMs")
                await self._repeat_later(rows, str(error), after)
            elif kind == "SessionNotFound":
                _ = await self._conversations.renew(first.message)
            else:
                await self._refuse(rows, f"The message was not accepted: {error}", "done")

    async def _send(self, rows: Sequence[InboxRow], *, is_follow_up: bool) -> None:
        first = rows[0]
        bound = await self._conversations.open(first.message)
        self._followers.ensure(bound.session)
        content, problems = await self._content(rows)
        params: JsonObject = {
            "session": bound.session,
            "messageId": first.message_id,
            "content": content,
            "delivery": "followUp" if is_follow_up else "auto",
        }
        accepted = as_object(await self._link.request("agent/prompt", params))
        await self._store.run(lambda tx: self._record(tx, rows, bound, accepted, problems))

    def _record(
        self,
        tx: Transaction,
        rows: Sequence[InboxRow],
        bound: Binding,
        accepted: JsonObject,
        problems: Sequence[str],
    ) -> None:
        run, queue_id = accepted.get("run"), accepted.get("queueId")
        is_handled = accepted.get("accepted") == "handled"
        cursor = bindings.cursor(tx, bound.session)
        state = ReaderState() if cursor is None else state_of(cursor.state)
        if problems:
            self._store.reply(tx, rows[0], "\n".join(problems), cause="files")
        for row in rows:
            current = inbox.by_key(tx, row.key)
            if current is None or current.state != "received":
                continue  # an event of the session was faster
            self._store.react(tx, row, "started")
            inbox.set_started(
                tx,
                row,
                binding=bound.id,
                session=bound.session,
                run=run if isinstance(run, str) else None,
                queue_id=queue_id if isinstance(queue_id, str) else None,
            )
            if is_handled:
                self._store.react(tx, row, "completed")
                inbox.finish(tx, row, "done", "handled by a command of an extension")
            elif run in state.ended:
                inbox.finish(tx, row, "done", "answered by a run that has ended")
        if is_handled:
            self._store.reply(tx, rows[0], "Done.")

    async def _content(self, rows: Sequence[InboxRow]) -> tuple[list[JsonValue], Sequence[str]]:
        """Return the blocks of a prompt, and lines about files that are left out."""
        messages = [row.message for row in rows]
        text = "\n".join(message.text for message in messages if message.text)
        if messages[0].chat_kind == "group" and not text.startswith("/"):
            text = f"{_name_of(messages[0])}: {text}"
        if context := await self._context(rows[0]):
            text = f"{context}\n\n{text}"
        content: list[JsonValue] = [{"type": "text", "text": text}] if text else []
        files = [attachment for message in messages for attachment in message.attachments]
        blocks, problems = await self._attachments.blocks(files)
        content.extend(blocks)
        if not content:
            content.append({"type": "text", "text": "(a file that could not be read)"})
        return content, problems

    async def _context(self, row: InboxRow) -> str:
        limit = self._config.context_messages
        if limit == 0 or row.message.chat_kind == "direct":
            return ""
        before = await self._store.run(lambda tx: inbox.context_before(tx, row, limit=limit))
        if not before:
            return ""
        lines = [f"{_name_of(other.message)}: {other.message.text}" for other in before]
        return "\n".join(("Messages of the chat before, for context:", *lines))

    async def _repeat_later(
        self, rows: Sequence[InboxRow], reason: str, after_ms: JsonValue
    ) -> None:
        first, now_ms = rows[0], self._store.clock.now_ms()
        if now_ms - first.received_ms > MOST_MS:
            line = "The agent could not be reached for a day; send the message again."
            await self._refuse(rows, line, "dead")
            return
        delay_ms = round(1000 * min(MOST_DELAY_S, 0.25 * 2 ** min(first.tries, 9)))
        if isinstance(after_ms, int):
            delay_ms = max(delay_ms, after_ms)
        _log.warning("A message of %s is handed over later: %s", first.chat, reason)

        def record(tx: Transaction) -> None:
            for row in rows:
                inbox.delay(tx, row, reason=reason, next_ms=now_ms + delay_ms)
            if first.tries == LATE_TRIES:
                self._store.reply(tx, first, LATE, cause="late")

        await self._store.run(record)

    async def _refuse(
        self, rows: Sequence[InboxRow], line: str, state: Literal["done", "dead"]
    ) -> None:
        def record(tx: Transaction) -> None:
            self._store.reply(tx, rows[0], line)
            for row in rows:
                self._store.react(tx, row, "failed")
                inbox.finish(tx, row, state, line)

        await self._store.run(record)


def _name_of(message: InboundMessage) -> str:
    return message.sender.name or message.sender.id
