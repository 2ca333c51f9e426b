"""Keeps the pauses of Python's collector short: a full look at a large process takes a tenth of a second and more."""

import asyncio
import gc
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

FULL: Final = 2
"""The generation that has everything."""
TIDY_S: Final = 300.0
MOST_PUT_OFF: Final = 12
"""So often tidying waits for runs to end; then it is done beside them."""


class IncrementalGc:
    """Limits full collections to new objects: those that survive one are frozen, in the whole process, after `begin`.

    A frozen object that becomes garbage later stays, if it is part of a cycle, until `tidy` collects everything.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._spared = False

    @contextmanager
    def held(self) -> Generator["IncrementalGc"]:
        """End it with the block."""
        try:
            yield self
        finally:
            if self._has_begun:
                gc.callbacks.remove(self._looked)
                gc.unfreeze()

    def begin(self) -> None:
        """Spare what is loaded by now, and from now on what every full look leaves; once."""
        if not self._has_begun:
            self._has_begun = True
            gc.callbacks.append(self._looked)
            gc.freeze()  # decision 0034

    def tidy(self) -> None:
        """Look at everything, if there was anything new to spare since; takes some tenths of a second. Blocks."""
        if self._spared:
            gc.unfreeze()
            _ = gc.collect()
            self._spared = False

    async def keep_tidy(
        self, is_busy: Callable[[], bool], *, sleep: Callable[[float], Any] = asyncio.sleep
    ) -> None:
        """Tidy now and then while nobody waits for anything; until cancelled."""
        put_off = 0
        while True:
            await sleep(TIDY_S)
            put_off = put_off + 1 if is_busy() else 0
            if put_off in {0, MOST_PUT_OFF}:
                self.tidy()
                put_off = 0

    def _looked(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "stop" and info["generation"] == FULL:
            gc.freeze()
            self._spared = True
