"""Records what a version of Tiller writes and offers: `python -m tests.compatibility.record`.

Run it for a version right before its release, and never again: the tests hold later versions to what it wrote. Beside
it lies an extension, written by hand for the interface of that version.
"""

import json
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio

import tiller_server
from agent_core import create_session
from agent_core.assembly.config_schemas import schemas
from agent_core.channels.messaging.port import Inbound, InboundMessage, Sender, Target
from agent_core.channels.messaging.store import bindings, inbox, outbox
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.messages import Text, Usage
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.ledger import LedgerFile
from agent_core.storage.ledger import CallRow
from agent_core.transcript import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    LabelEntry,
    ModelChange,
    SessionNameEntry,
    ThinkingChange,
    UsageEntry,
)
from tests.compatibility.interface_breaks import public_interface
from tests.compatibility.schema_breaks import bare
from tests.fleet.test_jobs import wanted
from tests.support.harness.isolation import TillerDirs
from tests.support.session.entries import AT_MS
from tests.support.session.folders import Folder
from tiller_server.fleet.store.database import open_database
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.lsp.wire.schema import build
from tiller_server.review.outputs.json_report import schema_text

CORPUS: Final = Path(__file__).with_name("corpus")
ROOT: Final = "/home/ann/shop"
"""Workspace in the recorded files, wherever they were recorded."""
BROKEN: Final = "def total(prices):\n    return sum(price for price in pricse)\n"
TEST: Final = """import unittest

from shop import total


class TestTotal(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""
CHANNEL: Final = {"channel": "lark", "account": "app"}
MESSAGE: Final = InboundMessage(
    key="m1",
    target=Target(chat="room", thread="t1"),
    chat_kind="group",
    sender=Sender(id="u1", name="Ann"),
    text="Please repair the total.",
    mentioned=True,
    at_ms=AT_MS,
)
CALL: Final = CallRow(
    id="call-1",
    at_ms=AT_MS,
    day="2026-01-01",
    session=SessionId("s1"),
    root=SessionId("s1"),
    run=None,
    turn=None,
    folder=ROOT,
    purpose="main",
    provider="lab",
    model="m",
    input=1200,
    output=34,
    cache_read=1000,
    price="2026-01",
    cost=5_000_000_000,
    reserved=6_000_000_000,
    status="completed",
)


def dump(path: Path) -> str:
    """Return an SQLite file as the statements that make it again, its version included."""
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return "\n".join([f"PRAGMA user_version = {version};", *connection.iterdump(), ""])
    finally:
        connection.close()


def restore(script: str, path: Path) -> None:
    """Make an SQLite file of the statements of `dump`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    try:
        _ = connection.executescript(script)
    finally:
        connection.close()


def other_entries(parent: EntryId, kept: EntryId) -> list[AnyEntry]:
    """Return one entry of each type that a run alone does not write, in a chain."""
    made: list[AnyEntry] = []

    def at(number: int) -> dict[str, Any]:
        before = parent if number == 1 else EntryId(f"x{number - 1}")
        return {"id": EntryId(f"x{number}"), "parent": before, "at_ms": AT_MS + number}

    usage = Usage(input=10, output=2)
    made.append(ModelChange(**at(1), provider="lab", model="m2"))
    made.append(ThinkingChange(**at(2), level="high"))
    made.append(CustomEntry(**at(3), custom_type="example.note", data={"seen": [1, None, "two"]}))
    made.append(
        CustomMessageEntry(
            **at(4), custom_type="example.hint", content=(Text(text="Prices are cents."),), details={"by": "hook"}
        )
    )  # fmt: skip
    made.append(LabelEntry(**at(5), target=kept, label="before the repair"))
    made.append(SessionNameEntry(**at(6), name="Repair of the total", generated=True))
    made.append(ContextEditEntry(**at(7), target=kept, replacement=None))
    made.append(
        UsageEntry(**at(8), kind="title", provider="lab", model="m", usage=usage, note="A title.")
    )
    made.append(
        BranchSummaryEntry(**at(9), from_id="gone", summary="A first try was left.", usage=usage)
    )
    made.append(
        CompactionEntry(
            **at(10), summary="The total was repaired.", first_kept=kept, tokens_before=900, details={"readFiles": ["shop.py"]}
        )
    )  # fmt: skip
    return made


