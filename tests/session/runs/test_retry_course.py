"""The course of retries: how long is waited, what is counted, told and written, and where it ends."""

from typing import Any

import anyio
import pytest
from typing_extensions import override

from agent_core.compaction import CompactionPolicy
from agent_core.events import (
    CompactionEnded,
    RetryEnded,
    RetryStarted,
    RunEnded,
    ToolRunning,
)
from agent_core.kernel import SessionId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Usage
from agent_core.providers import ModelInfo, TextDelta
from agent_core.session.context import SessionOptions
from agent_core.session.runs.retry_policy import (
    AttemptFailed,
    RetryAfter,
    RetryOptions,
    next_action,
)
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import (
    AnyEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    MessageEntry,
)
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
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
DOWN = ProviderError("the provider is down", reason="server", provider="scripted", status=529)
FULL = ProviderError("prompt is too long", reason="context_overflow", provider="p", status=400)
UNKNOWN = ProviderError("no such model", reason="not_found", provider="p", status=404)


async def talk(b: Bench, *prompts: str) -> None:
    for text in prompts:
        await b.session.prompt(text)
        await b.idle()


def told(b: Bench, *kinds: type) -> list[Any]:
    return [event for event in b.seen() if isinstance(event, kinds)]


def test_the_waits_double_from_two_seconds_to_a_minute() -> None:
    patient = RetryOptions(max_retries=10)
    waits: list[float] = []
    for tries in range(7):
        step = next_action(
            AttemptFailed(error=DOWN),
            tries=tries,
            compacted=False,
            auto_compact=True,
            settings=patient,
        )
        assert isinstance(step, RetryAfter)
        waits.append(step.delay_s)
    assert waits == [2, 4, 8, 16, 32, 60, 60]


def test_unless_set_otherwise_there_are_three() -> None:
    assert RetryOptions() == RetryOptions(
        enabled=True, max_retries=3, base_delay_ms=2_000, max_delay_ms=60_000
    )


def course(b: Bench) -> list[tuple[type, int | None]]:
    """Give what went on, with the numbers of the retries."""
    found = told(b, RetryStarted, RetryEnded, ToolRunning, RunEnded)
    return [(type(event), getattr(event, "attempt", None)) for event in found]


async def test_an_outage_over_several_turns_is_bounded_for_each_prompt() -> None:
    turn = call("echo", {"text": "x"})
    model = ScriptedModel([DOWN, turn, DOWN, turn, DOWN, turn, DOWN, say("never asked")])
    async with bench(model, tools=[echo()]) as b:
        await talk(b, "go")
        retries = [
            step
            for attempt in (1, 2, 3)
            for step in ((RetryStarted, attempt), (RetryEnded, attempt), (ToolRunning, None))
        ]
        assert course(b) == [*retries, (RunEnded, None)]
        assert all(event.success for event in told(b, RetryEnded))
        (ended,) = told(b, RunEnded)
        assert (ended.status, ended.error.message) == ("failed", "the provider is down")
        for wait, doubled in zip(b.slept, (2, 4, 8), strict=True):
            assert doubled * 0.8 <= wait <= doubled * 1.2
        assert model.turns_left == 1


async def test_the_next_prompt_has_all_of_its_retries() -> None:
    model = ScriptedModel([*[DOWN] * 4, *[DOWN] * 3, say("done")])
    async with bench(model) as b:
        await talk(b, "one", "two")
        assert [event.attempt for event in told(b, RetryStarted)] == [1, 2, 3, 1, 2, 3]
        assert [event.status for event in told(b, RunEnded)] == ["failed", "completed"]


@pytest.mark.parametrize("delivery", ["followUp", "steer"])
async def test_words_that_enter_a_run_are_a_prompt_with_retries_of_its_own(delivery: Any) -> None:
    gate = Gate()
    turn = call("echo", {"text": "x"})
    model = ScriptedModel([*[DOWN] * 3, (gate, *turn), say("one"), *[DOWN] * 3, say("two")])
    if delivery == "steer":
        model = ScriptedModel([*[DOWN] * 3, (gate, *turn), *[DOWN] * 3, say("two")])
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.prompt("and", delivery=delivery)
        gate.release()
        await b.idle()
        assert [event.attempt for event in told(b, RetryStarted)] == [1, 2, 3, 1, 2, 3]
        assert [event.status for event in told(b, RunEnded)] == ["completed"]


async def test_each_retry_says_what_failed_how_long_is_waited_and_how_many_there_are() -> None:
    async with bench(ScriptedModel([DOWN, say("done")])) as b:
        await talk(b, "go")
        (started,) = told(b, RetryStarted)
        assert (started.attempt, started.max_attempts) == (1, 3)
        assert started.error.message == "the provider is down"
        assert started.delay_ms == round(b.slept[0] * 1_000)


async def test_when_all_failed_the_last_error_is_told() -> None:
    async with bench(ScriptedModel([DOWN] * 4)) as b:
        await talk(b, "go")
        (ended,) = told(b, RetryEnded)
        assert (ended.success, ended.attempt) == (False, 3)
        assert ended.error.message == "the provider is down"
        assert b.names()[-5:] == [
            "retry.ended",
            "run.stage",
            "run.stage",
            "run.ended",
            "session.state",
        ]


