"""A deferred message is in the file before the note that it was delivered, whoever writes first."""

from functools import partial

import anyio
from anyio.lowlevel import checkpoint

from agent_core.messages import CustomMessage, Text
from agent_core.session.history.recorder import Recorder
from agent_core.session.input.deferred_messages import DeferredMessages
from agent_core.session.runs.recovered_state import recover_state
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.transcript import Transcript
from agent_core.transcript.entries import CustomEntry, CustomMessageEntry
from tests.support.harness.clock import FakeClock
from tests.support.session.entries import header
from tests.support.session.held_log import NoDiskFailures

REPORT = CustomMessage(custom_type="report", content=(Text(text="Done."),), display=False, at_ms=0)


async def test_a_message_that_is_due_while_it_is_written_is_delivered_once() -> None:
    transcript = Transcript()
    log = await MemoryStore().create(header())
    recorder = Recorder(log, transcript, clock=FakeClock(), news=NoDiskFailures())
    ids = iter("abcdef")
    deferred = DeferredMessages(recorder, new_id=lambda: next(ids))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            recorder.background.group = group
            group.start_soon(partial(deferred.keep, REPORT, flush_at="turn"))
            await checkpoint()
            # As at the border of a turn: the task of the run writes at once, others wait for their turn.
            with recorder.background.in_own_task():
                await deferred.flush("turn", run=None, publish=lambda _: None)
    kinds = [type(one) for one in transcript.entries]
    assert kinds == [CustomEntry, CustomMessageEntry, CustomEntry]
    assert recover_state(transcript.entries).deferred == []
