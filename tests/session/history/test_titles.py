"""A session without a title gets one from a model after a run, and nothing waits for it."""

import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agent_core.events import Budgets, RunEnded, SessionTitle, SessionUsage
from agent_core.hooks import Hook, HookTable, SessionNamed
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ProviderError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.messages import Cost, Usage
from agent_core.providers import UsageUpdate
from agent_core.providers.model import Prices
from agent_core.session.context import SessionOptions
from agent_core.session.history.titles import EXCERPT_CHARS, SYSTEM, TITLE_CHARS, title_of
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import SessionNameEntry, UsageEntry
from tests.support.session.scripted_model import SCRIPTED_FACTS, Gate, ScriptedModel, Turn, say
from tests.support.session.sessions import WAIT_S, Bench, OneModel, bench, words

FACTS = replace(SCRIPTED_FACTS, api="openai-completions")
SMALL = replace(FACTS, id="small")
TITLE = "Rounding of invoice totals"
ANSWERED, TITLED = Usage(input=100, output=10), Usage(input=30, output=4)
DOWN = ProviderError(
    "the provider is down", reason="invalid_request", provider="scripted", status=400
)
MAY_END_S = 1.0


def scripted(*turns: Turn) -> ScriptedModel:
    """Make a model that sessions may ask for a title; the embedded one, as which scripts usually count, is not asked."""
    return ScriptedModel(turns, facts=FACTS)


def titled(model: ScriptedModel, **more: Any) -> AbstractAsyncContextManager[Bench]:
    return bench(model, titled=True, **more)


async def talk(b: Bench, *prompts: str) -> None:
    for text in prompts:
        await b.session.prompt(text)
        await b.idle()


def titles(b: Bench) -> list[str | None]:
    return [event.title for event in b.seen() if isinstance(event, SessionTitle)]


def names(b: Bench) -> list[tuple[str, bool]]:
    entries = b.session.info.entries
    return [(one.name, one.generated) for one in entries if isinstance(one, SessionNameEntry)]


async def reached(gate: Gate) -> None:
    with anyio.fail_after(WAIT_S):
        await gate.reached.wait()


async def test_a_title_is_made_of_the_prompt_and_the_answer_after_the_run() -> None:
    model = scripted(say("They are rounded now"), say(TITLE))
    heard: list[str | None] = []

    async def hear(named: SessionNamed, _: object) -> None:
        heard.append(named.name)

    hooks = HookTable()
    hooks.add(Hook("hear", hear), at=SessionNamed)
    async with titled(model, hooks=hooks) as b:
        await b.session.prompt("round the totals")
        await b.until(SessionTitle)
        assert b.session.tree.title == TITLE
        assert b.session.info.snapshot().title == TITLE
        assert names(b) == [(TITLE, True)]
        order = b.names()
        assert order.index("run.ended") < order.index("session.title")
        request = model.requests[1]
        assert (request.system, request.tools, request.cache) == (SYSTEM, (), "none")
        assert (request.thinking, request.max_tokens) == ("off", 500)
        (message,) = request.messages
        assert "<user>\nround the totals\n</user>" in words(message)
        assert "<agent>\nThey are rounded now\n</agent>" in words(message)
    assert heard == [TITLE]


async def test_only_the_beginning_of_a_long_prompt_and_answer_is_sent() -> None:
    model = scripted(say("a" * 5 * EXCERPT_CHARS), say(TITLE))
    async with titled(model) as b:
        await b.session.prompt("u" * 5 * EXCERPT_CHARS)
        await b.until(SessionTitle)
        (message,) = model.requests[1].messages
        assert "u" * EXCERPT_CHARS + "\n</user>" in words(message)
        assert len(words(message)) < 3 * EXCERPT_CHARS


