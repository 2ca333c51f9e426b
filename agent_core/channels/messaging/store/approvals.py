"""Approvals, questions and plans that were sent to a chat, and their answers."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal

import msgspec

from agent_core.channels.messaging.port import ApprovalPrompt, Settlement
from agent_core.channels.messaging.store.database import Transaction, row_of, rows_of
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, decode, encode
from agent_core.kernel.values import Value, threadsafe

ApprovalKind = Literal["permission", "question", "plan"]
CODE_DIGITS: Final = (4, 5, 6)
KEPT_MS: Final = 7 * 86_400_000


class StoredApproval(Value, frozen=True, kw_only=True):
    """A message with buttons that waits for an answer, or had one."""

    request: str
    """Id of the request of the agent; for a line of a form with the number of the line."""
    kind: ApprovalKind
    session: str
    run: str | None
    binding: int
    chat: str
    message: str | None
    """Id of its message; None: not confirmed by the platform yet."""
    prompt: str
    """The prompt, as JSON."""
    answers: str
    """Answer for the agent of each option, as JSON."""
    code: str
    state: Literal["open", "claimed", "settled"]
    option: str
    """Option of the person whose answer is being recorded, or was."""
    by_id: str
    by_name: str
    settlement: str | None
    created_ms: int

    @property
    def shown(self) -> ApprovalPrompt:
        """The prompt."""
        return msgspec.json.decode(self.prompt, type=threadsafe(ApprovalPrompt))

    @property
    def settled(self) -> Settlement | None:
        """How it ended; None: it is open."""
        if self.settlement is None:
            return None
        return msgspec.json.decode(self.settlement, type=threadsafe(Settlement))

    def answer(self, option: str) -> JsonValue:
        """Return the answer that an option stands for; None: there is no such option."""
        return as_object(decode(self.answers)).get(option)


def free_code(transaction: Transaction, request: str) -> str:
    """Return a code for answers by text that no open approval has."""
    digest = sha256(request.encode()).hexdigest()
    for digits in CODE_DIGITS:
        code = digest[:digits]
        query = "SELECT 1 FROM approvals WHERE code = ? AND state != 'settled' AND request != ?"
        if transaction.execute(query, (code, request)).fetchone() is None:
            return code
    return digest[: CODE_DIGITS[-1]]


def add(
    transaction: Transaction,
    prompt: ApprovalPrompt,
    *,
    kind: ApprovalKind,
    session: str,
    run: str | None,
    binding: int,
    chat: str,
    answers: Mapping[str, JsonValue],
    now_ms: int,
) -> bool:
    """Store an approval; return False when it is stored already."""
    cursor = transaction.execute(
        "INSERT OR IGNORE INTO approvals VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, 'open', '', '', '', NULL, ?)",
        (
            prompt.request,
            kind,
            session,
            run,
            binding,
            chat,
            msgspec.json.encode(prompt).decode(),
            msgspec.json.encode(answers).decode(),
            prompt.code,
            now_ms,
        ),
    )
    return cursor.rowcount > 0


def approval(transaction: Transaction, request: str) -> StoredApproval | None:
    """Return an approval by its request."""
    return row_of(transaction, StoredApproval, "SELECT * FROM approvals WHERE request = ?", request)


def with_code(transaction: Transaction, chat: str, code: str) -> StoredApproval | None:
    """Return the newest approval of a chat with a code."""
    query = "SELECT * FROM approvals WHERE chat = ? AND code = ? ORDER BY created_ms DESC"
    return row_of(transaction, StoredApproval, query, chat, code)


def with_message(transaction: Transaction, message: str) -> StoredApproval | None:
    """Return the approval that a message shows."""
    return row_of(transaction, StoredApproval, "SELECT * FROM approvals WHERE message = ?", message)


def open_ones(transaction: Transaction, session: str) -> Sequence[StoredApproval]:
    """Return the approvals of a session without an answer."""
    query = "SELECT * FROM approvals WHERE session = ? AND state != 'settled' ORDER BY created_ms, request"
    return rows_of(transaction, StoredApproval, query, session)


def lines_of(transaction: Transaction, request: str) -> Sequence[StoredApproval]:
    """Return the lines of a form."""
    query = "SELECT * FROM approvals WHERE request = ? OR request LIKE ? ORDER BY request"
    return rows_of(transaction, StoredApproval, query, request, f"{request}#%")


def set_message(transaction: Transaction, request: str, message: str) -> None:
    """Record the message that shows an approval."""
    _ = transaction.execute(
        "UPDATE approvals SET message = ? WHERE request = ?", (message, request)
    )


def set_answer(
    transaction: Transaction, approval: StoredApproval, option: str, answer: JsonValue
) -> None:
    """Record the answer of an option that a person has written."""
    answers: JsonObject = {**as_object(decode(approval.answers)), option: answer}
    _ = transaction.execute(
        "UPDATE approvals SET answers = ? WHERE request = ? AND state != 'settled'",
        (encode(answers).decode(), approval.request),
    )


def claim(
    transaction: Transaction, request: str, *, option: str, by_id: str, by_name: str
) -> StoredApproval | None:
    """Record whose answer is sent to the agent next; return the approval, None: it is settled or unknown."""
    _ = transaction.execute(
        "UPDATE approvals SET state = 'claimed', option = ?, by_id = ?, by_name = ? WHERE request = ? AND state != 'settled'",
        (option, by_id, by_name, request),
    )
    claimed = approval(transaction, request)
    return None if claimed is None or claimed.state == "settled" else claimed


def reopen(transaction: Transaction, request: str) -> None:
    """Record that an answer was not accepted."""
    _ = transaction.execute(
        "UPDATE approvals SET state = 'open', option = '', by_id = '', by_name = '' WHERE request = ? AND state = 'claimed'",
        (request,),
    )


def settle(transaction: Transaction, request: str, settlement: Settlement) -> bool:
    """Record how an approval ended; return False when it had ended already."""
    cursor = transaction.execute(
        "UPDATE approvals SET state = 'settled', settlement = ? WHERE request = ? AND state != 'settled'",
        (msgspec.json.encode(settlement).decode(), request),
    )
    return cursor.rowcount > 0


def prune(transaction: Transaction, *, now_ms: int) -> None:
    """Forget approvals that ended long ago."""
    _ = transaction.execute(
        "DELETE FROM approvals WHERE state = 'settled' AND created_ms < ?", (now_ms - KEPT_MS,)
    )
