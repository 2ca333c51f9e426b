"""A step that must not be left half done is finished, and the cancellation goes on after it."""

import anyio
import pytest

from agent_core.kernel.threads import uncancelled


async def test_the_step_is_finished_and_then_the_cancellation_goes_on() -> None:
    steps: list[str] = []
    begun, go = anyio.Event(), anyio.Event()

    async def step() -> str:
        begun.set()
        await go.wait()
        steps.append("done")
        return "given"

    async def work() -> None:
        steps.append(await uncancelled(step()))
        await anyio.lowlevel.checkpoint()
        steps.append("never")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await begun.wait()
            group.cancel_scope.cancel()
            go.set()
    assert steps == ["done", "given"]


async def test_a_failure_of_the_step_comes_out() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await uncancelled(fail())
