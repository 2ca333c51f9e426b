"""Completion of started steps, even when the caller is cancelled."""

import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from agent_core.kernel.errors import SessionClosed
from agent_core.kernel.shield import uncancelled

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Outcome(Struct, Generic[T]):
    """Outcome of a step, and whether its caller still waits and so runs `then`."""

    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    given: list[T] = msgspec.field(default_factory=list)
    failed: list[Exception] = msgspec.field(default_factory=list)
    is_awaited: bool = True


class Background:
    """Runner of short steps in the session's own task group.

    A request that is cancelled, or whose connection is lost, ends its task at once, whatever shields that task; a step
    that is half done then would leave the file and the memory inconsistent.
    """

    def __init__(self) -> None:
        self.group: TaskGroup | None = None
        """The session's; None: before it is open, when steps are taken in the caller's task."""

    async def shielded(
        self,
        step: Callable[[], Awaitable[T]],
        *,
        then: Callable[[], None] = lambda: None,
    ) -> T:
        """Run a step to completion even if the caller is cancelled; the cancellation is then raised.

        Args:
            step: The step.
            then: Called after a step that did not fail; in the caller's task if that still waits, so that nothing
                runs between it and the caller's next statement.

        Raises:
            Exception: Any exception of the step.
        """
        if self.group is None:
            given = await uncancelled(step())
            then()
            return given
        outcome = _Outcome[T]()
        self.group.start_soon(self._take, step, then, outcome)  # decision 0027
        try:
            with anyio.CancelScope(shield=True):
                await outcome.over.wait()
        except BaseException:
            outcome.is_awaited = False
            if outcome.given:
                then()
            raise
        if outcome.failed:
            raise outcome.failed[0]
        then()
        return outcome.given[0]

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that may take long, and go on with it when the caller is cancelled; it ends with the session.

        Raises:
            Exception: Whatever the work raises, as long as the caller waits.
            SessionClosed: The session was closed before it was done.
        """
        if self.group is None:
            return await work()
        outcome = _Outcome[T]()
        self.group.start_soon(self._work, work, outcome)
        await outcome.over.wait()
        if outcome.failed:
            raise outcome.failed[0]
        if not outcome.given:
            message = "the session was closed before this was done"
            raise SessionClosed(message)
        return outcome.given[0]

    @staticmethod
    async def _work(work: Callable[[], Awaitable[T]], outcome: _Outcome[T]) -> None:
        try:
            outcome.given.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again where somebody waits; the session goes on
            log.warning("something that was begun in a session failed: %r", error)
            outcome.failed.append(error)
        finally:
            outcome.over.set()

    @staticmethod
    async def _take(
        step: Callable[[], Awaitable[T]], then: Callable[[], None], outcome: _Outcome[T]
    ) -> None:
        try:
            outcome.given.append(await uncancelled(step()))
        except Exception as error:  # noqa: BLE001 - raised again in the task of whoever asked
            outcome.failed.append(error)
        finally:
            outcome.over.set()
        if outcome.given and not outcome.is_awaited:
            then()
