"""A message that is sent twice is said once: at the same time, later, and in another process."""

import asyncio

import anyio
import pytest

from agent_core.events import QueueChanged, RunStarted
from agent_core.kernel import MessageId
from agent_core.kernel.errors import RunMismatch, RunNotActive, SessionBusy, StorageUnavailable
from agent_core.messages import UserMessage
from agent_core.session import Receipt
from tests.support.session.held_log import held
from tests.support.session.scripted_model import Gate, ScriptedModel, say
from tests.support.session.sessions import Bench, bench, words

M1, M2 = MessageId("m1"), MessageId("m2")


def said(b: Bench) -> list[str]:
    return [words(one) for one in b.messages if isinstance(one, UserMessage)]


async def entered(event: anyio.Event) -> None:
    with anyio.fail_after(5):
        await event.wait()


async def test_the_same_message_twice_at_once_is_one_prompt() -> None:
    log, opened = await held()
    receipts: list[Receipt] = []
    async with bench(ScriptedModel([say("ok")]), opened=opened) as b:

        async def send() -> None:
            receipts.append(await b.session.prompt("go", message_id=M1, delivery="auto"))

        log.hold()
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert receipts == []
            log.release()
        await b.idle()
        assert sorted(one.accepted for one in receipts) == ["duplicate", "duplicate", "started"]
        assert len({one.run for one in receipts}) == 1
        assert said(b) == ["go"]


async def test_a_message_whose_first_sending_failed_is_taken_the_second_time() -> None:
    log, opened = await held()
    receipts: list[Receipt] = []
    async with bench(ScriptedModel([say("ok")]), opened=opened) as b:
        log.hold()
        log.failures = 1

        async def fail() -> None:
            with pytest.raises(StorageUnavailable):
                await b.session.prompt("go", message_id=M1)

        async def again() -> None:
            receipts.append(await b.session.prompt("go", message_id=M1))

        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await entered(log.reached)
            group.start_soon(again)
            await anyio.wait_all_tasks_blocked()
            log.release()
        await b.idle()
        assert [one.accepted for one in receipts] == ["started"]
        assert said(b) == ["go"]


async def test_queued_words_sent_again_are_known_by_the_run_that_said_them() -> None:
    gate = Gate()
    model = ScriptedModel([(gate, *say("a")), say("b"), say("c")])
    async with bench(model) as b:
        first = await b.session.prompt("one")
        await entered(gate.reached)
        queued = await b.session.follow_up("later", message_id=M1)
        again = await b.session.follow_up("later", message_id=M1)
        assert (again.accepted, again.run, again.queue_id) == (
            "duplicate",
            first.run,
            queued.queue_id,
        )
        await b.session.abort()
        second = await b.session.prompt("two")
        gate.release()
        await b.idle()
        assert said(b) == ["one", "two", "later"]
        after = await b.session.prompt("later", message_id=M1)
        assert (after.accepted, after.run, after.queue_id) == ("duplicate", second.run, None)


@pytest.mark.parametrize("how", ["prompt", "follow-up"])
async def test_a_message_is_known_in_the_next_process(how: str) -> None:
    log, opened = await held()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")]), opened=opened) as b:
        first = await b.session.prompt("one", message_id=M1)
        await entered(gate.reached)
        if how == "follow-up":
            await b.session.follow_up("two", message_id=M2)
        left = tuple(log.written)
        gate.release()
    _, again = await held(left)
    async with bench(ScriptedModel(), opened=again) as b:
        sent = M1 if how == "prompt" else M2
        receipt = await b.session.prompt("whatever", message_id=sent)
        assert (receipt.accepted, receipt.run) == ("duplicate", first.run)


async def test_a_request_that_is_torn_away_leaves_its_words_whole() -> None:
    log, opened = await held()
    async with bench(ScriptedModel([say("ok"), say("fine")]), opened=opened) as b:
        log.hold()
        # The front end's way to cancel: no shield holds it up.
        request = asyncio.create_task(b.session.prompt("go", message_id=M1))  # noqa: TID251 - as pygls does
        await entered(log.reached)
        request.cancel()
        await asyncio.wait([request])
        assert request.cancelled()
        log.release()
        await b.until(RunStarted)
        await b.idle()
        assert [words(one) for one in b.messages] == ["go", "ok"]
        parents = [entry.parent for entry in log.written]
        assert parents == [None, *(entry.id for entry in log.written[:-1])]
        assert (await b.session.prompt("go", message_id=M1)).accepted == "duplicate"


