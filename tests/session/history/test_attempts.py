"""Attempts that failed stay in the file; an entry leaves them out of what the model sees."""

from collections.abc import Sequence

import pytest

from agent_core.events import CompactionEnded, CompactionStarted, RunEnded
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Message, Usage
from agent_core.providers import ModelInfo, TextDelta
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import AnyEntry, ContextEditEntry, MessageEntry, build_context
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import bench, unmarked, words
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
DOWN = ProviderError("the provider is down", reason="server", provider="scripted", status=529)
CUT = ProviderError("the stream ended early", reason="protocol", provider="scripted")
FULL = ProviderError("prompt is too long", reason="context_overflow", provider="p", status=400)
SUMMARY = say("## Goal\nx")


async def entries_of(store: MemoryStore) -> Sequence[AnyEntry]:
    return (await store.open(SessionId("s-1"))).entries


def attempts(entries: Sequence[AnyEntry]) -> list[MessageEntry]:
    """Give the answers that failed or were cut off."""
    return [
        one
        for one in entries
        if isinstance(one, MessageEntry)
        and isinstance(one.message, AssistantMessage)
        and one.message.stop_reason in {"error", "aborted", "length"}
    ]


def left_out(entries: Sequence[AnyEntry]) -> list[str]:
    return [one.target for one in entries if isinstance(one, ContextEditEntry)]


def said(messages: Sequence[Message]) -> list[str]:
    return [words(one)[:10] for one in messages if not hasattr(one, "summary")]


@pytest.mark.parametrize(
    ("failure", "partial"), [(DOWN, ""), (CUT, "I will loo")], ids=["at once", "after some words"]
)
async def test_before_a_retry_the_failed_attempt_is_left_out_by_an_entry(
    failure: ProviderError, partial: str
) -> None:
    steps = (TextDelta(text=partial), failure) if partial else (failure,)
    store = MemoryStore()
    model = ScriptedModel([steps, steps, say("at last")])
    async with bench(model, store=store) as b:
        await b.session.prompt("go")
        await b.idle()
        assert said(b.messages) == ["go", "at last"]
        assert said(model.requests[-1].messages) == ["go"]
    entries = await entries_of(store)
    failed = attempts(entries)
    assert [(e.message.text, e.message.error) for e in failed] == [(partial, str(failure))] * 2  # pyright: ignore[reportAttributeAccessIssue] - answers, as chosen above
    assert left_out(entries) == [one.id for one in failed]


async def test_what_the_model_saw_can_be_built_again_from_the_file_alone() -> None:
    store = MemoryStore()
    model = ScriptedModel(
        [
            call("echo", {"text": "x"}),
            (TextDelta(text="half"), CUT),
            say("done"),
            DOWN,
            say("more"),
        ]
    )
    async with bench(model, tools=[echo()], store=store) as b:
        await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        await b.idle()
        sent = [request.messages for request in model.requests]
    entries = await entries_of(store)
    path = tuple(entries)
    answers = [
        place
        for place, one in enumerate(path)
        if isinstance(one, MessageEntry) and isinstance(one.message, AssistantMessage)
    ]
    assert len(answers) == len(sent)
    for place, messages in zip(answers, sent, strict=True):
        assert build_context(path[:place]).messages == messages


async def test_the_last_failure_of_a_run_stays_in_view_and_is_not_sent() -> None:
    store = MemoryStore()
    refused = ProviderError("no", reason="invalid_request", provider="p", status=400)
    async with bench(ScriptedModel([refused, say("fine")]), store=store) as b:
        await b.session.prompt("go")
        await b.idle()
        last = b.messages[-1]
        assert isinstance(last, AssistantMessage)
        assert (last.stop_reason, last.error) == ("error", "no")
        await b.session.prompt("again")
        await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["failed", "completed"]
    assert left_out(await entries_of(store)) == []