async def _record_session(folder: Path) -> None:
    """Write the session of a repair, with an entry of each other type after it."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        dirs = TillerDirs.below(home)
        dirs.make()
        root = home / "w"
        root.mkdir()
        (root / "shop.py").write_text(BROKEN, encoding="utf-8")
        (root / "test_shop.py").write_text(TEST, encoding="utf-8")
        there = Folder(root, dirs)
        async with create_session(
            workspace=root,
            env=there.env,
            model="embedded/repair",
            trusted=True,
            settings={"permission": {"mode": "yolo"}, "sandbox": "off"},
        ) as session:
            _ = await session.prompt("The tests fail. Please repair them.")
            _ = await session.wait_idle()
            _ = await session.execute_bash("echo checked")
            identifier = session.id
        (file,) = there.files
        store = JsonlStore(dirs.data / "sessions", SystemClock())
        opened = await store.open(identifier)
        entries = opened.entries
        await opened.log.append(other_entries(entries[-1].id, entries[0].id))
        await opened.log.close()
        text = file.read_text("utf-8").replace(str(root), ROOT)
        assert str(home) not in text, "the recorded session names a path of this machine"
        (folder / "session.jsonl").write_text(text, encoding="utf-8")


async def _record_messages(path: Path) -> None:
    database = MessagingDatabase(path, **CHANNEL)
    await database.open()

    def write(transaction: Transaction) -> None:
        event: Inbound = MESSAGE
        _ = inbox.insert(transaction, event, **CHANNEL, now_ms=AT_MS)
        bound = bindings.bind(
            transaction, chat="room", place="t1", kind="group", root="m1", session="s1", workspace=ROOT,
            created_by="u1", now_ms=AT_MS,
        )  # fmt: skip
        body = outbox.SetReaction(message="m1", reaction="started")
        _ = outbox.add(transaction, body, key="t-1", chat="room", binding=bound.id, now_ms=AT_MS)

    await database.run(write)
    database.close()


def _record_stores(folder: Path) -> Mapping[str, str]:
    """Return the SQLite stores with a row in each of what matters, as statements."""
    ledger = LedgerFile(folder / "costs.sqlite3")
    ledger.write(CALL)
    ledger.close()
    anyio.run(_record_messages, folder / "messages.db")
    fleet = open_database(f"sqlite:///{folder}/fleet.db")
    fleet.migrate()
    jobs = JobStore(fleet)
    first = jobs.submit(wanted()).job
    _ = jobs.submit(wanted(2))
    _ = jobs.cancel(first.id, reason="not needed")
    fleet.engine.dispose()
    return {path.stem: dump(path) for path in sorted(folder.glob("*.[sd]*"))}


def formats() -> dict[str, Any]:
    """Return the schemas of the files that people and programs write and read."""
    return {
        name: bare(schema)
        for name, schema in {**schemas(), "review": json.loads(schema_text())}.items()
    }


def main() -> None:
    """Write the corpus of the present version."""
    folder = CORPUS / tiller_server.VERSION
    folder.mkdir(parents=True, exist_ok=True)
    offered = {"wire": bare(build()), "interface": public_interface(), "formats": formats()}
    for name, value in offered.items():
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    anyio.run(_record_session, folder)
    with tempfile.TemporaryDirectory() as made:
        for name, script in _record_stores(Path(made)).items():
            (folder / f"{name}.sql").write_text(script, encoding="utf-8")


if __name__ == "__main__":
    main()
