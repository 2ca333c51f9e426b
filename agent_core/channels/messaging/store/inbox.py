"""The inbox: each message of the platform once, from before its acknowledgement until its answer is stored."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, cast

import msgspec

from agent_core.channels.messaging.port import (
    Inbound,
    InboundClick,
    InboundMessage,
    InboundRecall,
    Target,
)
from agent_core.channels.messaging.store.database import (
    Transaction,
    counts_of,
    row_of,
    rows_of,
)
from agent_core.kernel.values import Value, threadsafe

_EVENT: Final[msgspec.json.Decoder[Inbound]] = msgspec.json.Decoder(
    threadsafe(cast("type[Inbound]", Inbound))
)
InboxState = Literal["received", "started", "done", "ignored", "dead"]
MESSAGE_ID_PREFIX: Final = "chat-"
"""Begin of the idempotency keys of prompts from chats."""
KEPT_MS: Final = 2 * 86_400_000
"""How long a message that is over is remembered; platforms repeat for hours at most."""
DEAD_KEPT_MS: Final = 30 * 86_400_000
OVERLAP_MS: Final = 120_000
"""History is read from a minute before the last message of a place: so far back nothing is forgotten."""


class InboxRow(Value, frozen=True, kw_only=True):
    """A message of the platform."""

    id: int
    """Number in the order of arrival."""
    key: str
    kind: str
    chat: str
    thread: str | None
    sender: str
    body: str
    """The event as JSON; empty when it is over."""
    at_ms: int
    received_ms: int
    state: InboxState
    batch: str | None
    """Key of the first message of the prompt that it belongs to; None: not decided yet."""
    message_id: str
    """Idempotency key of its prompt."""
    binding: int | None
    session: str | None
    run: str | None
    queue_id: str | None
    reason: str
    tries: int
    next_ms: int

    @property
    def event(self) -> Inbound:
        """The event."""
        return _EVENT.decode(self.body)

    @property
    def message(self) -> InboundMessage:
        """The message; only of the kind `message`."""
        return msgspec.json.decode(self.body, type=threadsafe(InboundMessage))

    @property
    def target(self) -> Target:
        """Where it stands."""
        return Target(chat=self.chat, thread=self.thread)


def message_id_of(channel: str, account: str, key: str) -> str:
    """Return the idempotency key of the prompt of a message: the same after each restart."""
    digest = sha256("\0".join((channel, account, key)).encode()).hexdigest()
    return f"{MESSAGE_ID_PREFIX}{digest[:40]}"


def insert(
    transaction: Transaction, event: Inbound, *, channel: str, account: str, now_ms: int
) -> bool:
    """Store an event; return False when its key is stored already."""
    key = event.key if isinstance(event, InboundMessage) else f"{type(event).__name__}:{event.key}"
    kind = str(event.__struct_config__.tag)
    sender = "" if not isinstance(event, InboundMessage | InboundClick) else event.sender.id
    cursor = transaction.execute(
        """INSERT OR IGNORE INTO inbox (key, kind, chat, thread, sender, body, at_ms, received_ms, state, message_id,
        reason, tries, next_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?, 0, 0)""",
        (
            key,
            kind,
            event.target.chat,
            event.target.thread,
            sender,
            msgspec.json.encode(event).decode(),
            event.at_ms,
            now_ms,
            message_id_of(channel, account, event.key),
            event.message if isinstance(event, InboundRecall) else "",
        ),
    )
    return cursor.rowcount > 0


def waiting(transaction: Transaction, *, limit: int = 500) -> Sequence[InboxRow]:
    """Return the messages that were not handed over yet, oldest first."""
    query = "SELECT * FROM inbox WHERE state = 'received' ORDER BY id LIMIT ?"
    return rows_of(transaction, InboxRow, query, limit)


def waiting_in(transaction: Transaction, chat: str, thread: str | None) -> Sequence[InboxRow]:
    """Return the messages of a place that were not handed over yet, oldest first."""
    query = "SELECT * FROM inbox WHERE state = 'received' AND chat = ? AND thread IS ? ORDER BY id LIMIT 100"
    return rows_of(transaction, InboxRow, query, chat, thread)


def by_key(transaction: Transaction, key: str) -> InboxRow | None:
    """Return a message by the platform's id."""
    return row_of(transaction, InboxRow, "SELECT * FROM inbox WHERE key = ?", key)


def by_message_id(transaction: Transaction, message_id: str) -> Sequence[InboxRow]:
    """Return the messages of a prompt, oldest first."""
    first = "SELECT key FROM inbox WHERE message_id = ?"
    query = f"SELECT * FROM inbox WHERE batch IN ({first}) OR message_id = ? ORDER BY id"  # noqa: S608 - a constant
    return rows_of(transaction, InboxRow, query, message_id, message_id)


def of_run(transaction: Transaction, run: str) -> Sequence[InboxRow]:
    """Return the messages that a run answers, oldest first."""
    query = "SELECT * FROM inbox WHERE run = ? AND state = 'started' ORDER BY id"
    return rows_of(transaction, InboxRow, query, run)


def of_batch(transaction: Transaction, batch: str) -> Sequence[InboxRow]:
    """Return the messages of a batch that were not handed over yet, oldest first."""
    query = "SELECT * FROM inbox WHERE batch = ? AND state = 'received' ORDER BY id"
    return rows_of(transaction, InboxRow, query, batch)


