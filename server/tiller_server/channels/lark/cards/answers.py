"""The answers that grow at the moment, and the timer that renews their cards."""

from contextlib import suppress
from typing import Final
from weakref import WeakSet

import anyio

from agent_core.channels.messaging.port import DeliveryError, RunningAnswer
from agent_core.kernel import Clock
from tiller_server.channels.lark.api.codes import LarkRefused
from tiller_server.channels.lark.api.rest import LarkApi
from tiller_server.channels.lark.cards.answer import CardAnswer, PlainAnswer, read_token
from tiller_server.channels.lark.messages import LarkMessages, MessagePlace

TIMER_S: Final = 15.0
_STARTS: Final = 100
"""Answers whose first message is uncertain; the oldest is forgotten first."""
_PLACEHOLDER: Final = "Working…"


class LarkAnswers:
    """The open answers of one app."""

    def __init__(self, api: LarkApi, messages: LarkMessages, clock: Clock) -> None:
        self._api = api
        self._messages = messages
        self._clock = clock
        self._open: WeakSet[CardAnswer] = WeakSet()
        self._starts: dict[str, CardAnswer] = {}

    @property
    def count(self) -> int:
        """Return the number of answers that somebody holds, and of those whose first message is uncertain."""
        return len(self._open) + len(self._starts)

    async def open(self, delivery: MessagePlace, *, resume_token: str | None) -> RunningAnswer:
        """Open an answer, or go on with one; without a card where the platform refuses to create one.

        Raises:
            DeliveryError: Its first message was not confirmed.
        """
        token = read_token(resume_token)
        if token is not None and token.plain is not None:
            return PlainAnswer(self._messages, delivery, token.plain)
        if token is not None:
            answer = CardAnswer(self._api, self._messages, delivery, self._clock)
            answer.resume(token.cards)
            self._open.add(answer)
            return answer
        answer = self._starts.get(delivery.key)
        if answer is None:
            answer = CardAnswer(self._api, self._messages, delivery, self._clock)
            self._starts[delivery.key] = answer
            if len(self._starts) > _STARTS:
                del self._starts[next(iter(self._starts))]
        try:
            await answer.start()
        except LarkRefused:
            _ = self._starts.pop(delivery.key, None)
            return await self._open_plain(delivery)
        _ = self._starts.pop(delivery.key, None)
        self._open.add(answer)
        return answer

    async def renew_forever(self) -> None:
        """Renew cards before their ten minutes are over, until it is cancelled."""
        while True:
            await self._clock.sleep(TIMER_S)
            async with anyio.create_task_group() as group:
                for answer in tuple(self._open):
                    group.start_soon(self._renew, answer)

    async def _renew(self, answer: CardAnswer) -> None:
        # The next text finds a closed card by its code, and sets the whole card.
        with suppress(DeliveryError):
            await answer.renew_if_due()

    async def _open_plain(self, delivery: MessagePlace) -> PlainAnswer:
        sent = await self._messages.post(delivery, _PLACEHOLDER)
        return PlainAnswer(self._messages, delivery, sent)
