"""What a compaction leaves as it was: the system prompt, the tools, the file's earlier lines, the tree meanwhile."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_core.compaction import CompactionPolicy
from agent_core.events import CompactionEnded, CompactionStarted, RunEnded
from agent_core.kernel.errors import ProviderError, SessionBusy
from agent_core.messages import CompactionSummaryMessage, Usage
from agent_core.session.context import SessionOptions
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, Turn, say
from tests.support.session.sessions import Bench, OneModel, bench
from tests.support.session.trees import node, talked

LONG = "word " * 1_500
FACTS = replace(SCRIPTED_FACTS, context_window=8_000, max_tokens=1_000)
BY_HAND = SessionOptions(auto_compact=False)
FULL = ProviderError("prompt is too long", reason="context_overflow", provider="p", status=400)


def talkative(*more: Turn) -> ScriptedModel:
    return ScriptedModel([say(LONG), say(LONG), *more], facts=FACTS)


async def compacted(b: Bench) -> None:
    await b.session.compact()
    await b.idle()


async def test_the_system_prompt_and_the_tools_stand_before_the_summary_as_before() -> None:
    model = talkative(say("## Goal\nx"), say("on"))
    async with bench(model, options=BY_HAND) as b:
        await talked(b, "one", "two")
        await compacted(b)
        await talked(b, "three")
    first, _, summary, last = model.requests
    assert (last.system, last.tools) == (first.system, first.tools)
    assert first.system not in str(summary.messages)
    assert isinstance(last.messages[0], CompactionSummaryMessage)


async def test_one_line_is_added_to_the_file_and_the_others_stay(tmp_path: Path) -> None:
    model = talkative(say("## Goal\nx", usage=Usage(input=70, output=7)))
    store = JsonlStore(tmp_path / "sessions", FakeClock())
    async with bench(model, store=store, options=BY_HAND) as b:
        await talked(b, "one", "two")
        file = Path(b.session.info.location or "")
        before = _bytes(file)
        await compacted(b)
        (ended,) = [event for event in b.seen() if isinstance(event, CompactionEnded)]
        added = _bytes(file).removeprefix(before)
    assert _bytes(file).startswith(before)
    line: dict[str, Any] = json.loads(added)
    assert (line["type"], line["summary"]) == ("compaction", ended.summary)
    assert (line["tokensBefore"], line["details"]) == (
        ended.tokens_before,
        {"readFiles": [], "modifiedFiles": []},
    )
    assert (line["usage"]["input"], line["usage"]["output"]) == (70, 7)
    kept = {json.loads(one)["id"] for one in before.splitlines()}
    assert line["firstKeptEntryId"] in kept


async def test_a_compaction_by_hand_works_where_none_happens_unasked() -> None:
    full = say(LONG, usage=Usage(input=7_900, output=10))
    settings = CompactionPolicy(enabled=False)
    options = SessionOptions(auto_compact=False, compaction=settings)
    model = ScriptedModel([say(LONG), full, say("## Goal\nx")], facts=FACTS)
    async with bench(model, options=options) as b:
        await talked(b, "one", "two")
        assert not any(isinstance(event, CompactionStarted) for event in b.seen())
        await compacted(b)
        (ended,) = [event for event in b.seen() if isinstance(event, CompactionEnded)]
        assert (ended.reason, ended.error, ended.aborted) == ("manual", None, False)


@pytest.mark.parametrize("what", ["fork", "clone", "navigate"])
async def test_while_a_compaction_goes_on_the_tree_stays_as_it_is(what: str) -> None:
    gate = Gate()
    async with bench(talkative((gate, *say("## Goal\nx"))), options=BY_HAND) as b:
        await talked(b, "one", "two")
        target, before = node(b, "one"), b.session.info.entries
        calls: dict[str, Any] = {
            "fork": lambda: b.session.tree.fork(target),
            "clone": b.session.tree.clone,
            "navigate": lambda: b.session.tree.navigate(target),
        }
        await b.session.compact()
        with anyio.fail_after(5):
            await gate.reached.wait()
        with pytest.raises(SessionBusy):
            await calls[what]()
        assert b.session.info.entries == before
        gate.release()
        await b.idle()
        assert isinstance(b.messages[0], CompactionSummaryMessage)


async def test_what_did_not_fit_a_model_that_was_left_is_not_compacted() -> None:
    gate = Gate()
    small = talkative((gate, FULL))
    large = ScriptedModel([say("fits")], facts=replace(FACTS, id="model-2"))
    async with bench(small, source=OneModel(small, large)) as b:
        await talked(b, "one", "two")
        await b.session.prompt("three")
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.models.choose("scripted/model-2")
        gate.release()
        await b.idle()
        assert not any(isinstance(event, CompactionStarted) for event in b.seen())
        assert [event.status for event in b.seen() if isinstance(event, RunEnded)][-1] == "failed"
        await talked(b, "four")
        assert b.names()[-2:] == ["run.ended", "session.state"]


def _bytes(file: Path) -> bytes:
    return file.read_bytes()
