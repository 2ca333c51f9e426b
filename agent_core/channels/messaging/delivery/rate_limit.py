"""Token buckets of a platform: one of the app, and one of each chat."""

from agent_core.kernel import Clock

MOST_CHATS = 1000
"""Buckets of chats that are kept; full ones are dropped beyond that."""


class TokenBucket:
    """A bucket of one token, which is refilled at a rate: calls are spaced, so that no window sees more than the rate."""

    def __init__(self, rate: float) -> None:
        """Create it, full.

        Args:
            rate: Tokens per second.
        """
        self._interval_s = 1 / rate
        self._free_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """Return how long it is empty."""
        return max(0.0, self._free_s - now_s)

    def use(self, now_s: float) -> None:
        """Remove the token."""
        self._free_s = max(now_s, self._free_s) + self._interval_s

    def hold_until(self, free_s: float) -> None:
        """Keep it empty until a time, as the platform asked."""
        self._free_s = max(self._free_s, free_s)


class CallRate:
    """The rate of calls of one account."""

    def __init__(self, *, chat_rate: float, app_rate: float, clock: Clock) -> None:
        """Create it.

        Args:
            chat_rate: Calls per second for each chat.
            app_rate: Calls per second in all.
            clock: Time.
        """
        self._chat_rate = chat_rate
        self._app = TokenBucket(app_rate)
        self._chats: dict[str, TokenBucket] = {}
        self._clock = clock

    async def acquire(self, chat: str) -> None:
        """Wait until a call for a chat is within the rates, and count it."""
        while (delay_s := self._wait_s(chat)) > 0:
            await self._clock.sleep(delay_s)
        now_s = self._clock.monotonic_s()
        self._app.use(now_s)
        self._chat(chat).use(now_s)

    def hold(self, chat: str, delay_s: float) -> None:
        """Make no call for a chat for a time, as the platform asked."""
        self._chat(chat).hold_until(self._clock.monotonic_s() + delay_s)

    def _wait_s(self, chat: str) -> float:
        now_s = self._clock.monotonic_s()
        return max(self._app.wait_s(now_s), self._chat(chat).wait_s(now_s))

    def _chat(self, chat: str) -> TokenBucket:
        bucket = self._chats.get(chat)
        if bucket is None:
            if len(self._chats) >= MOST_CHATS:
                now_s = self._clock.monotonic_s()
                self._chats = {
                    name: other for name, other in self._chats.items() if other.wait_s(now_s) > 0
                }
            bucket = self._chats[chat] = TokenBucket(self._chat_rate)
        return bucket
