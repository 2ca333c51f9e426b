"""Running answers on the platform: the newest text at intervals, never in the way of the session."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from agent_core.channels.messaging.delivery.rate_limit import CallRate
from agent_core.channels.messaging.port import DeliveryDelayed, DeliveryError, RunningAnswer
from agent_core.kernel import Clock

StoreToken = Callable[[str, str], Awaitable[None]]
"""Stores the resume token of the answer of a run."""
_log = logging.getLogger(__name__)


class LiveAnswer:
    """One running answer. `run` shows the newest of the texts; older ones that were not shown are dropped."""

    def __init__(
        self, run: str, chat: str, answer: RunningAnswer, *, interval_s: float, clock: Clock
    ) -> None:
        """Prepare it.

        Args:
            run: Run that it shows.
            chat: Its chat.
            answer: The answer; this object is its only writer until `ended`.
            interval_s: Least time between two texts.
            clock: Time.
        """
        self.run_id: Final = run
        self.chat: Final = chat
        self.answer: Final = answer
        self._interval_s = interval_s
        self._clock = clock
        self._newest = ""
        self._shown = ""
        self._changed = anyio.Event()
        self._is_calling = self._is_over = False
        self.task: asyncio.Task[None] | None = None
        """Task that shows it."""

    def show(self, text: str) -> None:
        """Set the whole text so far."""
        self._newest = text
        self._changed.set()

    async def keep_shown(self, rate: CallRate, store_token: StoreToken) -> None:
        """Show what is set, for as long as it is not cancelled."""
        token = self.answer.resume_token
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            delay_s = self._interval_s
            if self._newest != self._shown:
                await rate.acquire(self.chat)
                text = self._newest
                self._is_calling = True
                try:
                    await self.answer.set_text(text)
                    self._shown = text
                except DeliveryError as error:
                    _log.info("A text of the run %s was not shown: %s", self.run_id, error)
                    self._changed.set()
                    if isinstance(error, DeliveryDelayed):
                        delay_s = max(delay_s, error.retry_after_s or 0.0)
                finally:
                    self._is_calling = False
                if self._is_over:
                    return
                if self.answer.resume_token != token:
                    token = self.answer.resume_token
                    await store_token(self.run_id, token)
            await self._clock.sleep(delay_s)

    async def end(self) -> None:
        """Stop showing texts, after a call that is under way: the platform must not apply it after the final text."""
        self._is_over = True
        if self.task is None:
            return
        if not self._is_calling:
            _ = self.task.cancel()
        _ = await asyncio.wait([self.task])


class LiveAnswers:
    """The running answers of an account. `run` has to run."""

    def __init__(
        self, rate: CallRate, *, interval_s: float, store_token: StoreToken, clock: Clock
    ) -> None:
        """Prepare them.

        Args:
            rate: Rate of the calls of the account.
            interval_s: Least time between two texts of one answer.
            store_token: Stores resume tokens.
            clock: Time.
        """
        self._rate = rate
        self._interval_s = interval_s
        self._store_token = store_token
        self._clock = clock
        self._answers: dict[str, LiveAnswer] = {}
        self._texts: dict[str, str] = {}
        """Newest texts of the runs that are followed."""
        self._is_over = False
        self._tasks = asyncio.TaskGroup()

    @property
    def count(self) -> int:
        """Number of the runs whose text is shown or waits for an answer that is open."""
        return len({*self._answers, *self._texts})

    async def run(self) -> None:
        """Own the tasks of the answers, for as long as it is not cancelled."""
        async with self._tasks:
            try:
                await anyio.sleep_forever()
            finally:
                self._is_over = True

    def show(self, run: str, text: str) -> None:
        """Set the whole text of a run so far, which is shown when its answer is open."""
        self._texts[run] = text
        if (live := self._answers.get(run)) is not None:
            live.show(text)

    def opened(self, run: str, chat: str, answer: RunningAnswer) -> None:
        """Show the texts of a run in an answer from now on; nothing happens when the sender ends."""
        if self._is_over:
            return
        live = LiveAnswer(run, chat, answer, interval_s=self._interval_s, clock=self._clock)
        self._answers[run] = live
        if text := self._texts.get(run):
            live.show(text)
        live.task = self._tasks.create_task(live.keep_shown(self._rate, self._store_token))

    def is_open(self, run: str) -> bool:
        """Return whether the answer of a run is open in this process."""
        return run in self._answers

    async def ended(self, run: str) -> RunningAnswer | None:
        """Stop showing the texts of a run and return its answer, which the caller finishes; None: it is not open here."""
        _ = self._texts.pop(run, None)
        live = self._answers.pop(run, None)
        if live is None:
            return None
        await live.end()
        return live.answer
