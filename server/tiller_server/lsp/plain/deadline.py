"""Commands that are answered in time, however long they take."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import anyio

from tiller_server.lsp.jsonrpc.errors import RpcError

ANSWER_S: Final = 10.0
"""Helix gives a command up after 20 s."""


class TaskStarter(Protocol):
    """Starts what nobody waits for."""

    def __call__(self, work: Callable[[], Awaitable[None]], /, *, what: str) -> None:
        """Start it; `what` is for the log."""
        ...


class _Outcome:
    """Outcome of a command."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self.result: object = None
        self.error: Exception | None = None
        self.done = anyio.Event()

    async def run(self) -> None:
        try:
            self.result = await self._work()
        except Exception as error:  # noqa: BLE001 - given on to whoever waits
            self.error = error
        finally:
            self.done.set()


async def answer_within(
    name: str,
    work: Callable[[], Awaitable[object]],
    *,
    start: TaskStarter,
    show_error: Callable[[str], None],
    limit_s: float = ANSWER_S,
) -> object:
    """Return the answer of a command; a command that takes too long continues, and `{"goesOn": true}` is the answer.

    Args:
        name: Name of the command, for the log.
        work: Work of the command.
        start: Starts work that outlives the request.
        show_error: Shows the user an error that comes after the answer.
        limit_s: Longest wait for the answer, in seconds.

    Raises:
        Exception: The error of a command that fails within the limit.
    """
    outcome = _Outcome(work)
    start(outcome.run, what=name)
    with anyio.move_on_after(limit_s):
        await outcome.done.wait()
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    async def tell_late() -> None:
        await outcome.done.wait()
        if isinstance(outcome.error, RpcError):
            show_error(outcome.error.message)

    start(tell_late, what=name)
    return {"goesOn": True}
