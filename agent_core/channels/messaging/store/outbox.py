"""The outbox: each message for the platform, from before it is sent until the platform has confirmed it."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, cast

import msgspec

from agent_core.channels.messaging.port import ApprovalPrompt, Outcome, Reaction, Settlement
from agent_core.channels.messaging.store.database import (
    Transaction,
    counts_of,
    row_of,
    rows_of,
)
from agent_core.kernel.values import Value, threadsafe

OutboxState = Literal["pending", "sending", "sent", "dead"]
KEPT_MS: Final = 2 * 86_400_000
"""How long a sent message is remembered, without its text: answers to it are recognised as long."""
DEAD_KEPT_MS: Final = 30 * 86_400_000


class PostText(Value, frozen=True, kw_only=True, tag="text"):
    """A message."""

    text: str
    reply_to: str | None = None


class PostFile(Value, frozen=True, kw_only=True, tag="file"):
    """A file."""

    name: str
    content: bytes
    reply_to: str | None = None


class OpenAnswer(Value, frozen=True, kw_only=True, tag="open"):
    """The begin of an answer that grows."""

    run: str
    reply_to: str | None = None


class FinishAnswer(Value, frozen=True, kw_only=True, tag="finish"):
    """The whole text of an answer, and its end."""

    run: str
    text: str
    outcome: Outcome


class AskApproval(Value, frozen=True, kw_only=True, tag="ask"):
    """An approval with its buttons."""

    prompt: ApprovalPrompt
    reply_to: str | None = None


class SettleApproval(Value, frozen=True, kw_only=True, tag="settle"):
    """An approval that is redrawn as answered."""

    prompt: ApprovalPrompt
    settlement: Settlement


class SetReaction(Value, frozen=True, kw_only=True, tag="react"):
    """A reaction to a message."""

    message: str
    reaction: Reaction


OutboxBody = (
    PostText | PostFile | OpenAnswer | FinishAnswer | AskApproval | SettleApproval | SetReaction
)
_BODY: Final[msgspec.json.Decoder[OutboxBody]] = msgspec.json.Decoder(
    threadsafe(cast("type[OutboxBody]", OutboxBody))
)
KEYED: Final = (PostText, PostFile, OpenAnswer, AskApproval)
"""Bodies that create a message; the others draw one anew and can be repeated."""


class OutboxRow(Value, frozen=True, kw_only=True):
    """A message for the platform."""

    id: int
    key: str
    """Idempotency key, of at most 50 characters."""
    chat: str
    thread: str | None
    binding: int | None
    """Conversation that it belongs to, whose thread counts; None: `thread` does."""
    body: str
    state: OutboxState
    is_optional: bool
    """Whether it is dropped after a failure."""
    created_ms: int
    tries: int
    next_ms: int
    tried_ms: int | None
    """Begin of the first try that may have been applied; None: nothing was."""
    message: str | None
    reason: str

    @property
    def content(self) -> OutboxBody:
        """The message."""
        return _BODY.decode(self.body)


def key_of(*parts: str) -> str:
    """Return the idempotency key of a message, from the identity of its cause."""
    return f"t-{sha256(chr(0).join(parts).encode()).hexdigest()[:40]}"


def add(
    transaction: Transaction,
    body: OutboxBody,
    *,
    key: str,
    chat: str,
    thread: str | None = None,
    binding: int | None = None,
    now_ms: int,
) -> bool:
    """Store a message; return False when one with its key is stored already.

    The caller has removed secrets from its text.
    """
    cursor = transaction.execute(
        """INSERT OR IGNORE INTO outbox (key, chat, thread, binding, body, state, is_optional, created_ms, tries, next_ms, reason)
        VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, 0, 0, '')""",
        (
            key,
            chat,
            thread,
            binding,
            msgspec.json.encode(body).decode(),
            isinstance(body, SetReaction),
            now_ms,
        ),
    )
    return cursor.rowcount > 0


def chats_waiting(transaction: Transaction) -> Sequence[str]:
    """Return the chats with messages that are not confirmed."""
    query = "SELECT state, chat FROM outbox WHERE state IN ('pending', 'sending') GROUP BY chat"
    return [row.chat for row in rows_of(transaction, _Chat, query)]


class _Chat(Value, frozen=True):
    chat: str


def next_row(transaction: Transaction, chat: str) -> OutboxRow | None:
    """Return the oldest message of a chat that is not confirmed."""
    query = "SELECT * FROM outbox WHERE chat = ? AND state IN ('pending', 'sending') ORDER BY id LIMIT 1"
    return row_of(transaction, OutboxRow, query, chat)


def set_sending(transaction: Transaction, row: OutboxRow, *, now_ms: int) -> None:
    """Record that a message is being sent, before it is."""
    _ = transaction.execute(
        "UPDATE outbox SET state = 'sending', tries = tries + 1, tried_ms = coalesce(tried_ms, ?) WHERE id = ?",
        (now_ms, row.id),
    )


def set_sent(transaction: Transaction, row: OutboxRow, message: str | None) -> None:
    """Record that the platform confirmed a message; its text is forgotten."""
    _ = transaction.execute(
        "UPDATE outbox SET state = 'sent', message = ?, body = '', reason = '' WHERE id = ?",
        (message, row.id),
    )


def set_refused(
    transaction: Transaction, row: OutboxRow, *, reason: str, next_ms: int, is_applied: bool
) -> None:
    """Record a failed try.

    Args:
        transaction: The transaction.
        row: The message.
        reason: Why it failed.
        next_ms: Time of the next try.
        is_applied: Whether it may have been applied.
    """
    _ = transaction.execute(
        "UPDATE outbox SET state = 'pending', reason = ?, next_ms = ?, tried_ms = CASE WHEN ? THEN tried_ms END WHERE id = ?",
        (reason, next_ms, is_applied, row.id),
    )


def set_absent(transaction: Transaction, row: OutboxRow) -> None:
    """Record that the history does not have a message: it may be sent as if for the first time."""
    _ = transaction.execute("UPDATE outbox SET tried_ms = NULL WHERE id = ?", (row.id,))


def set_dead(transaction: Transaction, row: OutboxRow, reason: str) -> None:
    """Record that a message is not delivered."""
    _ = transaction.execute(
        "UPDATE outbox SET state = 'dead', reason = ? WHERE id = ?", (reason, row.id)
    )


def replace_body(transaction: Transaction, row: OutboxRow, body: OutboxBody) -> None:
    """Send something else in the place of a message."""
    _ = transaction.execute(
        "UPDATE outbox SET body = ?, state = 'pending', next_ms = 0, tried_ms = NULL WHERE id = ?",
        (msgspec.json.encode(body).decode(), row.id),
    )


def is_ours(transaction: Transaction, message: str) -> bool:
    """Return whether a message was sent by this program, not long ago."""
    query = "SELECT 1 FROM outbox WHERE message = ? UNION SELECT 1 FROM answers WHERE message = ?"
    return transaction.execute(query, (message, message)).fetchone() is not None


def counts(transaction: Transaction) -> Mapping[str, int]:
    """Return the number of messages by state."""
    return counts_of(transaction, "SELECT state, count(*) FROM outbox GROUP BY state")


def dead(transaction: Transaction, *, limit: int) -> Sequence[OutboxRow]:
    """Return the newest messages that are not delivered."""
    query = "SELECT * FROM outbox WHERE state = 'dead' ORDER BY id DESC LIMIT ?"
    return rows_of(transaction, OutboxRow, query, limit)


def prune(transaction: Transaction, *, now_ms: int) -> None:
    """Forget what is over."""
    _ = transaction.execute(
        "DELETE FROM outbox WHERE (state = 'sent' AND created_ms < ?) OR (state = 'dead' AND created_ms < ?)",
        (now_ms - KEPT_MS, now_ms - DEAD_KEPT_MS),
    )


class AnswerRow(Value, frozen=True, kw_only=True):
    """An answer that grows, as the platform confirmed its begin."""

    run: str
    key: str
    message: str
    thread: str | None
    token: str
    """Resume token; empty: it cannot be gone on with."""
    created_ms: int


def add_answer(transaction: Transaction, answer: AnswerRow) -> None:
    """Record the begin of an answer."""
    _ = transaction.execute(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(answer)
    )


def answer_of(transaction: Transaction, run: str) -> AnswerRow | None:
    """Return the answer of a run; None: it was not begun, or is over."""
    return row_of(transaction, AnswerRow, "SELECT * FROM answers WHERE run = ?", run)


def set_token(transaction: Transaction, run: str, token: str) -> None:
    """Record the resume token of an answer."""
    _ = transaction.execute("UPDATE answers SET token = ? WHERE run = ?", (token, run))


def remove_answer(transaction: Transaction, run: str) -> None:
    """Forget an answer that is over."""
    _ = transaction.execute("DELETE FROM answers WHERE run = ?", (run,))
