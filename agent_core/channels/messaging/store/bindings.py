"""The bindings of chats and threads to sessions, and how far the events of each session are consumed."""

from collections.abc import Sequence
from typing import Final, Literal

from agent_core.channels.messaging.port import Target
from agent_core.channels.messaging.store.database import Transaction, row_of, rows_of
from agent_core.kernel.values import Value

PROVISIONAL: Final = "root:"
"""Begin of the place of a conversation whose thread the platform has not opened yet; the message follows."""


class Binding(Value, frozen=True, kw_only=True):
    """A conversation: a direct chat, or a thread of a group, and its session."""

    id: int
    chat: str
    place: str
    """Empty for a direct chat, the thread, or `root:` with the message whose answer opens the thread."""
    kind: Literal["direct", "group"]
    root: str | None
    """Message that began a thread."""
    session: str
    workspace: str
    """Name of the workspace in the configuration."""
    created_by: str
    """Id of the person."""
    created_ms: int

    @property
    def thread(self) -> str | None:
        """The thread, when there is one and it is open."""
        return self.place if self.place and not self.place.startswith(PROVISIONAL) else None

    @property
    def target(self) -> Target:
        """Where its messages go."""
        return Target(chat=self.chat, thread=self.thread)

    @property
    def opens_thread(self) -> bool:
        """Whether the next message opens its thread."""
        return self.place.startswith(PROVISIONAL)


class Cursor(Value, frozen=True, kw_only=True):
    """How far the events of a session are consumed, and the state of the reader there."""

    session: str
    epoch: str
    seq: int
    state: str
    """State of the reader, as JSON; empty at the beginning."""
    used_ms: int


def bind(
    transaction: Transaction,
    *,
    chat: str,
    place: str,
    kind: Literal["direct", "group"],
    root: str | None,
    session: str,
    workspace: str,
    created_by: str,
    now_ms: int,
) -> Binding:
    """Bind a place to a session and return the binding; the first one of a place stays."""
    _ = transaction.execute(
        """INSERT OR IGNORE INTO bindings (chat, place, kind, root, session, workspace, created_by, created_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        (chat, place, kind, root, session, workspace, created_by, now_ms),
    )
    bound = at_place(transaction, chat, place)
    if bound is None:
        message = "a binding was not stored"
        raise LookupError(message)
    return bound


def at_place(transaction: Transaction, chat: str, place: str) -> Binding | None:
    """Return the binding of a place."""
    query = "SELECT * FROM bindings WHERE chat = ? AND place = ?"
    return row_of(transaction, Binding, query, chat, place)


def with_root(transaction: Transaction, chat: str, message: str) -> Binding | None:
    """Return the conversation that a message began."""
    query = "SELECT * FROM bindings WHERE chat = ? AND root = ?"
    return row_of(transaction, Binding, query, chat, message)


def binding(transaction: Transaction, id_: int) -> Binding | None:
    """Return a binding by its number."""
    return row_of(transaction, Binding, "SELECT * FROM bindings WHERE id = ?", id_)


def of_session(transaction: Transaction, session: str) -> Binding | None:
    """Return the binding of a session."""
    return row_of(transaction, Binding, "SELECT * FROM bindings WHERE session = ?", session)


def bindings(transaction: Transaction, *, limit: int) -> Sequence[Binding]:
    """Return the newest bindings."""
    query = "SELECT * FROM bindings ORDER BY id DESC LIMIT ?"
    return rows_of(transaction, Binding, query, limit)


def rebind(transaction: Transaction, id_: int, *, session: str, workspace: str) -> None:
    """Bind a place to another session."""
    _ = transaction.execute(
        "UPDATE bindings SET session = ?, workspace = ? WHERE id = ?", (session, workspace, id_)
    )


def set_thread(transaction: Transaction, id_: int, thread: str) -> None:
    """Record the thread that the platform opened for a conversation; the first one stays."""
    _ = transaction.execute(
        "UPDATE OR IGNORE bindings SET place = ? WHERE id = ? AND place LIKE ?",
        (thread, id_, f"{PROVISIONAL}%"),
    )


def cursor(transaction: Transaction, session: str) -> Cursor | None:
    """Return how far a session is consumed; None: its events were never read."""
    return row_of(transaction, Cursor, "SELECT * FROM cursors WHERE session = ?", session)


def set_cursor(
    transaction: Transaction, session: str, *, epoch: str, seq: int, state: str, now_ms: int
) -> None:
    """Record how far a session is consumed."""
    _ = transaction.execute(
        """INSERT INTO cursors VALUES (?, ?, ?, ?, ?) ON CONFLICT (session) DO UPDATE SET
        epoch = excluded.epoch, seq = excluded.seq, state = excluded.state, used_ms = excluded.used_ms""",
        (session, epoch, seq, state, now_ms),
    )


class _Session(Value, frozen=True):
    session: str


def active_sessions(transaction: Transaction) -> Sequence[str]:
    """Return the sessions with messages that are not over or approvals that are open."""
    query = (
        "SELECT session FROM inbox WHERE state = 'started' AND session IS NOT NULL UNION"
        " SELECT session FROM approvals WHERE state != 'settled'"
    )
    return [row.session for row in rows_of(transaction, _Session, query)]
