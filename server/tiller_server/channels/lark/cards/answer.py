"""An answer that grows in a card: whole texts, renewed in time, and in the end the full text or plain messages."""

from collections.abc import Sequence
from typing import Final

import anyio
import msgspec
from typing_extensions import override

from agent_core.channels.messaging.port import Outcome, RunningAnswer, SentMessage, Target
from agent_core.kernel import Clock
from agent_core.kernel.json import encode
from agent_core.kernel.values import Value, threadsafe
from tiller_server.channels.lark.api.codes import STREAM_CLOSED, LarkRefused
from tiller_server.channels.lark.api.rest import LarkApi
from tiller_server.channels.lark.cards.builders import (
    EMPTY_TEXTS,
    AnswerState,
    answer_card,
    element_id,
)
from tiller_server.channels.lark.cards.card_writer import (
    CardIdentity,
    CardWriter,
    create_card,
    shown_card,
)
from tiller_server.channels.lark.cards.markdown import Piece, inert, pages
from tiller_server.channels.lark.cards.marks import derived_key, mark
from tiller_server.channels.lark.messages import LarkMessages, MessagePlace

RENEW_S: Final = 450.0
"""A card streams for ten minutes, and writing does not extend that; it is renewed after this time."""


class ShownCard(Value, frozen=True, kw_only=True):
    """A card of an answer and the message that shows it."""

    identity: CardIdentity
    sent: SentMessage


class AnswerToken(Value, frozen=True, kw_only=True):
    """The state from which another process goes on."""

    cards: tuple[ShownCard, ...] = ()
    plain: SentMessage | None = None
    """The message of an answer without a card."""


def read_token(token: str | None) -> AnswerToken | None:
    """Return the state of a token; None without one that can be used."""
    if not token:
        return None
    try:
        read = msgspec.json.decode(token, type=threadsafe(AnswerToken))
    except (msgspec.MsgspecError, ValueError):
        return None
    return read if read.cards or read.plain else None


class _Card:
    """A card of the answer with the state that it shows."""

    def __init__(self, writer: CardWriter, sent: SentMessage, now_s: float) -> None:
        self.writer = writer
        self.sent = sent
        self.opened_s = now_s
        self.is_streaming = True
        self.texts: Sequence[str] | None = None
        """Texts of its elements; None: unknown."""