class Endless(FakeClock):
    """Every wait lasts until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = anyio.Event()

    @override
    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await anyio.sleep_forever()


async def test_a_wait_that_is_cancelled_ends_the_retry() -> None:
    clock = Endless()
    async with bench(ScriptedModel([DOWN]), clock=clock) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await clock.waiting.wait()
        await b.session.abort()
        (ended,) = told(b, RetryEnded)
        assert (ended.success, ended.attempt, ended.error.message) == (False, 1, "Retry cancelled")
        assert told(b, RunEnded)[-1].status == "cancelled"
        assert b.names()[-5:] == [
            "retry.ended",
            "run.stage",
            "run.stage",
            "run.ended",
            "session.state",
        ]


class Watching(FakeClock):
    """Looks at the entries whenever somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.bench: Bench | None = None
        self.seen: list[tuple[AnyEntry, ...]] = []

    @override
    async def sleep(self, seconds: float) -> None:
        assert self.bench is not None
        self.seen.append(tuple(self.bench.session.info.entries))
        await super().sleep(seconds)


async def test_the_attempt_is_left_out_before_the_wait_begins() -> None:
    clock = Watching()
    async with bench(ScriptedModel([DOWN, say("done")]), clock=clock) as b:
        clock.bench = b
        await talk(b, "go")
    ((*_, attempt, edit),) = clock.seen
    assert isinstance(attempt, MessageEntry)
    assert isinstance(attempt.message, AssistantMessage)
    assert isinstance(edit, ContextEditEntry)
    assert (edit.target, edit.replacement) == (attempt.id, None)


async def test_an_overflow_without_a_summary_leaves_the_attempt_out_and_the_session_usable() -> (
    None
):
    store = MemoryStore()
    model = ScriptedModel([say(LONG), say(LONG), FULL, UNKNOWN, say("on we go")], facts=SMALL)
    options = SessionOptions(compaction=CompactionPolicy(reserve_tokens=0))
    async with bench(model, store=store, options=options) as b:
        await talk(b, "one", "two", "three")
        (ended,) = told(b, CompactionEnded)
        assert (ended.reason, ended.summary, ended.will_retry) == ("overflow", None, False)
        assert told(b, RunEnded)[-1].status == "failed"
        await talk(b, "four")
        sent = [words(message) for message in model.requests[-1].messages]
        assert sent == ["one", LONG, "two", LONG, "three", "four"]
    entries = (await store.open(SessionId("s-1"))).entries
    assert not any(isinstance(one, CompactionEntry) for one in entries)
    assert len([one for one in entries if isinstance(one, ContextEditEntry)]) == 1


async def test_words_that_wait_are_said_although_no_room_could_be_made() -> None:
    gate = Gate()
    full = say("noted", stop_reason="length", usage=Usage(input=7_000, output=500))
    model = ScriptedModel([say(LONG), full, (gate, UNKNOWN), say("on we go")], facts=SMALL)
    async with bench(model) as b:
        await talk(b, "one")
        await b.session.prompt("two " * 3_000)
        await gate.reached.wait()
        await b.session.follow_up("three")
        gate.release()
        await b.idle()
        ends = told(b, CompactionEnded)
        assert [(event.reason, event.will_retry) for event in ends] == [("length", False)]
        assert [words(message) for message in b.messages[-2:]] == ["three", "on we go"]
        assert [event.status for event in told(b, RunEnded)] == ["completed"] * 2


async def test_after_an_aborted_answer_room_is_made_before_the_next_prompt_only() -> None:
    gate = Gate()
    model = ScriptedModel(
        [say(LONG), say(LONG), (TextDelta(text=LONG), gate), say("## Goal\nx"), say("on")],
        facts=SMALL,
    )
    async with bench(model) as b:
        await talk(b, "one", "two")
        await b.session.prompt("three " * 500)
        await gate.reached.wait()
        await b.session.abort()
        assert told(b, CompactionEnded) == []
        await talk(b, "four")
        assert [event.reason for event in told(b, CompactionEnded)] == ["threshold"]
        assert words(model.requests[-1].messages[-1]) == "four"


@pytest.mark.parametrize("kind", ["auth", "quota", "context_overflow", "refused"])
async def test_what_waiting_does_not_cure_is_told_without_a_retry(kind: Any) -> None:
    refused = ProviderError("no", reason=kind, provider="scripted")
    async with bench(ScriptedModel([refused])) as b:
        await talk(b, "go")
        assert told(b, RetryStarted, RetryEnded) == []
        assert b.slept == []
        (ended,) = told(b, RunEnded)
        assert ended.status == ("refused" if kind == "refused" else "failed")
        assert ended.error is not None
        result = await b.session.wait(ended.run)
        assert result is not None
        assert (result.status, result.error) == (ended.status, ended.error)


async def test_an_answer_that_was_refused_half_way_ends_the_run_as_refused() -> None:
    store = MemoryStore()
    no = ProviderError("p refused to answer: violence", reason="refused", provider="p")
    async with bench(ScriptedModel([(TextDelta(text="Well, "), no)]), store=store) as b:
        await talk(b, "go")
        (ended,) = told(b, RunEnded)
        assert (ended.status, ended.error.kind) == ("refused", "ModelError")
        assert (ended.error.message, ended.error.retryable) == (str(no), False)
    entries = (await store.open(SessionId("s-1"))).entries
    ends = [one.data for one in entries if isinstance(one, CustomEntry)]
    assert [end["status"] for end in ends if isinstance(end, dict)] == ["started", "refused"]