async def test_nothing_waits_for_the_title() -> None:
    gate = Gate()
    model = scripted(say("a1"), (gate, *say(TITLE)), say("a2"))
    async with titled(model) as b:
        await talk(b, "u1")
        await reached(gate)
        assert b.session.info.snapshot().state == "idle"
        await talk(b, "u2")
        assert [words(one) for one in b.messages] == ["u1", "a1", "u2", "a2"]
        assert b.session.tree.title is None
        gate.release()
        await b.until(SessionTitle)
        assert [words(one) for one in b.messages] == ["u1", "a1", "u2", "a2"]
        assert len(model.requests) == 3


async def test_a_title_of_a_person_is_kept_and_no_request_is_made() -> None:
    model = scripted(say("a1"), say("a2"))
    async with titled(model) as b:
        await b.session.tree.rename("My work")
        await talk(b, "u1", "u2")
        assert (titles(b), names(b)) == (["My work"], [("My work", False)])
        assert len(model.requests) == 2


async def test_a_title_that_a_person_removed_is_not_replaced() -> None:
    model = scripted(say("a1"), say("a2"))
    async with titled(model) as b:
        await b.session.tree.rename("My work")
        await b.session.tree.rename(None)
        await talk(b, "u1", "u2")
        assert b.session.tree.title is None
        assert len(model.requests) == 2


async def test_a_title_that_a_person_sets_during_the_request_wins() -> None:
    gate = Gate()
    model = scripted(say("a1"), (gate, *say(TITLE, usage=TITLED)))
    async with titled(model) as b:
        await talk(b, "u1")
        await reached(gate)
        await b.session.tree.rename("My work")
        gate.release()
        # What the request used is counted all the same.
        await b.until(SessionUsage, 2)
        await anyio.wait_all_tasks_blocked()
        assert (titles(b), names(b)) == (["My work"], [("My work", False)])


async def test_a_title_that_a_person_is_setting_wins_also_before_it_is_stored() -> None:
    gate = Gate()
    model = scripted(say("a1"), (gate, *say(TITLE)))
    async with titled(model) as b:
        await talk(b, "u1")
        await reached(gate)
        async with anyio.create_task_group() as group:
            group.start_soon(b.session.tree.rename, "My work")
            gate.release()
        await b.until(SessionTitle)
        await anyio.wait_all_tasks_blocked()
        assert (b.session.tree.title, titles(b)[-1]) == ("My work", "My work")


async def test_a_model_that_fails_gives_no_title_and_the_next_prompt_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = scripted(say("a1"), DOWN, say("a2"))
    with caplog.at_level(logging.WARNING):
        async with titled(model) as b:
            await talk(b, "u1")
            await anyio.wait_all_tasks_blocked()
            await talk(b, "u2")
            await anyio.wait_all_tasks_blocked()
            assert (b.session.tree.title, len(model.requests)) == (None, 3)
            assert "notice" not in b.names()
    assert [one.getMessage() for one in caplog.records] == [
        "session s-1 gets no title: the provider is down"
    ]


async def test_a_crash_of_the_request_does_not_end_the_session() -> None:
    model = scripted(say("a1"), RuntimeError("a bug"), say("a2"))
    async with titled(model) as b:
        await talk(b, "u1")
        await anyio.wait_all_tasks_blocked()
        await talk(b, "u2")
        assert b.session.tree.title is None


async def test_an_answer_without_a_title_is_no_title() -> None:
    async with titled(scripted(say("a1"), say("\n \n"), say("a2"))) as b:
        await talk(b, "u1", "u2")
        assert names(b) == []


async def test_a_cancel_during_the_request_returns_at_once_and_the_title_comes() -> None:
    gate = Gate()
    async with titled(scripted(say("a1"), (gate, *say(TITLE)))) as b:
        await talk(b, "u1")
        await reached(gate)
        with anyio.fail_after(MAY_END_S):
            cancelled = await b.session.abort()
        assert cancelled.status == "alreadyEnded"
        gate.release()
        await b.until(SessionTitle)


