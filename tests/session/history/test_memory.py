"""What a session keeps: the file, its repair after a crash, compaction, a disk that fails."""

from collections.abc import Sequence
from typing import Any

import pytest

from agent_core.compaction import CompactionPolicy
from agent_core.events import CompactionEnded, ErrorRaised, Notice, RetryStarted, RunEnded
from agent_core.hooks import Compacting, CompactionCancelled, Hook, HookTable, SummaryGiven
from agent_core.kernel import MessageId, SessionId
from agent_core.kernel.errors import ProviderError, StorageUnavailable
from agent_core.messages import (
    CompactionSummaryMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
    text_of,
)
from agent_core.providers import ModelInfo
from agent_core.session.context import SessionOptions
from agent_core.session.history.entries import QUEUE, RUN
from agent_core.session.runs.recovered_state import recover_state
from agent_core.storage import OpenedSession, Recovery, SessionLog
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript.entries import (
    AnyEntry,
    ColdEntry,
    CustomEntry,
    Header,
    MessageEntry,
    WholeEntry,
)
from tests.support.harness.clock import FakeClock
from tests.support.session.scripted_model import Gate, ScriptedModel, call, say
from tests.support.session.sessions import bench, words
from tests.support.workspace.tools import Hold, echo

SMALL = ModelInfo(
    provider="scripted",
    id="model-1",
    api="embedded",
    name="Small",
    context_window=8_000,
    max_tokens=1_000,
)
LONG = "word " * 1_500


class FailingLog:
    """A log whose disk fails as long as the test says so."""

    def __init__(self, inner: SessionLog) -> None:
        self._inner = inner
        self.full = False
        self.written: list[AnyEntry] = []

    @property
    def header(self) -> Header:
        return self._inner.header

    @property
    def location(self) -> None:
        return None

    @property
    def attachments(self) -> None:
        return None

    async def append(self, entries: Sequence[AnyEntry]) -> None:
        if self.full:
            raise StorageUnavailable("no space left on device; free some and go on")
        self.written.extend(entries)
        await self._inner.append(entries)

    def cool(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        return self._inner.cool(entries)

    async def load(self, entries: Sequence[ColdEntry]) -> tuple[WholeEntry, ...]:
        return await self._inner.load(entries)

    async def sync(self) -> None:
        if self.full:
            raise StorageUnavailable("no space left on device; free some and go on")

    async def close(self) -> None:
        await self._inner.close()


async def failing() -> tuple[FailingLog, OpenedSession]:
    clock = FakeClock()
    header = Header(id=SessionId("s"), at_ms=clock.now_ms(), cwd="/project")
    log = FailingLog(await MemoryStore().create(header))
    return log, OpenedSession(log=log, entries=(), recovery=Recovery())


async def test_the_words_are_in_the_file_before_they_are_acknowledged() -> None:
    log, opened = await failing()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("ok"))]), opened=opened) as b:
        await b.session.prompt("keep me", message_id=MessageId("m1"))
        first, second = log.written[:2]
        assert isinstance(first, MessageEntry)
        assert isinstance(second, CustomEntry)
        assert second.custom_type == RUN
        await b.session.follow_up("me too")
        assert isinstance(log.written[-1], CustomEntry)
        assert log.written[-1].custom_type == QUEUE
        gate.release()
        b.model.add(say("ok"))
        await b.idle()


async def test_a_prompt_that_cannot_be_written_is_refused_and_nothing_of_it_is_kept() -> None:
    log, opened = await failing()
    async with bench(ScriptedModel([say("fine")]), opened=opened) as b:
        log.full = True
        with pytest.raises(StorageUnavailable, match="no space left"):
            await b.session.prompt("lost?", message_id=MessageId("m1"))
        assert b.messages == ()
        assert b.session.info.snapshot().state == "idle"
        log.full = False
        assert (await b.session.prompt("again", message_id=MessageId("m1"))).accepted == "started"
        await b.idle()


async def test_waiting_words_that_cannot_be_written_are_refused_and_can_be_sent_again() -> None:
    log, opened = await failing()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")]), opened=opened) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        log.full = True
        with pytest.raises(StorageUnavailable):
            await b.session.follow_up("later", message_id=MessageId("m1"))
        assert b.session.info.snapshot().queue == ()
        log.full = False
        receipt = await b.session.follow_up("later", message_id=MessageId("m1"))
        assert receipt.accepted == "queued"
        gate.release()
        await b.idle()


