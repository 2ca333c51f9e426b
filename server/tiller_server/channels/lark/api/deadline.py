"""Time limits on the clock of the caller, so that tests control them."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agent_core.kernel import Clock

Result = TypeVar("Result")


async def within(clock: Clock, seconds: float, work: Callable[[], Awaitable[Result]]) -> Result:
    """Return the result of some work, which is cancelled when the time is over.

    Raises:
        TimeoutError: The time was over first.
    """
    results: list[Result] = []
    failures: list[Exception] = []

    async def run(scope: anyio.CancelScope) -> None:
        try:
            results.append(await work())
        except Exception as error:  # noqa: BLE001 - raised below, outside of the task group, which would wrap it
            failures.append(error)
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run, group.cancel_scope)
        await clock.sleep(seconds)
        group.cancel_scope.cancel()
    if failures:
        raise failures[0]
    if not results:
        msg = f"no answer within {seconds:g} s"
        raise TimeoutError(msg)
    return results[0]
