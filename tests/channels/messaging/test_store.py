"""The file of an account: versions, owners, damage, and the rules that its constraints keep."""

import sqlite3
from pathlib import Path

import pytest

from agent_core.channels.messaging.port import InboundMessage, Sender, Target
from agent_core.channels.messaging.store import approvals, bindings, inbox
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import (
    MIGRATIONS,
    MessagingDatabase,
    Transaction,
)
from agent_core.kernel.errors import StorageUnavailable
from tests.channels.messaging.conformance import PROMPT, SETTLED


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "chat.sqlite3"


def of(path: Path, *, account: str = "app") -> MessagingDatabase:
    return MessagingDatabase(path, channel="memory", account=account)


def message(key: str, *, at_ms: int = 1000) -> InboundMessage:
    return InboundMessage(
        key=key,
        target=Target(chat="dm"),
        chat_kind="direct",
        sender=Sender(id="ann"),
        text="hello",
        at_ms=at_ms,
    )


async def test_a_new_file_is_private_and_has_the_present_version(path: Path) -> None:
    database = of(path)
    await database.open()
    database.close()
    check_new(path)


def check_new(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_bytes(b"no database at all" * 100), "is damaged"),
        (lambda path: set_version(path, 99), "has version 99, this program reads up to 1; update"),
        (lambda path: (path.unlink(), path.mkdir()), "cannot be used"),
    ],
    ids=["damaged", "newer", "a folder"],
)
async def test_a_file_that_cannot_be_used_has_one_sentence(path: Path, spoil, reason: str) -> None:
    database = of(path)
    await database.open()
    database.close()
    spoil(path)
    with pytest.raises(StorageUnavailable, match=reason) as raised:
        await of(path).open()
    assert str(path) in str(raised.value)


def set_version(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


async def test_a_file_of_another_account_is_refused(path: Path) -> None:
    database = of(path)
    await database.open()
    database.close()
    with pytest.raises(StorageUnavailable, match="belongs to the account 'memory app'"):
        await of(path, account="other").open()


async def test_an_exception_undoes_its_transaction(path: Path) -> None:
    database = of(path)
    await database.open()

    def work(tx: Transaction) -> None:
        assert inbox.insert(tx, message("m1"), channel="memory", account="app", now_ms=1)
        raise LookupError

    with pytest.raises(LookupError):
        await database.run(work)
    assert await database.run(inbox.counts) == {}
    database.close()


async def test_a_message_is_stored_once_and_its_prompt_has_the_same_id_each_time(
    path: Path,
) -> None:
    database = of(path)
    await database.open()

    def insert(tx: Transaction) -> list[bool]:
        event = message("m1")
        given = [
            inbox.insert(tx, event, channel="memory", account="app", now_ms=1) for _ in range(2)
        ]
        (row,) = inbox.waiting(tx)
        assert row.message_id == inbox.message_id_of("memory", "app", "m1")
        assert row.message_id != inbox.message_id_of("memory", "other", "m1")
        return given

    assert await database.run(insert) == [True, False]
    database.close()


async def test_a_place_has_one_binding_whoever_comes_first(path: Path) -> None:
    database = of(path)
    await database.open()

    def bind(tx: Transaction) -> list[Binding]:
        return [
            bindings.bind(
                tx,
                chat="dm",
                place="",
                kind="direct",
                root=None,
                session=session,
                workspace="shop",
                created_by="ann",
                now_ms=1,
            )
            for session in ("s-1", "s-2")
        ]

    first, second = await database.run(bind)
    assert first == second
    assert first.session == "s-1"
    database.close()


async def test_messages_that_are_over_are_forgotten_except_the_newest_of_their_place(
    path: Path,
) -> None:
    database = of(path)
    await database.open()
    day_ms = 86_400_000

    def fill(tx: Transaction) -> list[str]:
        for number in range(3):
            event = message(f"m{number}", at_ms=number * day_ms)
            inbox.insert(tx, event, channel="memory", account="app", now_ms=number * day_ms)
            for row in inbox.waiting(tx):
                inbox.finish(tx, row, "done")
        inbox.prune(tx, now_ms=10 * day_ms)
        return [row[0] for row in tx.execute("SELECT key FROM inbox").fetchall()]

    assert await database.run(fill) == ["m2"]
    database.close()


async def test_an_approval_is_answered_once(path: Path) -> None:
    database = of(path)
    await database.open()

    def work(tx: Transaction) -> None:
        given = [
            approvals.add(
                tx,
                PROMPT,
                kind="permission",
                session="s",
                run="r",
                binding=1,
                chat="dm",
                answers={"once": "allowOnce"},
                now_ms=1,
            )
            for _ in range(2)
        ]
        assert given == [True, False]

        assert approvals.claim(tx, "p-1", option="once", by_id="a", by_name="Ann") is not None
        assert approvals.settle(tx, "p-1", SETTLED)
        assert not approvals.settle(tx, "p-1", SETTLED)
        assert approvals.claim(tx, "p-1", option="deny", by_id="b", by_name="Bob") is None
        stored = approvals.approval(tx, "p-1")
        assert stored is not None
        assert (stored.settled, stored.by_name, stored.option) == (SETTLED, "Ann", "once")

    await database.run(work)
    database.close()


async def test_a_code_is_longer_where_an_open_approval_has_it(path: Path) -> None:
    database = of(path)
    await database.open()

    def work(tx: Transaction) -> list[str]:
        code = approvals.free_code(tx, "p-1")
        prompt = type(PROMPT)(request="p-2", title="t", body="b", options=(), digest="d", code=code)
        approvals.add(
            tx, prompt, kind="permission", session="s", run="r", binding=1, chat="dm",
            answers={}, now_ms=1,
        )  # fmt: skip
        return [code, approvals.free_code(tx, "p-1")]

    short, longer = await database.run(work)
    assert (len(short), len(longer)) == (4, 5)
    assert longer.startswith(short)
    database.close()
