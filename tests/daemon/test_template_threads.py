"""The template of runs waits for the threads of its rehearsal, also for those that end with their loop."""

import asyncio
import threading

import pytest
from typing_extensions import override

from agent_core.kernel.threads import run_in_thread
from tiller_server.cli.run import template


def left_by_a_loop() -> tuple[threading.Thread, asyncio.AbstractEventLoop]:
    """Run a call in a thread; return its thread, which waits for another call, and the loop that it ends with."""
    loop = asyncio.new_event_loop()
    worker = loop.run_until_complete(run_in_thread(threading.current_thread))
    loop.close()
    return worker, loop


class Holder(threading.Thread):
    """Refer to a loop until nobody refers to the thread any more, as threads of anyio do."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.may_end = threading.Event()
        self.loop = loop

    @override
    def run(self) -> None:
        _ = self.may_end.wait(10)


def test_a_worker_ends_although_another_thread_refers_to_its_loop() -> None:
    kept = {thread.ident for thread in threading.enumerate()}
    worker, loop = left_by_a_loop()
    holder = Holder(loop)
    holder.start()
    threading.Timer(0.2, holder.may_end.set).start()
    del loop, holder
    template.join_others(kept)
    assert not worker.is_alive()


def test_a_thread_that_does_not_end_is_named() -> None:
    kept = {thread.ident for thread in threading.enumerate()}
    worker, loop = left_by_a_loop()
    with pytest.raises(RuntimeError, match="agent worker"):
        template.join_others(kept, limit_s=0.1)
    assert worker.is_alive()
    assert loop.is_closed()
    del loop
    template.join_others(kept)
    assert not worker.is_alive()