async def test_an_aborted_answer_stays_in_the_session() -> None:
    gate = Gate()
    store = MemoryStore()
    async with bench(ScriptedModel([(TextDelta(text="I will"), gate)]), store=store) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.abort()
        assert said(unmarked(b.messages)) == ["go", "I will"]
    entries = await entries_of(store)
    assert [e.message.stop_reason for e in attempts(entries)] == ["aborted"]  # pyright: ignore[reportAttributeAccessIssue] - answers, as chosen above
    assert left_out(entries) == []


async def test_an_overflow_is_left_out_before_the_compaction() -> None:
    store = MemoryStore()
    model = ScriptedModel([say(LONG), say(LONG), FULL, SUMMARY, say("made it")], facts=SMALL)
    async with bench(model, store=store) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        assert words(b.messages[-1]) == "made it"
    entries = await entries_of(store)
    assert left_out(entries) == [one.id for one in attempts(entries)]
    assert len(attempts(entries)) == 1


CUT_SHORT = say("I was cut", stop_reason="length", usage=Usage(input=3_000, output=900))
AT_LIMIT = say("I said all", stop_reason="length", usage=Usage(input=3_000, output=1_000))
NO_OUTPUT = say("", stop_reason="length", usage=Usage(input=7_950, output=0))


@pytest.mark.parametrize(
    ("attempt", "reason"), [(CUT_SHORT, "length"), (NO_OUTPUT, "overflow")], ids=["short", "none"]
)
async def test_an_answer_cut_off_for_want_of_room_is_asked_for_again_after_a_compaction(
    attempt: tuple[object, ...], reason: str
) -> None:
    store = MemoryStore()
    model = ScriptedModel(
        [say(LONG), say(LONG), attempt, SUMMARY, say("all of it")],  # pyright: ignore[reportArgumentType] - steps
        facts=SMALL,
    )
    async with bench(model, store=store) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        ended = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.will_retry) for e in ended] == [(reason, True)]
        assert said(b.messages)[-2:] == ["three", "all of it"]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 3
    entries = await entries_of(store)
    assert left_out(entries) == [one.id for one in attempts(entries)]


async def test_an_answer_cut_off_by_the_models_own_limit_stays() -> None:
    model = ScriptedModel([say(LONG), say(LONG), AT_LIMIT], facts=SMALL)
    async with bench(model) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        assert not [e for e in b.seen() if isinstance(e, CompactionStarted)]
        assert said(b.messages)[-1] == "I said all"


async def test_an_answer_cut_off_stays_when_there_is_nothing_to_compact() -> None:
    store = MemoryStore()
    async with bench(ScriptedModel([CUT_SHORT], facts=SMALL), store=store) as b:
        await b.session.prompt("one")
        await b.idle()
        assert said(b.messages) == ["one", "I was cut"]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"]
    assert left_out(await entries_of(store)) == []


async def test_of_two_answers_cut_off_in_a_row_the_second_stays() -> None:
    model = ScriptedModel([say(LONG), say(LONG), CUT_SHORT, SUMMARY, CUT_SHORT], facts=SMALL)
    async with bench(model) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        assert said(b.messages)[-2:] == ["three", "I was cut"]
        assert len([e for e in b.seen() if isinstance(e, CompactionStarted)]) == 1


async def test_an_answer_to_more_than_the_window_holds_is_followed_by_a_compaction_only() -> None:
    silent = say("fine", usage=Usage(input=5_000, cache_read=3_500, output=5))
    model = ScriptedModel([say(LONG), say(LONG), silent, SUMMARY], facts=SMALL)
    async with bench(model) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        ended = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.will_retry) for e in ended] == [("overflow", False)]
        assert said(b.messages)[-1] == "fine"


async def test_new_words_may_be_answered_by_a_compaction_again() -> None:
    model = ScriptedModel(
        [
            say(LONG),
            say(LONG),
            FULL,
            SUMMARY,
            say("ok"),
            say(LONG),
            FULL,
            SUMMARY,
            SUMMARY,
            say("ok"),
        ],
        facts=SMALL,
    )
    async with bench(model) as b:
        for text in ("one", "two", "three", "four", "five"):
            await b.session.prompt(text)
            await b.idle()
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 5
        assert len([e for e in b.seen() if isinstance(e, CompactionEnded)]) == 2
