"""Sessions, databases and extensions of a recorded version are read, and go on, in this one."""

import json
from pathlib import Path
from typing import Any

from agent_core.channels.messaging.store import bindings, inbox, outbox
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.events import UiNotify, UiWidget
from agent_core.extensions.client_offers import ExtensionCommands
from agent_core.kernel import SessionId, SystemClock
from agent_core.messages import CompactionSummaryMessage
from agent_core.storage import Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.ledger import LedgerFile
from agent_core.storage.adapters.paths import slug
from agent_core.storage.ledger import CostQuery
from agent_core.transcript import UnknownEntry
from agent_core.transcript.context import build_context
from tests.compatibility.corpora import EACH
from tests.compatibility.record import CALL, CHANNEL, MESSAGE, ROOT, restore
from tests.support.harness.isolation import TillerDirs
from tests.support.hooks.extensions import Home, extended
from tests.support.session.entries import entry, user
from tests.support.session.scripted_model import ScriptedModel, call, say
from tiller_server.fleet.store.database import open_database
from tiller_server.fleet.store.jobs import JobStore


@EACH
async def test_a_session_is_read_whole_and_goes_on(recorded: Path, tmp_path: Path) -> None:
    written = (recorded / "session.jsonl").read_bytes()
    lines = [json.loads(line) for line in written.splitlines()]
    name = f"20260101T000000Z_{lines[0]['id']}.jsonl"
    file = tmp_path / slug(lines[0]["cwd"]) / name
    file.parent.mkdir()
    _ = file.write_bytes(written)
    store = JsonlStore(tmp_path, SystemClock())
    assert [one.session for one in await store.list(ROOT)] == [lines[0]["id"]]
    entries = (await store.read(SessionId(lines[0]["id"]))).entries
    opened = await store.open(SessionId(lines[0]["id"]))
    assert [one.id for one in entries] == [one["id"] for one in lines[1:]]
    assert not [one for one in entries if isinstance(one, UnknownEntry)]
    assert opened.recovery == Recovery()
    context = build_context(entries)
    summary = context.messages[0]
    assert isinstance(summary, CompactionSummaryMessage)
    assert summary.summary == "The total was repaired."
    assert (context.model, context.thinking) == ("lab/m2", "high")
    await opened.log.append([entry("new", user("And now?"), parent=entries[-1].id)])
    await opened.log.close()
    assert file.read_bytes().startswith(written)
    again = await store.open(SessionId(lines[0]["id"]))
    assert again.entries[-1].id == "new"
    await again.log.close()


@EACH
def test_costs_are_counted_on(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "costs"
    restore((recorded / "costs.sql").read_text("utf-8"), path)
    ledger = LedgerFile(path)
    (total,) = ledger.report(CostQuery()).sums
    assert (total.calls, total.input, total.output) == (1, CALL.input, CALL.output)
    ledger.write(CALL)
    assert ledger.report(CostQuery()).total.calls == 1
    ledger.close()


@EACH
async def test_messages_of_a_chat_are_answered_later(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "messages"
    restore((recorded / "messages.sql").read_text("utf-8"), path)
    database = MessagingDatabase(path, **CHANNEL)
    await database.open()

    def read(transaction: Transaction) -> Any:
        return (
            inbox.waiting(transaction),
            bindings.bindings(transaction, limit=9),
            outbox.next_row(transaction, "room"),
        )

    (message,), (bound,), row = await database.run(read)
    assert message.message == MESSAGE
    assert (bound.session, bound.workspace) == ("s1", ROOT)
    assert row is not None
    assert row.content == outbox.SetReaction(message="m1", reaction="started")
    database.close()


@EACH
def test_jobs_of_a_fleet_are_done_later(recorded: Path, tmp_path: Path) -> None:
    path = tmp_path / "fleet"
    restore((recorded / "fleet.sql").read_text("utf-8"), path)
    database = open_database(f"sqlite:///{path}")
    database.migrate()
    jobs = {one.change.number: one.state for one in JobStore(database).jobs()}
    assert jobs == {1: "cancelled", 2: "queued"}
    database.engine.dispose()


@EACH
async def test_an_extension_works(recorded: Path, tmp_path: Path, tiller_dirs: TillerDirs) -> None:
    root = tmp_path / "work"
    root.mkdir()
    model = ScriptedModel(
        [call("price", {"cents": 1250}), call("price", {"cents": -1}, id="c2"), say("ok")]
    )
    home = Home(tiller_dirs, root)
    async with extended(home, model, named=[recorded / "extension.py"]) as it:
        _ = await it.say("What does it cost?")
        assert it.errors() == []
        good, bad = it.bench.results()
        assert good == "12.50 EUR"
        assert "a price is not negative" in bad
        commands = ExtensionCommands(it.host)
        await commands.press("ctrl+alt+p")
        await commands.run("prices", "milk")
        shown = it.bench.seen()
        assert [one.view["text"] for one in shown if isinstance(one, UiNotify)] == ["prices"]
        (widget,) = [one.view for one in shown if isinstance(one, UiWidget)]
        assert widget["key"] == "prices"
        assert it.errors() == []