async def test_a_disk_that_fails_in_a_run_is_told_and_written_when_it_works_again() -> None:
    log, opened = await failing()
    hold = Hold(kind="read")
    async with bench(
        ScriptedModel([call("hold"), say("done")]), opened=opened, tools=[hold.tool]
    ) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        log.full = True
        hold.release.set()
        await b.until(ErrorRaised)
        assert b.session.info.snapshot().unsaved > 0
        events = await b.idle()
        ended = next(e for e in events if isinstance(e, RunEnded))
        assert ended.status == "completed"
        log.full = False
        b.model.add(say("more"))
        await b.session.prompt("go on")
        await b.idle()
        assert b.session.info.snapshot().unsaved == 0
        kept = [e.message for e in log.written if isinstance(e, MessageEntry)]
        assert [type(m) for m in kept] == [type(m) for m in b.messages]


async def test_a_session_that_died_in_a_run_opens_with_every_call_answered() -> None:
    log, opened = await failing()
    hold = Hold()
    async with bench(ScriptedModel([call("hold")]), opened=opened, tools=[hold.tool]) as b:
        await b.session.prompt("go")
        await hold.entered.wait()
        died_with = tuple(log.written)
    assert len(recover_state(died_with).unanswered) == 1
    again_log, again = await failing()
    again_log.written.extend(died_with)
    again = OpenedSession(log=again_log, entries=died_with, recovery=Recovery())
    async with bench(ScriptedModel([say("on")]), opened=again) as b:
        results = [m for m in b.messages if isinstance(m, ToolResultMessage)]
        assert [(m.call_id, m.is_error) for m in results] == [("c1", True)]
        assert "Interrupted" in text_of(results[0].content)
        last = again_log.written[-1]
        assert isinstance(last, CustomEntry)
        assert isinstance(last.data, dict)
        assert last.data["status"] == "interrupted"
        await b.session.prompt("go on")
        await b.idle()


async def test_words_that_waited_when_the_process_died_wait_again() -> None:
    log, opened = await failing()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("x"))]), opened=opened) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        await b.session.follow_up("later", message_id=MessageId("m2"))
        died_with = tuple(log.written)
    _, fresh = await failing()
    again = OpenedSession(log=fresh.log, entries=died_with, recovery=Recovery())
    async with bench(ScriptedModel([say("a"), say("b")]), opened=again) as b:
        snapshot = b.session.info.snapshot()
        assert [text_of(item.content) for item in snapshot.queue] == ["later"]
        assert snapshot.paused
        repeated = await b.session.prompt("later", message_id=MessageId("m2"))
        assert repeated.accepted == "duplicate"
        await b.session.prompt("now")
        await b.idle()
        said = [text_of(m.content) for m in b.messages if isinstance(m, UserMessage)]
        assert said == ["go", "now", "later"]


async def test_a_long_conversation_is_compacted_by_hand() -> None:
    model = ScriptedModel([say(LONG)] * 4 + [say("## Goal\nshort")] * 2, facts=SMALL)
    options = SessionOptions(auto_compact=False)
    async with bench(model, options=options) as b:
        for text in ("one", "two", "three", "four"):
            await b.session.prompt(text)
            await b.idle()
        receipt = await b.session.compact("names")
        assert receipt.compaction is not None
        events = await b.idle()
        ended = next(e for e in events if isinstance(e, CompactionEnded))
        assert ended.error is None
        assert ended.reason == "manual"
        assert ended.tokens_after is not None
        assert ended.tokens_after < ended.tokens_before
        assert isinstance(b.messages[0], CompactionSummaryMessage)
        asked = words(model.requests[-1].messages[-1])
        assert "names" in asked


async def test_nothing_to_compact_is_an_answer_and_no_error() -> None:
    async with bench(ScriptedModel([say("hi")])) as b:
        await b.session.prompt("hi")
        await b.idle()
        receipt = await b.session.compact()
        assert receipt.compaction is None
        assert "too short" in receipt.why


async def test_a_prompt_during_compaction_waits_and_runs_afterwards() -> None:
    gate = Gate()
    model = ScriptedModel(
        [say(LONG), say(LONG), (gate, *say("## Goal\nx")), say("answered")], facts=SMALL
    )
    async with bench(model, options=SessionOptions(auto_compact=False)) as b:
        for text in ("one", "two"):
            await b.session.prompt(text)
            await b.idle()
        await b.session.compact()
        await gate.reached.wait()
        receipt = await b.session.prompt("three", delivery="auto")
        assert receipt.accepted == "queued"
        gate.release()
        while b.session.info.snapshot().queue or b.session.info.snapshot().state != "idle":
            await b.idle()
        assert words(b.messages[-2]) == "three"


