"""Changing words that wait while a run takes from them; what is changed outlives the process."""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_core.events import QueueChanged, RunStarted
from agent_core.kernel import MessageId, QueueId
from agent_core.kernel.errors import QueueFull, QueueStale
from agent_core.messages import Text, UserMessage
from agent_core.session.input.queue import (
    QUEUE_LIMIT,
    Move,
    QueueOp,
    Remove,
    Replace,
    SendNow,
    Steer,
)
from agent_core.session.runs.recovered_state import recover_state
from tests.support.harness.sizes import at_size
from tests.support.session.scripted_model import Gate, ScriptedModel, say
from tests.support.session.sessions import Bench, bench, words

RACES = at_size(ci=40, campaign=500)


@asynccontextmanager
async def waiting(
    *texts: str, answers: int = 6
) -> AsyncGenerator[tuple[Bench, Gate, list[QueueId]]]:
    """Hold a run back while follow-ups wait for its end."""
    gate = Gate()
    model = ScriptedModel([(gate, *say("first")), *(say(f"answer {n}") for n in range(answers))])
    async with bench(model) as b:
        await b.session.prompt("go")
        with anyio.fail_after(5):
            await gate.reached.wait()
        ids: list[QueueId] = []
        for text in texts:
            receipt = await b.session.follow_up(text)
            assert receipt.queue_id is not None
            ids.append(receipt.queue_id)
        yield b, gate, ids
        gate.release()


def said(b: Bench) -> list[str]:
    return [words(one) for one in b.messages if isinstance(one, UserMessage)]


def queued(b: Bench) -> list[str]:
    return [
        part.text for one in b.session.queue.items for part in one.content if isinstance(part, Text)
    ]


async def test_a_changed_queue_is_told_kept_and_said_in_its_new_order() -> None:
    async with waiting("a", "b", "c") as (b, gate, (a, bb, c)):
        other = (Text(text="B"),)
        ops: list[QueueOp] = [
            Remove(queue_id=a),
            Replace(queue_id=bb, content=other),
            Move(queue_id=c, index=0),
        ]
        left = await b.session.queue.edit(ops)
        assert [one.queue_id for one in left] == [c, bb]
        assert queued(b) == ["c", "B"]
        told = [e for e in b.seen() if isinstance(e, QueueChanged)][-1]
        assert told.queue == left
        kept = recover_state(b.session.info.entries).waiting
        assert [one.item for one in kept] == list(left)
        gate.release()
        await b.idle()
        assert said(b) == ["go", "c", "B"]


async def test_steering_made_of_a_follow_up_is_said_in_the_next_turn() -> None:
    async with waiting("a", "b") as (b, gate, (_, bb)):
        await b.session.queue.edit([Steer(queue_id=bb)])
        gate.release()
        await b.idle()
        assert said(b) == ["go", "b", "a"]


async def test_a_change_of_a_queue_that_changed_meanwhile_is_refused() -> None:
    async with waiting("a") as (b, _, (a,)):
        seen = b.session.queue.changed_seq
        await b.session.follow_up("b")
        with pytest.raises(QueueStale, match="look at it again"):
            await b.session.queue.edit([Remove(queue_id=a)], if_seq=seen)
        assert queued(b) == ["a", "b"]
        await b.session.queue.edit([Remove(queue_id=a)], if_seq=b.session.queue.changed_seq)
        assert queued(b) == ["b"]


async def test_all_changes_are_made_or_none() -> None:
    async with waiting("a", "b") as (b, _, (a, _)):
        before = b.session.queue.changed_seq
        with pytest.raises(QueueStale):
            await b.session.queue.edit([Remove(queue_id=a), Steer(queue_id=QueueId("gone"))])
        assert (queued(b), b.session.queue.changed_seq) == (["a", "b"], before)


async def test_held_words_wait_for_somebody_to_send_them() -> None:
    async with bench(ScriptedModel([say("one"), say("two")])) as b:
        held = await b.session.steer("later", if_idle="hold")
        second = await b.session.follow_up("much later")
        assert (held.accepted, held.run) == ("held", None)
        assert second.accepted == "started"
        await b.idle()
        assert said(b) == ["much later", "later"]


async def test_words_that_a_cancel_left_are_sent_one_by_one() -> None:
    async with waiting("a", "b") as (b, _, (_, bb)):
        await b.session.abort()
        assert b.session.queue.paused
        await anyio.wait_all_tasks_blocked()
        await b.session.queue.edit([SendNow(queue_id=bb)])
        await b.idle()
        assert said(b) == ["go", "b", "a"]
        assert len([e for e in b.seen() if isinstance(e, RunStarted)]) == 2
        assert not b.session.queue.paused


async def test_the_next_prompt_says_that_the_pause_is_over() -> None:
    async with waiting("a") as (b, _, _):
        await b.session.abort()
        await b.session.prompt("next")
        await b.idle()
        assert [e.paused for e in b.seen() if isinstance(e, QueueChanged)] == [
            *(False, True),
            *(False, False),
        ]


@pytest.mark.parametrize("paused", [False, True])
async def test_a_full_queue_says_whether_waiting_helps(*, paused: bool) -> None:
    async with waiting(*map(str, range(QUEUE_LIMIT)), answers=QUEUE_LIMIT) as (b, _, _):
        if paused:
            await b.session.abort()
        with pytest.raises(QueueFull) as full:
            await b.session.steer("more", if_idle="hold")
        assert full.value.passes is not paused


async def test_a_queue_holds_no_more_than_its_limit_however_fast_it_fills() -> None:
    async with waiting() as (b, _, _):
        full = 0

        async def more(number: int) -> None:
            nonlocal full
            try:
                await b.session.follow_up(str(number), message_id=MessageId(str(number)))
            except QueueFull:
                full += 1

        async with anyio.create_task_group() as group:
            for number in range(QUEUE_LIMIT + 5):
                group.start_soon(more, number)
        assert (full, len(b.session.queue.items)) == (5, QUEUE_LIMIT)
        await b.session.abort(queue="drop")


@pytest.mark.parametrize("seed", range(RACES))
async def test_an_edit_races_a_run_that_takes_and_every_word_is_said_once_or_not_at_all(
    seed: int,
) -> None:
    draw = random.Random(seed)  # noqa: S311 - a moment, not a secret
    names = [f"w{n}" for n in range(5)]
    async with waiting(*names) as (b, gate, ids):
        removed: set[str] = set()

        async def edit(place: int) -> None:
            for _ in range(draw.randrange(12)):
                await checkpoint()
            ops: list[QueueOp] = [
                Remove(queue_id=ids[place]),
                Replace(queue_id=ids[place], content=(Text(text=f"W{place}"),)),
                SendNow(queue_id=ids[place]),
                Steer(queue_id=ids[place]),
                Move(queue_id=ids[place], index=draw.randrange(5)),
            ]
            op = draw.choice(ops)
            try:
                await b.session.queue.edit([op])
            except QueueStale:
                return
            if isinstance(op, Remove):
                removed.add(names[place])

        async with anyio.create_task_group() as group:
            gate.release()
            for place in draw.sample(range(5), 5):
                group.start_soon(edit, place)
        await b.idle()
        heard = [text.lower() for text in said(b)[1:]]
        assert sorted(heard) == sorted(set(names) - removed)
        restored = recover_state(b.session.info.entries)
        assert (restored.waiting, b.session.queue.items) == ([], ())
