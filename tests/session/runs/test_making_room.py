"""Where room is made in the context, and what is done when no summary can be had."""

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from agent_core.compaction import CompactionPolicy, ModelFigures
from agent_core.events import (
    Budgets,
    CompactionEnded,
    CompactionStarted,
    Notice,
    RunEnded,
    SessionUsage,
)
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ProviderError, SessionBusy
from agent_core.messages import (
    CompactionSummaryMessage,
    Usage,
    UserMessage,
    text_of,
)
from agent_core.providers import ModelInfo, UsageUpdate
from agent_core.session.context import SessionOptions
from agent_core.storage.adapters.memory import MemoryStore
from tests.support.session.scripted_model import Gate, ScriptedModel, Turn, answer, call, say
from tests.support.session.sessions import Bench, bench, words
from tests.support.workspace.tools import echo

SMALL = ModelInfo(
    provider="scripted",
    id="model-1",
    api="embedded",
    name="Small",
    context_window=8_000,
    max_tokens=1_000,
)
LONG = "word " * 1_900
SOME = "word " * 1_200
HUGE = "word " * 7_000
DOWN = ProviderError("the provider is down", reason="server", provider="scripted", status=529)
FULL = ProviderError("prompt is too long", reason="context_overflow", provider="p", status=400)
UNKNOWN = ProviderError("no such model", reason="not_found", provider="p", status=404)
SUMMARY = say("## Goal\nx")
MANUAL = SessionOptions(auto_compact=False)


async def talk(b: Bench, *prompts: str) -> None:
    for text in prompts:
        await b.session.prompt(text)
        await b.idle()


def ends(b: Bench) -> list[CompactionEnded]:
    return [e for e in b.seen() if isinstance(e, CompactionEnded)]


def statuses(b: Bench) -> list[str]:
    return [e.status for e in b.seen() if isinstance(e, RunEnded)]


def notices(b: Bench) -> list[str]:
    return [e.text for e in b.seen() if isinstance(e, Notice)]