async def test_queued_words_of_a_request_that_is_torn_away_are_said() -> None:
    log, opened = await held()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")]), opened=opened) as b:
        await b.session.prompt("one")
        await entered(gate.reached)
        log.hold()
        request = asyncio.create_task(b.session.follow_up("two"))  # noqa: TID251 - as pygls does
        await entered(log.reached)
        request.cancel()
        await asyncio.wait([request])
        log.release()
        await b.until(QueueChanged)
        gate.release()
        await b.idle()
        assert said(b) == ["one", "two"]


async def test_steering_for_a_run_that_ended_meanwhile_is_refused_and_forgotten() -> None:
    log, opened = await held()
    gate = Gate()
    async with bench(ScriptedModel([(gate, *say("a")), say("b")]), opened=opened) as b:
        first = await b.session.prompt("one")
        await entered(gate.reached)
        log.hold()

        async def steer() -> None:
            with pytest.raises(RunMismatch, match="ended while"):
                await b.session.steer("two", expected_run=first.run, message_id=M1)

        async with anyio.create_task_group() as group:
            group.start_soon(steer)
            await entered(log.reached)
            group.start_soon(b.session.abort)
            await anyio.wait_all_tasks_blocked()
            log.release()
        await b.idle()
        assert said(b) == ["one"]
        left = tuple(log.written)
        again = await b.session.prompt("two", message_id=M1)
        assert again.accepted == "started"
        await b.idle()
    _, reopened = await held(left)
    async with bench(ScriptedModel([say("c")]), opened=reopened) as b:
        assert b.session.queue.items == ()
        assert (await b.session.prompt("two", message_id=M1)).accepted == "started"
        await b.idle()


async def test_steering_that_a_stop_overtakes_does_not_set_the_agent_off_again() -> None:
    log, opened = await held()
    gate = Gate()
    receipts: list[Receipt] = []
    async with bench(ScriptedModel([(gate, *say("a"))]), opened=opened) as b:
        first = await b.session.prompt("one")
        await entered(gate.reached)
        log.hold()

        async def steer() -> None:
            receipts.append(await b.session.steer("two"))

        async with anyio.create_task_group() as group:
            group.start_soon(steer)
            await entered(log.reached)
            group.start_soon(b.session.abort)
            await anyio.wait_all_tasks_blocked()
            log.release()
        await anyio.wait_all_tasks_blocked()
        assert b.session.info.snapshot().state == "idle"
        assert b.session.queue.paused
        assert [(one.accepted, one.run) for one in receipts] == [("held", first.run)]


@pytest.mark.parametrize("delivery", ["auto", "steer", "followUp"])
async def test_words_may_be_refused_when_nothing_goes_on(delivery: str) -> None:
    async with bench(ScriptedModel()) as b:
        with pytest.raises(RunNotActive, match="nothing is running"):
            await b.session.prompt("x", delivery=delivery, if_idle="reject")  # pyright: ignore[reportArgumentType] - one of the three
        assert said(b) == []


async def test_a_compaction_refuses_words_that_must_not_wait() -> None:
    gate = Gate()
    long = "many words " * 4_000
    model = ScriptedModel([say(long), say(long), (gate, *say("## Goal\nx"))])
    async with bench(model) as b:
        for text in ("one", "two"):
            await b.session.prompt(text)
            await b.idle()
        assert (await b.session.compact(keep_recent_tokens=1)).compaction is not None
        await entered(gate.reached)
        with pytest.raises(SessionBusy, match="compaction"):
            await b.session.prompt("x", delivery="reject")
        assert (await b.session.abort(scope="run")).status == "alreadyEnded"
        assert (await b.session.abort(scope="session")).status == "cancelled"
