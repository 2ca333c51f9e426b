"""A session in numbers: what it holds and has cost, how full its context is, and its last answer."""

from decimal import Decimal
from typing import Any

import pytest

from agent_core.kernel import EntryId, SessionId
from agent_core.messages import BashMessage, Cost, Usage
from agent_core.session.snapshot import ContextUsage, SessionStats, session_stats
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    LineLocation,
    StoredMessage,
    UsageEntry,
)
from tests.support.session.entries import AT_MS, assistant, call, chain, entry, header, result, user
from tests.support.session.scripted_model import Gate, ScriptedModel, say
from tests.support.session.sessions import bench

SPENT = Usage(input=10, output=5, cache_read=3, cache_write=2, reasoning=1)


def priced(dollars: float, *, tokens: int = 10) -> Usage:
    return Usage(input=tokens, cost=Cost(input=dollars))


def summary(usage: Usage | None) -> CompactionEntry:
    return CompactionEntry(
        id=EntryId("k"),
        parent=EntryId("e1"),
        at_ms=AT_MS,
        summary="s",
        first_kept=EntryId("e1"),
        tokens_before=1,
        usage=usage,
    )


def branch_summary(usage: Usage) -> BranchSummaryEntry:
    return BranchSummaryEntry(
        id=EntryId("b"), parent=None, at_ms=AT_MS, from_id=EntryId("e1"), summary="s", usage=usage
    )


def program(kind: str = "p") -> CustomMessageEntry:
    return CustomMessageEntry(
        id=EntryId("p"), parent=None, at_ms=AT_MS, custom_type=kind, content=()
    )


def cold(kind: str, role: str | None = None, **more: Any) -> ColdEntry:
    return ColdEntry(
        id=EntryId(f"cold-{kind}-{role}"),
        parent=None,
        at_ms=AT_MS,
        kind=kind,
        role=role,
        place=LineLocation(offset=0, size=1),
        **more,
    )


# Counting.


def test_an_empty_session_has_nothing_and_costs_nothing() -> None:
    assert session_stats(()) == SessionStats(tokens=Usage(), cost=Decimal(0))


def test_messages_are_counted_by_who_said_them() -> None:
    ran = BashMessage(command="ls", output="", exit_code=0, at_ms=AT_MS)
    entries: list[AnyEntry] = [
        *chain(user("a"), assistant("b", call("read"), call("ls")), result("x"), user("c"), ran),
        program(),
        CustomEntry(id=EntryId("x"), parent=None, at_ms=AT_MS + 5, custom_type="todo", data={}),
    ]
    counted = session_stats(entries, file="/s.jsonl")
    assert counted == SessionStats(
        user_messages=2,
        assistant_messages=1,
        tool_results=1,
        other_messages=2,
        tool_calls={"read": 1, "ls": 1},
        tokens=Usage(),
        cost=Decimal(0),
        first_ms=AT_MS,
        last_ms=AT_MS + 5,
        file="/s.jsonl",
    )
    assert counted.messages == 6


def test_other_branches_and_summaries_count_too() -> None:
    entries: list[AnyEntry] = [
        entry("e1", assistant("a", usage=SPENT)),
        entry("left", assistant("b", usage=SPENT), parent="e1"),
        entry("here", assistant("c", usage=SPENT), parent="e1"),
        summary(SPENT),
        branch_summary(SPENT),
        UsageEntry(
            id=EntryId("u"),
            parent=None,
            at_ms=AT_MS,
            kind="cron",
            provider="lab",
            model="m",
            usage=SPENT,
        ),
    ]
    assert session_stats(entries).tokens == Usage(
        input=60, output=30, cache_read=18, cache_write=12, reasoning=6
    )


def test_entries_whose_bodies_are_in_the_file_count_the_same() -> None:
    entries = [
        cold("message", "user"),
        cold("message", "assistant", usage=priced(0.25), tool_calls=("read", "read", "ls")),
        cold("message", "toolResult"),
        cold("message", "bashExecution"),
        cold("custom_message"),
        cold("compaction", usage=priced(0.5)),
    ]
    counted = session_stats(entries)
    assert (
        counted.user_messages,
        counted.assistant_messages,
        counted.tool_results,
        counted.other_messages,
    ) == (1, 1, 1, 2)
    assert counted.tool_calls == {"read": 2, "ls": 1}
    assert (counted.tokens.total, counted.cost) == (20, Decimal("0.75"))