async def test_before_a_prompt_room_is_made_and_the_words_stay_as_they_are() -> None:
    model = ScriptedModel([say(LONG), say(LONG), SUMMARY, say("short")], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one", "two", "three " * 2_500)
        names = b.names()
        started = names.index("compaction.started")
        assert names[:started].count("run.ended") == 2
        assert names[started:].count("turn.started") == 1
        assert [(e.reason, e.will_retry) for e in ends(b)] == [("threshold", False)]
        sent = model.requests[-1].messages
        assert isinstance(sent[0], CompactionSummaryMessage)
        assert words(sent[-1]) == "three " * 2_500


async def test_between_turns_room_is_made_when_the_results_fill_the_context() -> None:
    model = ScriptedModel(
        [say(LONG), call("echo", {"text": HUGE}), SUMMARY, say("done")], facts=SMALL
    )
    async with bench(model, tools=[echo()]) as b:
        await talk(b, "one", "two")
        assert [(e.reason, e.error) for e in ends(b)][:1] == [("threshold", None)]
        names = b.names()
        assert names.index("compaction.started") < names.index(
            "run.ended", names.index("tool.ended")
        )


async def test_after_a_run_room_is_made_for_the_next_prompt() -> None:
    full = say("done", usage=Usage(input=6_900, output=10))
    model = ScriptedModel([say(LONG), full, SUMMARY], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one", "two " * 1_900)
        assert [e.reason for e in ends(b)] == ["threshold"]
        assert b.names().index("compaction.ended") < len(b.names()) - 1
        assert b.names()[-2:] == ["run.ended", "session.state"]


async def test_what_was_compacted_is_not_compacted_again_before_the_model_has_answered() -> None:
    full = say("done", usage=Usage(input=7_900, output=10))
    model = ScriptedModel([say(LONG), full, SUMMARY, DOWN, say("ok")], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one", HUGE, "three")
        assert [e.reason for e in ends(b)] == ["threshold"]
        assert statuses(b) == ["completed"] * 3


async def test_what_a_summary_used_that_failed_counts_for_the_run_and_the_session() -> None:
    full = say("done", usage=Usage(input=6_900, output=10))
    lost = (UsageUpdate(usage=Usage(input=700, output=5)), UNKNOWN)
    empty = say("", usage=Usage(input=70))
    model = ScriptedModel([say(LONG), full, lost, empty], facts=SMALL)
    store = MemoryStore()
    async with bench(model, store=store) as b:
        await talk(b, "one", "two " * 1_900)
        assert [e.error is not None for e in ends(b)] == [True]
        ended = [e for e in b.seen() if isinstance(e, RunEnded)][-1]
        assert ended.usage.tokens.input == 7_600
        told = [e for e in b.seen() if isinstance(e, SessionUsage)][-1]
        assert told.usage.tokens.input == b.session.info.snapshot().usage.tokens.input == 7_600
        await b.session.compact()
        await b.idle()
        assert b.session.info.snapshot().usage.tokens.input == 7_670
    opened = await store.open(SessionId("s-1"))
    async with bench(model, opened=opened) as later:
        assert later.session.info.snapshot().usage.tokens.input == 7_670


async def test_a_run_whose_summaries_fail_reaches_its_budget() -> None:
    full = call("echo", {"text": LONG}, usage=Usage(input=6_900, output=10))
    lost = (UsageUpdate(usage=Usage(input=5_000)), UNKNOWN)
    model = ScriptedModel([say(LONG), full, lost, say("on")], facts=SMALL)
    async with bench(model, tools=[echo()], budgets=Budgets(tokens=10_000)) as b:
        await talk(b, "one", "two")
        assert statuses(b) == ["completed", "budget"]


async def test_a_summary_that_is_cancelled_is_paid_for_too() -> None:
    gate = Gate()
    begun = (UsageUpdate(usage=Usage(input=700)), gate, *SUMMARY)
    model = ScriptedModel([say(LONG), say(LONG), begun], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        await gate.reached.wait()
        await b.session.abort()
        await b.idle()
        assert b.session.info.snapshot().usage.tokens.input == 700


async def test_a_summary_that_cannot_be_had_is_asked_for_once_in_a_run() -> None:
    full = Usage(input=6_900, output=10)
    model = ScriptedModel(
        [
            say(LONG),
            call("echo", {"text": LONG}, usage=full),
            UNKNOWN,
            call("echo", {"text": "x"}, usage=full),
            say("done", usage=full),
        ],
        facts=SMALL,
    )
    async with bench(model, tools=[echo()]) as b:
        await talk(b, "one", "two")
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.reason, ended.error.message) == ("threshold", "no such model")
        assert statuses(b) == ["completed"] * 2


async def test_how_full_the_context_is_is_unknown_from_a_compaction_to_the_next_answer() -> None:
    model = ScriptedModel(
        [say(LONG), say(LONG, usage=Usage(input=3_900, output=100)), SUMMARY], facts=SMALL
    )
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        assert b.session.info.snapshot().usage.context_used == 4_000
        await b.session.compact()
        await b.idle()
        assert b.session.info.snapshot().usage.context_used is None
        told = [e for e in b.seen() if isinstance(e, SessionUsage)]
        assert told[-1].usage.context_used is None
        model.add(say("on", usage=Usage(input=500, output=1)))
        await talk(b, "three")
        assert b.session.info.snapshot().usage.context_used == 501


async def test_a_summary_is_asked_for_again_after_failures_that_pass() -> None:
    model = ScriptedModel([say(LONG), say(LONG), DOWN, DOWN, SUMMARY], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        await b.idle()
        first, second = b.slept
        assert 1.6 <= first <= 2.4
        assert 3.2 <= second <= 4.8
        assert [e.error for e in ends(b)] == [None]
        assert [text.partition(";")[0] for text in notices(b)] == [
            "the summary failed (the provider is down)"
        ] * 2


async def test_retries_of_a_summary_are_bounded() -> None:
    model = ScriptedModel([say(LONG), say(LONG), DOWN, DOWN, DOWN, DOWN], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        await b.idle()
        assert len(b.slept) == 3
        (ended,) = ends(b)
        assert ended.error is not None


@pytest.mark.parametrize(
    "bad",
    [say("too lo", stop_reason="length"), call("echo", {}), say(" "), (answer(),)],
    ids=["cut off", "a call", "blank", "empty"],
)
async def test_a_summary_that_cannot_be_relied_on_is_not_asked_for_again(bad: Turn) -> None:
    model = ScriptedModel([say(LONG), say(LONG), bad], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        before = b.messages
        await b.session.compact()
        await b.idle()
        (ended,) = ends(b)
        assert ended.error is not None
        assert "Summarization failed" in ended.error.message
        assert (b.messages, b.slept) == (before, [])


async def test_without_a_summary_an_overflow_is_answered_by_cutting_tool_output() -> None:
    model = ScriptedModel(
        [
            call("echo", {"text": SOME}),
            say("noted"),
            call("echo", {"text": SOME}, id="c2"),
            FULL,
            UNKNOWN,
            say("made it"),
        ],
        facts=SMALL,
    )
    async with bench(model, tools=[echo()]) as b:
        await talk(b, "one", "two")
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.reason, ended.summary, ended.will_retry) == ("overflow", None, True)
        assert ended.error.message == "no such model"
        assert ended.tokens_after is not None
        assert ended.tokens_after < ended.tokens_before * 4 // 5
        assert statuses(b) == ["completed"] * 2
        assert any(
            "tool call was cut" in text or "tool calls was cut" in text for text in notices(b)
        )
        first, *_ = b.results()
        assert first.startswith("echo:word word")
        assert "characters cut to make room; call the tool again" in first
        assert len(first) < 1_200


async def test_a_summary_that_is_too_long_for_the_model_too_is_replaced_by_cutting() -> None:
    model = ScriptedModel(
        [call("echo", {"text": HUGE}), say("noted"), say(LONG), FULL, FULL], facts=SMALL
    )
    async with bench(model, tools=[echo()], options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        await b.idle()
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.reason, ended.error.kind) == ("manual", "ContextOverflow")
        assert len(b.results()[0]) < 1_200
        assert model.turns_left == 0


async def test_output_is_cut_at_once_when_there_is_nothing_to_summarise() -> None:
    facts = replace(SMALL, context_window=0)
    model = ScriptedModel([call("echo", {"text": HUGE}), FULL, say("made it")], facts=facts)
    async with bench(model, tools=[echo()]) as b:
        await talk(b, "one")
        (ended,) = ends(b)
        assert ended.error is not None
        assert (ended.summary, ended.will_retry, ended.error.kind) == (
            None,
            True,
            "ContextOverflow",
        )
        assert statuses(b) == ["completed"]
        assert len(b.results()[0]) < 1_200


async def test_an_overflow_without_anything_to_cut_ends_the_run() -> None:
    model = ScriptedModel([say(LONG), say(LONG), FULL, UNKNOWN], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one", "two", "three")
        last = [e for e in b.seen() if isinstance(e, RunEnded)][-1]
        assert last.error is not None
        assert (last.status, last.error.kind) == ("failed", "ContextOverflow")
        (ended,) = ends(b)
        assert (ended.tokens_after, ended.will_retry) == (None, False)
        assert len([e for e in b.seen() if isinstance(e, CompactionStarted)]) == 1


async def test_while_one_compaction_goes_on_another_is_refused() -> None:
    gate = Gate()
    model = ScriptedModel([say(LONG), say(LONG), (gate, *SUMMARY)], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        with pytest.raises(SessionBusy, match="going on already"):
            await b.session.compact()
        with anyio.fail_after(5):
            await gate.reached.wait()
        with pytest.raises(SessionBusy, match="going on already"):
            await b.session.compact()
        gate.release()
        await b.idle()
        assert [(e.aborted, e.error) for e in ends(b)] == [(False, None)]
        assert isinstance(b.messages[0], CompactionSummaryMessage)


async def test_a_compaction_by_hand_is_refused_while_a_run_makes_room() -> None:
    gate = Gate()
    model = ScriptedModel(
        [say(LONG), say(LONG), FULL, (gate, *SUMMARY), say("made it")], facts=SMALL
    )
    async with bench(model) as b:
        await talk(b, "one", "two")
        await b.session.prompt("three")
        with anyio.fail_after(5):
            await gate.reached.wait()
        with pytest.raises(SessionBusy, match="going on already"):
            await b.session.compact()
        gate.release()
        await b.idle()
        assert statuses(b) == ["completed"] * 3


@pytest.mark.parametrize("fate", ["done", "failed", "aborted"])
async def test_words_said_during_a_compaction_are_said_afterwards(fate: str) -> None:
    gate = Gate()
    summary = (gate, UNKNOWN) if fate == "failed" else (gate, *SUMMARY)
    model = ScriptedModel([say(LONG), say(LONG), summary, say("answered")], facts=SMALL)
    async with bench(model, options=MANUAL) as b:
        await talk(b, "one", "two")
        await b.session.compact()
        with anyio.fail_after(5):
            await gate.reached.wait()
        assert (await b.session.prompt("three", delivery="auto")).accepted == "queued"
        if fate == "aborted":
            await b.session.abort()
            queue = b.session.info.snapshot().queue
            assert [text_of(item.content) for item in queue] == ["three"]
            model.add(say("first"))
            await b.session.prompt("four")
        gate.release()
        while b.session.info.snapshot().state != "idle" or b.session.info.snapshot().queue:
            await b.idle()
        assert "three" in _said(b.messages)


async def test_follow_ups_that_came_while_room_was_made_after_a_run_are_the_next_words() -> None:
    gate = Gate()
    full = say("done", usage=Usage(input=6_900, output=10))
    model = ScriptedModel([say(LONG), full, (gate, *SUMMARY), say("and on")], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one")
        await b.session.prompt("two " * 1_900)
        with anyio.fail_after(5):
            await gate.reached.wait()
        await b.session.follow_up("three")
        gate.release()
        await b.idle()
        assert words(model.requests[-1].messages[-1]) == "three"
        assert words(b.messages[-1]) == "and on"


async def test_a_model_may_have_figures_of_its_own() -> None:
    own = CompactionPolicy(by_model={"scripted/model-1": ModelFigures(reserve_tokens=0)})
    full = say("done", usage=Usage(input=7_000, output=10))
    model = ScriptedModel([say(LONG), full], facts=SMALL)
    async with bench(model, options=SessionOptions(compaction=own)) as b:
        await talk(b, "one", "two")
        assert ends(b) == []
    assert own.of_model("other/model") == own.of_model(None) == own


def _said(messages: Sequence[object]) -> list[str]:
    return [words(one) for one in messages if isinstance(one, UserMessage)]