async def test_a_session_that_closes_drops_the_request_and_keeps_what_it_used() -> None:
    store, gate = MemoryStore(), Gate()
    model = scripted(say("a1", usage=ANSWERED), (UsageUpdate(usage=TITLED), gate, *say(TITLE)))
    async with titled(model, store=store) as b:
        await talk(b, "u1")
        await reached(gate)
        with anyio.fail_after(MAY_END_S):
            await b.session.close()
        assert model.open_streams == 0
    entries = (await store.open(SessionId("s-1"))).entries
    assert [one.usage for one in entries if isinstance(one, UsageEntry)] == [TITLED]
    assert not any(isinstance(one, SessionNameEntry) for one in entries)


async def test_usage_is_counted_once_for_the_session_and_not_for_the_next_run() -> None:
    store, gate, during = MemoryStore(), Gate(), Gate()
    model = scripted(
        say("a1", usage=ANSWERED),
        (gate, *say(TITLE, usage=TITLED)),
        (during, *say("a2", usage=ANSWERED)),
    )
    total = ANSWERED.plus(TITLED).plus(ANSWERED)
    async with titled(model, store=store) as b:
        await talk(b, "u1")
        await reached(gate)
        await b.session.prompt("u2")
        await reached(during)
        gate.release()
        await b.until(SessionTitle)
        during.release()
        await b.idle()
        ended = [event.usage.tokens for event in b.seen() if isinstance(event, RunEnded)]
        assert ended == [ANSWERED, ANSWERED]
        assert b.session.info.snapshot().usage.tokens == total
        entry = next(one for one in b.session.info.entries if isinstance(one, UsageEntry))
        assert (entry.kind, entry.provider, entry.model) == ("title", "scripted", "model-1")
    opened = await store.open(SessionId("s-1"))
    again = scripted(say("a3"))
    async with titled(again, store=store, opened=opened) as b:
        assert b.session.info.snapshot().usage.tokens == total
        await talk(b, "u3")
        await anyio.wait_all_tasks_blocked()
        assert (b.session.tree.title, len(again.requests)) == (TITLE, 1)


async def test_the_title_does_not_use_the_budget_of_the_next_run() -> None:
    gate = Gate()
    dear = Usage(input=500, output=10, cost=Cost(input=5.0))
    facts = replace(FACTS, prices=Prices(input=1.0, output=2.0))
    paid = replace(ANSWERED, cost=Cost(input=0.1))
    turns = (say("a1", usage=paid), (gate, *say(TITLE, usage=dear)), say("a2", usage=paid))
    model = ScriptedModel(turns, facts=facts)
    async with titled(model, budgets=Budgets(usd=1.0, tokens=300)) as b:
        await talk(b, "u1")
        await reached(gate)
        gate.release()
        await b.until(SessionTitle)
        await talk(b, "u2")
        assert [one.status for one in b.seen() if isinstance(one, RunEnded)] == ["completed"] * 2


@pytest.mark.parametrize("why", ["off", "not asked for", "embedded"])
async def test_no_title_is_made_where_none_is_wanted(why: str) -> None:
    turns = (say("a1"), say("a2"))
    model = ScriptedModel(turns) if why == "embedded" else scripted(*turns)
    options = SessionOptions(titles="off" if why == "off" else "auto")
    async with bench(model, titled=why != "not asked for", options=options) as b:
        await talk(b, "u1", "u2")
        await anyio.wait_all_tasks_blocked()
        assert (len(model.requests), names(b)) == (2, [])


async def test_a_run_without_an_answer_gets_no_title_and_the_next_one_does() -> None:
    model = scripted(DOWN, say("a2"), say(TITLE))
    async with titled(model) as b:
        await talk(b, "u1")
        await b.session.prompt("u2")
        await b.until(SessionTitle)
        assert "<user>\nu1\n</user>" in words(model.requests[2].messages[0])


async def test_a_run_that_ended_at_its_budget_gets_no_title() -> None:
    model = scripted(say("a1", usage=ANSWERED), say("a2", usage=ANSWERED))
    async with titled(model, options=SessionOptions(max_turns=0)) as b:
        await talk(b, "u1")
        await anyio.wait_all_tasks_blocked()
        assert [one.status for one in b.seen() if isinstance(one, RunEnded)] == ["budget"]
        assert len(model.requests) == 1


