"""No command keeps an editor waiting, and what comes of it late is still told."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from tiller_server.lsp.jsonrpc.errors import RpcError
from tiller_server.lsp.plain.deadline import answer_within


class Office:
    """Starts what outlives a request, and remembers what the user was told."""

    def __init__(self, group: TaskGroup) -> None:
        self.told: list[str] = []
        self._group = group

    async def run(self, work: Callable[[], Awaitable[object]], **more: Any) -> object:
        return await answer_within(
            "tiller.test", work, start=self._start, show_error=self.told.append, **more
        )

    def _start(self, work: Callable[[], Awaitable[None]], /, *, what: str) -> None:
        async def run() -> None:
            await work()

        self._group.start_soon(run)


async def test_what_is_quick_is_the_answer() -> None:
    async def work() -> object:
        return {"status": "done"}

    async with anyio.create_task_group() as group:
        assert await Office(group).run(work) == {"status": "done"}


async def test_what_fails_quickly_is_the_error() -> None:
    async def work() -> object:
        raise RpcError(-32602, "no")

    async with anyio.create_task_group() as group:
        with pytest.raises(RpcError, match="no"):
            await Office(group).run(work)


async def test_what_is_slow_goes_on_and_fails_aloud() -> None:
    release = anyio.Event()
    offices: list[Office] = []

    async def work() -> object:
        await release.wait()
        raise RpcError(-32803, "it did not work")

    async with anyio.create_task_group() as group:
        offices.append(Office(group))
        assert await offices[0].run(work, limit_s=0.01) == {"goesOn": True}
        assert offices[0].told == []
        release.set()
    assert offices[0].told == ["it did not work"]


async def test_an_editor_that_gives_up_does_not_stop_the_command() -> None:
    release, done = anyio.Event(), anyio.Event()

    async def work() -> object:
        await release.wait()
        done.set()
        return None

    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.01):
            await Office(group).run(work)
        release.set()
        await done.wait()