class CardAnswer(RunningAnswer):
    """An answer in cards: one, and another for each 22 KB. Calls do not overlap, the renewal included."""

    def __init__(
        self, api: LarkApi, messages: LarkMessages, delivery: MessagePlace, clock: Clock
    ) -> None:
        """Prepare; `start` or `resume` follows."""
        self._api = api
        self._messages = messages
        self._delivery = delivery
        self._clock = clock
        self._cards: list[_Card] = []
        self._lock = anyio.Lock()
        self._created: dict[str, CardIdentity] = {}

    async def start(self) -> None:
        """Show the first card.

        Raises:
            DeliveryError: It is not shown. The call can be repeated.
        """
        await self._open_next()

    def resume(self, cards: Sequence[ShownCard]) -> None:
        """Go on with cards of another process."""
        now_s = self._clock.monotonic_s()
        for card in cards:
            writer = CardWriter(self._api, card.identity, self._clock)
            self._cards.append(_Card(writer, card.sent, now_s))

    @property
    @override
    def sent(self) -> SentMessage:
        return self._cards[0].sent

    @property
    @override
    def resume_token(self) -> str:
        shown = (ShownCard(identity=card.writer.identity, sent=card.sent) for card in self._cards)
        return msgspec.json.encode(AnswerToken(cards=tuple(shown))).decode()

    @override
    async def set_text(self, text: str) -> None:
        if not text.strip():
            return
        async with self._lock:
            split = pages(text)
            for place in range(len(self._cards) - 1, len(split) - 1):
                await self._replace(place, split[place], "continued")
                await self._open_next()
            place = len(self._cards) - 1
            await self._show(place, split[place] if place < len(split) else ())

    @override
    async def finish(self, text: str, outcome: Outcome) -> None:
        async with self._lock:
            split = pages(text)
            await self._remove_cards(len(split), outcome)
            last = len(split) - 1
            for place, pieces in enumerate(split):
                state: AnswerState = outcome if place == last else "continued"
                await self._finish_page(place, pieces, state)

    async def renew_if_due(self) -> None:
        """Begin another ten minutes when most of them are over."""
        async with self._lock:
            card = self._cards[-1] if self._cards else None
            if card is None or not card.is_streaming:
                return
            if self._clock.monotonic_s() - card.opened_s >= RENEW_S:
                await self._renew(card)

    async def _open_next(self) -> None:
        """Create the next card and send it. A card whose sending is uncertain is sent again, not another one."""
        place = len(self._cards)
        key = self._key(place)
        identity = self._created.get(key)
        if identity is None:
            card = answer_card((), "running", mark=mark(key))
            identity = self._created[key] = await create_card(self._api, card, self._clock)
        content = encode({"type": "card", "data": {"card_id": identity.card}}).decode()
        sent = await self._messages.send(self._following(key), "interactive", content)
        shown = await shown_card(self._api, sent.message, identity)
        entry = _Card(CardWriter(self._api, shown, self._clock), sent, self._clock.monotonic_s())
        if shown is identity:
            entry.texts = [EMPTY_TEXTS["running"]]
        self._cards.append(entry)

    async def _show(self, place: int, pieces: Sequence[Piece]) -> None:
        """Show a growing text: only its last element where the others are shown already."""
        card = self._cards[place]
        texts = [inert(piece.content) for piece in pieces]
        if texts == card.texts or not texts:
            return
        former = card.texts
        is_growth = former is not None and len(former) == len(texts) and former[:-1] == texts[:-1]
        if not (card.is_streaming and is_growth and texts[-1].strip()):
            await self._replace(place, pieces, "running")
            return
        try:
            await self._set_last(card, texts)
        except LarkRefused:
            # Without elements that can be set alone: the whole card needs no streaming mode.
            card.is_streaming = False
            await self._replace(place, pieces, "running")

    async def _set_last(self, card: _Card, texts: Sequence[str]) -> None:
        element = element_id(len(texts) - 1)
        try:
            await card.writer.set_element(element, texts[-1])
        except LarkRefused as error:
            if error.code not in STREAM_CLOSED:
                raise
            await self._renew(card)
            await card.writer.set_element(element, texts[-1])
        card.texts = texts

    async def _renew(self, card: _Card) -> None:
        try:
            await card.writer.open_stream()
        except LarkRefused:
            card.is_streaming = False
            raise
        card.opened_s = self._clock.monotonic_s()

    async def _replace(self, place: int, pieces: Sequence[Piece], state: AnswerState) -> None:
        card = self._cards[place]
        is_streaming = state == "running" and card.is_streaming
        card.texts = None
        await card.writer.replace(
            answer_card(pieces, state, mark=mark(self._key(place)), is_streaming=is_streaming)
        )
        card.texts = [inert(piece.content) for piece in pieces]
        card.is_streaming = is_streaming

    async def _finish_page(self, place: int, pieces: Sequence[Piece], state: AnswerState) -> None:
        key = self._key(place)
        try:
            if place < len(self._cards):
                await self._close(self._cards[place])
                await self._replace(place, pieces, state)
            else:
                card = answer_card(pieces, state, mark=mark(key))
                await self._messages.send(
                    self._following(key), "interactive", encode(card).decode()
                )
        except LarkRefused:
            text = _joined(pieces)
            following = self._following(derived_key(key, "text"))
            await self._messages.post(following, text if text.strip() else EMPTY_TEXTS[state])

    async def _remove_cards(self, count: int, outcome: Outcome) -> None:
        """Remove the cards after the first ones, which a text that became shorter does not need."""
        while len(self._cards) > count:
            try:
                await self._messages.recall(self._cards[-1].sent.message)
            except LarkRefused:
                # It cannot be recalled any more; at least its old text goes.
                await self._replace(len(self._cards) - 1, (), outcome)
            del self._cards[-1]

    async def _close(self, card: _Card) -> None:
        if not card.is_streaming:
            return
        try:
            await card.writer.close_stream()
        except LarkRefused:
            return  # it is closed already, or the whole card follows anyway
        card.is_streaming = False

    def _key(self, place: int) -> str:
        key = self._delivery.key
        return key if place == 0 else derived_key(key, f"card {place}")

    def _following(self, key: str) -> MessagePlace:
        """Return where the next message of the answer goes: into the thread of the first."""
        first = self._delivery
        thread = self._cards[0].sent.thread if self._cards else None
        return MessagePlace(
            target=Target(chat=first.target.chat, thread=first.target.thread or thread),
            key=key,
            reply_to=first.reply_to,
            in_thread=first.in_thread,
        )


class PlainAnswer(RunningAnswer):
    """An answer where no card can be created: a placeholder, which the text replaces in the end."""

    def __init__(self, messages: LarkMessages, delivery: MessagePlace, sent: SentMessage) -> None:
        self._messages = messages
        self._delivery = delivery
        self._sent = sent

    @property
    @override
    def sent(self) -> SentMessage:
        return self._sent

    @property
    @override
    def resume_token(self) -> str:
        return msgspec.json.encode(AnswerToken(plain=self._sent)).decode()

    @override
    async def set_text(self, text: str) -> None:
        """Ignore the text: a message can be edited 20 times only."""

    @override
    async def finish(self, text: str, outcome: Outcome) -> None:
        first, *others = pages(text if text.strip() else EMPTY_TEXTS[outcome])
        delivery = self._delivery
        try:
            await self._messages.edit(self._sent.message, _joined(first), key=delivery.key)
        except LarkRefused:
            others = [first, *others]
        for place, page in enumerate(others, start=1):
            key = derived_key(delivery.key, f"text {place}")
            thread = delivery.target.thread or self._sent.thread
            target = Target(chat=delivery.target.chat, thread=thread)
            following = MessagePlace(
                target=target, key=key, reply_to=delivery.reply_to, in_thread=delivery.in_thread
            )
            await self._messages.post(following, _joined(page))


def _joined(pieces: Sequence[Piece]) -> str:
    return "".join(piece.content for piece in pieces)