async def test_another_model_makes_the_title_when_the_settings_name_it() -> None:
    model, small = scripted(say("a1")), ScriptedModel((say(TITLE, usage=TITLED),), facts=SMALL)
    options = SessionOptions(title_model=SMALL.ref)
    async with titled(model, source=OneModel(model, small), options=options) as b:
        await talk(b, "u1")
        await b.until(SessionTitle)
        assert (len(model.requests), len(small.requests)) == (1, 1)
        entry = next(one for one in b.session.info.entries if isinstance(one, UsageEntry))
        assert entry.model == "small"
        assert b.session.info.config.model == FACTS.ref


@pytest.mark.parametrize(
    ("ref", "why"),
    [("scripted/none", "no model 'scripted/none'"), (SMALL.ref, "the price of scripted/small")],
)
async def test_a_title_model_that_cannot_be_used_is_one_line_in_the_log(
    ref: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    facts = replace(FACTS, prices=Prices(input=1.0, output=2.0))
    cost = replace(ANSWERED, cost=Cost(input=0.1))
    model = ScriptedModel((say("a1", usage=cost), say("a2", usage=cost)), facts=facts)
    small = ScriptedModel((), facts=SMALL)
    with caplog.at_level(logging.WARNING):
        async with titled(
            model,
            source=OneModel(model, small),
            options=SessionOptions(title_model=ref),
            budgets=Budgets(usd=1.0),
        ) as b:
            await talk(b, "u1", "u2")
            await anyio.wait_all_tasks_blocked()
            assert names(b) == []
    (record,) = caplog.records
    assert f"session s-1 gets no title: {why}" in record.getMessage()


@pytest.mark.parametrize(("off", "limit"), [(None, 4_000), ("none", 500)])
async def test_a_model_that_cannot_stop_thinking_has_room_for_its_thoughts(
    off: str | None, limit: int
) -> None:
    facts = replace(FACTS, reasoning=True, compat={"thinkingLevelMap": {"off": off}})
    model = ScriptedModel((say("a1"), say(TITLE)), facts=facts)
    async with titled(model) as b:
        await talk(b, "u1")
        await b.until(SessionTitle)
        assert model.requests[1].max_tokens == limit


KEY = "sk-ant-api03-" + "kQ7" * 20
LONG = ("word " * 30).strip()
ANSWERS: Sequence[tuple[str, str]] = (
    (TITLE, TITLE),
    (f"\n\n  {TITLE}.  \nSecond line", TITLE),
    (f'"{TITLE}."', TITLE),
    (f"**{TITLE}**", TITLE),
    (f"# Title: “{TITLE}”", TITLE),
    (f"<think>What is it?\nRounding.</think>\n{TITLE}", TITLE),
    ("Summen runden。", "Summen runden"),
    ('"Foo" and "bar"', '"Foo" and "bar"'),
    ("Fix `__init__` of Invoice", "Fix `__init__` of Invoice"),
    ("#123: totals", "#123: totals"),
    ("\x1b[31mRed\x1b[0m\ttotals\x07", "Red totals<U+0007>"),
    (LONG, "word word word word word word word word word word word word" + "…"),
    ("x" * 500, "x" * 59 + "…"),
    ("", ""),
    (" . ", ""),
    ('""', ""),
)


@pytest.mark.parametrize(("text", "title"), ANSWERS)
def test_a_title_is_one_short_line(text: str, title: str) -> None:
    assert title_of(text, Redactor()) == title
    assert len(title) <= TITLE_CHARS


def test_a_secret_is_removed_before_the_title_is_cut() -> None:
    title = title_of(f"Replace the leaked key of the provider {KEY}", Redactor())
    assert KEY[:20] not in title
    assert len(title) <= TITLE_CHARS