async def test_compact_during_a_run_cancels_the_run_first() -> None:
    gate = Gate()
    model = ScriptedModel([say("a"), (gate, *say("b"))])
    async with bench(model) as b:
        await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        await gate.reached.wait()
        await b.session.compact()
        statuses = [e.status for e in b.seen() if isinstance(e, RunEnded)]
        assert statuses == ["completed", "cancelled"]


async def test_a_hook_can_cancel_or_replace_a_compaction() -> None:
    table = HookTable()
    outcomes = [CompactionCancelled(), SummaryGiven(summary="my own words")]

    async def decide(_: object, __: object) -> Any:
        return outcomes.pop(0)

    table.add(Hook("mine", decide), at=Compacting)
    model = ScriptedModel([say(LONG), say(LONG)], facts=SMALL)
    async with bench(model, hooks=table, options=SessionOptions(auto_compact=False)) as b:
        for text in ("one", "two"):
            await b.session.prompt(text)
            await b.idle()
        await b.session.compact()
        await b.idle()
        before = b.messages
        assert not isinstance(before[0], CompactionSummaryMessage)
        await b.session.compact()
        await b.idle()
        first = b.messages[0]
        assert isinstance(first, CompactionSummaryMessage)
        assert first.summary == "my own words"


async def test_an_overflow_is_answered_by_one_compaction_and_the_run_goes_on() -> None:
    overflow = ProviderError("too long", reason="context_overflow", provider="p", status=400)
    model = ScriptedModel(
        [say(LONG), say(LONG), overflow, say("## Goal\nx"), say("made it")], facts=SMALL
    )
    options = SessionOptions(compaction=CompactionPolicy(reserve_tokens=0))
    async with bench(model, options=options) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        events = b.seen()
        ended = [e for e in events if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.will_retry) for e in ended] == [("overflow", True)]
        assert [e.status for e in events if isinstance(e, RunEnded)] == ["completed"] * 3
        assert not any(isinstance(e, RetryStarted) for e in events)


async def test_a_second_overflow_of_the_same_prompt_ends_the_run() -> None:
    overflow = ProviderError("too long", reason="context_overflow", provider="p", status=400)
    model = ScriptedModel(
        [say(LONG), say(LONG), overflow, say("## Goal\nx"), overflow], facts=SMALL
    )
    options = SessionOptions(compaction=CompactionPolicy(reserve_tokens=0))
    async with bench(model, options=options) as b:
        for text in ("one", "two", "three"):
            await b.session.prompt(text)
            await b.idle()
        last = [e for e in b.seen() if isinstance(e, RunEnded)][-1]
        assert last.status == "failed"
        assert last.error is not None
        assert last.error.kind == "ContextOverflow"


async def test_a_rate_limit_is_waited_for_and_never_compacted() -> None:
    limit = ProviderError(
        "too many tokens per minute", reason="rate_limit", provider="p", status=429
    )
    async with bench(ScriptedModel([limit, say("ok")])) as b:
        await b.session.prompt("go")
        await b.idle()
        assert "retry.started" in b.names()
        assert "compaction.started" not in b.names()


async def test_a_context_that_is_nearly_full_is_compacted_between_turns() -> None:
    full = Usage(input=7_500, output=10)
    model = ScriptedModel(
        [
            say(LONG),
            call("echo", {"text": LONG}, usage=full),
            say("## Goal\nx"),
            say("done"),
            say("## Goal\ny"),
        ],
        facts=SMALL,
    )
    async with bench(model, tools=[echo()]) as b:
        await b.session.prompt("one")
        await b.idle()
        await b.session.prompt("two")
        await b.idle()
        ended = [e for e in b.seen() if isinstance(e, CompactionEnded)]
        assert [(e.reason, e.error) for e in ended][:1] == [("threshold", None)]
        assert [e.status for e in b.seen() if isinstance(e, RunEnded)] == ["completed"] * 2


async def test_whoever_listens_first_hears_that_the_last_run_was_interrupted() -> None:
    log, opened = await failing()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("x"))]), opened=opened) as b:
        await b.session.prompt("go")
        await gate.reached.wait()
        died_with = tuple(log.written)
    _, fresh = await failing()
    again = OpenedSession(log=fresh.log, entries=died_with, recovery=Recovery())
    async with bench(ScriptedModel(), opened=again) as b:
        notices = [e.text for e in b.seen() if isinstance(e, Notice)]
        assert len(notices) == 1
        assert "interrupted" in notices[0]
        second = b.session.subscribe()
        assert second.take_now() == ()
