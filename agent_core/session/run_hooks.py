"""What hooks are told of one run: that it begins, that its turns are over, and that nothing of it goes on any more."""

from collections.abc import Sequence

import anyio

from agent_core.events import RunStatus
from agent_core.hooks import Hooks, RunBegun, RunOver, RunSettled
from agent_core.kernel import RunId
from agent_core.loop import Loop, Recording, Words, tell_words

AFTER_CANCEL_S = 1.0
"""How long the hooks of a cancelled run may take together: whoever cancelled it waits for its end."""


class RunHooks:
    """Tells hooks of one run."""

    def __init__(self, hooks: Hooks, run: RunId, recording: Recording) -> None:
        self._hooks = hooks
        self._run = run
        self._recording = recording
        self._is_open = False

    async def begun(self, loop: Loop, words: Sequence[Words]) -> None:
        """Tell that the run begins, and of the words that it begins with."""
        self._is_open = True
        _ = await self._hooks.ask(RunBegun(run=self._run))
        for one in words:
            await tell_words(loop, one)

    async def turns_over(self) -> None:
        """Tell that the turns have come to their end; a retry or a compaction may follow."""
        if self._hooks.listens(RunOver):
            messages = self._recording.context()
            _ = await self._hooks.ask(RunOver(run=self._run, messages=messages))

    async def settled(self, status: RunStatus) -> None:
        """Tell that the run is over, if it was told that it begins; of a cancelled one both ends are told."""
        if not self._is_open:
            return
        if status != "cancelled":
            _ = await self._hooks.ask(RunSettled(run=self._run, status=status))
            return
        with anyio.move_on_after(AFTER_CANCEL_S, shield=True):
            await self.turns_over()
            _ = await self._hooks.ask(RunSettled(run=self._run, status=status))