@pytest.mark.parametrize(
    ("usages", "cost"),
    [
        ((priced(0.1), priced(0.2)), Decimal("0.3")),
        ((priced(0.1), Usage(input=1)), None),
        ((priced(0.1), Usage()), Decimal("0.1")),
        ((Usage(input=1), priced(0.1)), None),
        ((priced(0.0),), Decimal(0)),
    ],
    ids=["known", "one unknown", "one that used nothing", "unknown first", "free"],
)
def test_money_is_added_exactly_and_unknown_when_a_part_is(
    usages: tuple[Usage, ...], cost: Decimal | None
) -> None:
    entries = chain(*(assistant("a", usage=usage) for usage in usages))
    assert session_stats(entries).cost == cost


async def test_a_session_gives_its_own_numbers() -> None:
    async with bench(ScriptedModel([say("hi", usage=priced(0.5))])) as b:
        await b.session.prompt("go")
        await b.idle()
        counted = b.session.info.stats()
        assert (counted.user_messages, counted.assistant_messages) == (1, 1)
        assert (counted.cost, counted.file) == (Decimal("0.5"), None)
        assert counted.first_ms == counted.last_ms


# How full the context is.


@pytest.mark.parametrize(
    ("used", "size", "percent"),
    [(None, 1000, None), (250, 1000, 25.0), (10, 0, None), (0, 1000, 0.0)],
    ids=["unknown", "known", "no window", "empty"],
)
def test_the_share_is_known_only_when_both_numbers_are(
    used: int | None, size: int, percent: float | None
) -> None:
    assert ContextUsage(used=used, size=size).percent == percent


async def test_after_a_compaction_nobody_knows_how_full_the_context_is_until_the_next_answer() -> (
    None
):
    model = ScriptedModel(
        [
            say("one", usage=Usage(input=60, output=4)),
            say("two", usage=Usage(input=90, output=10)),
            say("of what came before", usage=Usage(input=100, output=10)),
            say("of the turn that is cut", usage=Usage(input=100, output=10)),
            say("three", usage=Usage(input=40, output=2)),
        ]
    )
    async with bench(model) as b:
        info = b.session.info
        assert info.context_usage() == ContextUsage(used=0, size=128_000)
        for words in ("a", "b"):
            await b.session.prompt(words)
            await b.idle()
        assert info.context_usage() == ContextUsage(used=100, size=128_000)
        receipt = await b.session.compact(keep_recent_tokens=1)
        assert receipt.compaction is not None
        await b.idle()
        assert info.context_usage() == ContextUsage(used=None, size=128_000)
        await b.session.prompt("c")
        await b.idle()
        assert info.context_usage() == ContextUsage(used=42, size=128_000)


# The last answer.


@pytest.mark.parametrize(
    ("messages", "last"),
    [
        ((user("a"),), None),
        ((assistant("one"), user("a"), assistant(" two ", "three\n")), "two three"),
        ((assistant("one"), assistant(stop_reason="aborted")), "one"),
        ((assistant("one"), assistant("half", stop_reason="aborted")), "half"),
        ((assistant("one"), assistant(call("read"), stop_reason="tool_use")), None),
        ((assistant("one"), result("x"), user("a")), "one"),
    ],
    ids=[
        "no answer",
        "joined and trimmed",
        "empty abort",
        "abort that said something",
        "only a call",
        "not the newest entry",
    ],
)
async def test_the_last_answer_is_the_newest_that_is_more_than_an_abort(
    messages: tuple[StoredMessage, ...], last: str | None
) -> None:
    store = MemoryStore()
    log = await store.create(header())
    await log.append(chain(*messages))
    await log.close()
    async with bench(ScriptedModel(), opened=await store.open(SessionId("s1"))) as b:
        assert b.session.info.last_answer() == last


async def test_an_answer_under_way_is_not_the_last_one_yet() -> None:
    gate = Gate()
    async with bench(ScriptedModel([say("one"), (gate, *say("two"))])) as b:
        await b.session.prompt("a")
        await b.idle()
        await b.session.prompt("b")
        await gate.reached.wait()
        assert b.session.info.last_answer() == "one"
        gate.release()
        await b.idle()
        assert b.session.info.last_answer() == "two"
