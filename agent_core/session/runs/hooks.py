"""Hooks of one run: at its begin, at the end of its turns, and when all of its activities have ended."""

from collections.abc import Sequence

import anyio

from agent_core.events import RunStatus
from agent_core.hooks import RunBegun, RunOver, RunSettled
from agent_core.kernel import RunId
from agent_core.loop import LoopContext, UserInput, notify_input_hooks
from agent_core.session.context import SessionContext
from agent_core.session.runs.budgets import RunUsage

AFTER_CANCEL_S = 1.0
"""Total time limit for the hooks of a cancelled run, in seconds: the caller of the cancel waits for the run's end."""


class RunHooks:
    """Caller of the hooks of one run."""

    def __init__(self, parts: SessionContext, run: RunId) -> None:
        self._parts = parts
        self._hooks = parts.hooks
        self._run = run
        self._is_open = False

    async def begun(self, loop: LoopContext, inputs: Sequence[UserInput]) -> None:
        """Report that the run begins, and of the words that it begins with."""
        self._is_open = True
        _ = await self._hooks.ask(RunBegun(run=self._run))
        for one in inputs:
            await notify_input_hooks(loop, one)

    async def turns_over(self) -> None:
        """Report that the turns have come to their end; a retry or a compaction may follow."""
        if self._hooks.listens(RunOver):
            used = self._used()
            _ = await self._hooks.ask(
                RunOver(
                    run=self._run,
                    messages=self._parts.recorder.context(),
                    duration_ms=used.duration_ms,
                    turns=used.answers,
                    tool_calls=used.calls,
                )
            )

    async def settled(self, status: RunStatus) -> None:
        """Report that the run is over, if it was told that it begins; of a cancelled one both ends are told."""
        if not self._is_open:
            return
        if status != "cancelled":
            await self._settled(status)
            return
        with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
            await self.turns_over()
            await self._settled(status)

    async def _settled(self, status: RunStatus) -> None:
        used = self._used()
        _ = await self._hooks.ask(
            RunSettled(
                run=self._run,
                status=status,
                duration_ms=used.duration_ms,
                turns=used.answers,
                tool_calls=used.calls,
            )
        )

    def _used(self) -> RunUsage:
        return self._parts.tally.used(self._parts.clock.monotonic_s())