def started(transaction: Transaction, session: str) -> Sequence[InboxRow]:
    """Return the messages that a session was given and that are not over, oldest first."""
    query = "SELECT * FROM inbox WHERE session = ? AND state = 'started' ORDER BY id"
    return rows_of(transaction, InboxRow, query, session)


def set_batch(transaction: Transaction, rows: Sequence[InboxRow]) -> None:
    """Decide that messages are one prompt. Later messages are not part of it, also after a restart."""
    for row in rows:
        _ = transaction.execute("UPDATE inbox SET batch = ? WHERE id = ?", (rows[0].key, row.id))


def set_started(
    transaction: Transaction,
    row: InboxRow,
    *,
    binding: int,
    session: str,
    run: str | None,
    queue_id: str | None,
) -> None:
    """Record that a session has accepted a message. One that is over already stays so."""
    _ = transaction.execute(
        """UPDATE inbox SET state = 'started', binding = ?, session = ?, run = coalesce(run, ?), queue_id = ?, reason = ''
        WHERE id = ? AND state = 'received'""",
        (binding, session, run, queue_id, row.id),
    )


def set_run(transaction: Transaction, message_id: str, run: str) -> None:
    """Record which run answers a prompt."""
    first = "SELECT key FROM inbox WHERE message_id = ?"
    _ = transaction.execute(
        f"""UPDATE inbox SET run = ? WHERE (batch IN ({first}) OR message_id = ?)
        AND state IN ('received', 'started')""",  # noqa: S608 - a constant
        (run, message_id, message_id),
    )


def assign_run(transaction: Transaction, row: InboxRow, run: str) -> None:
    """Record which run a message belongs to, whatever was recorded."""
    _ = transaction.execute("UPDATE inbox SET run = ? WHERE id = ?", (run, row.id))


def finish(
    transaction: Transaction,
    row: InboxRow,
    state: InboxState,
    reason: str = "",
    *,
    keeps_text: bool = False,
) -> None:
    """Record the end of a message; its text is forgotten unless it can be the context of a later one."""
    _ = transaction.execute(
        "UPDATE inbox SET state = ?, reason = ?, body = CASE WHEN ? THEN body ELSE '' END WHERE id = ?",
        (state, reason, keeps_text, row.id),
    )


NOT_ADDRESSED: Final = "not addressed to the bot"
"""Reason of messages that can be the context of a later one."""


def with_text(row: InboxRow, text: str) -> InboxRow:
    """Return a message with another text."""
    message = msgspec.structs.replace(row.message, text=text)
    return msgspec.structs.replace(row, body=msgspec.json.encode(message).decode())


def delay(transaction: Transaction, row: InboxRow, *, reason: str, next_ms: int) -> None:
    """Record that a message could not be handed over yet."""
    _ = transaction.execute(
        "UPDATE inbox SET tries = tries + 1, reason = ?, next_ms = ? WHERE id = ?",
        (reason, next_ms, row.id),
    )


def context_before(transaction: Transaction, row: InboxRow, *, limit: int) -> Sequence[InboxRow]:
    """Return the last messages before one in its place that were not addressed to the bot, oldest first."""
    rows = rows_of(
        transaction,
        InboxRow,
        "SELECT * FROM inbox WHERE chat = ? AND thread IS ? AND id < ? AND reason = ? AND body != '' ORDER BY id DESC LIMIT ?",
        row.chat,
        row.thread,
        row.id,
        NOT_ADDRESSED,
        limit,
    )
    return rows[::-1]


def newest_ms(transaction: Transaction, target: Target) -> int | None:
    """Return the time of the newest message of a place; None: there is none."""
    query = (
        "SELECT max(at_ms) AS at_ms FROM inbox WHERE chat = ? AND thread IS ? AND kind = 'message'"
    )
    newest = row_of(transaction, _Newest, query, target.chat, target.thread)
    return None if newest is None else newest.at_ms


class _Newest(Value, frozen=True):
    at_ms: int | None


def recalled(transaction: Transaction, key: str) -> bool:
    """Return whether a message was withdrawn, perhaps before it arrived."""
    query = "SELECT 1 FROM inbox WHERE kind = 'recall' AND reason = ?"
    return transaction.execute(query, (key,)).fetchone() is not None


def counts(transaction: Transaction) -> Mapping[str, int]:
    """Return the number of messages by state."""
    return counts_of(transaction, "SELECT state, count(*) FROM inbox GROUP BY state")


def dead(transaction: Transaction, *, limit: int) -> Sequence[InboxRow]:
    """Return the newest messages that could not be handed over."""
    query = "SELECT * FROM inbox WHERE state = 'dead' ORDER BY id DESC LIMIT ?"
    return rows_of(transaction, InboxRow, query, limit)


def prune(transaction: Transaction, *, now_ms: int) -> None:
    """Forget what is over, except what the history of its place could bring again."""
    _ = transaction.execute(
        """DELETE FROM inbox WHERE ((state IN ('done', 'ignored') AND received_ms < ?) OR (state = 'dead' AND received_ms < ?))
        AND at_ms < (SELECT max(at_ms) FROM inbox AS newer WHERE newer.chat = inbox.chat AND newer.thread IS inbox.thread) - ?""",
        (now_ms - KEPT_MS, now_ms - DEAD_KEPT_MS, OVERLAP_MS),
    )
