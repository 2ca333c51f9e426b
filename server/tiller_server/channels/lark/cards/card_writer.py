"""One card entity of CardKit and its counter.

A card has one `sequence` over all calls: it starts at 1, rises strictly in the order of arrival, and may have gaps. So
each card has one writer, whose calls do not overlap.
"""

from typing import Final

from agent_core.channels.messaging.port import DeliveryError
from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, encode
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.codes import SEQUENCE_USED, LarkRefused
from tiller_server.channels.lark.api.rest import ApiCall, LarkApi, read_fields

CARDS: Final = "/open-apis/cardkit/v1/cards"
TICK_MS: Final = 100
"""The counter rises at least once in this time: a later process begins above an earlier one, whose last number is lost."""
JUMP: Final = 100_000
"""Added after a number was refused as used; more than a card of ten calls per second needs in two hours."""


class CardIdentity(Value, frozen=True, kw_only=True):
    """A card, as another process needs it to go on."""

    card: str
    created_ms: int
    sequence: int = 0
    """Last number that was used."""


class _CardId(Value, frozen=True):
    card_id: str


async def create_card(api: LarkApi, card: JsonObject, clock: Clock) -> CardIdentity:
    """Create a card entity, which a message can show once. One that nothing shows is harmless.

    Raises:
        DeliveryError: It was not created.
    """
    body = {"type": "card_json", "data": encode(card).decode()}
    call = ApiCall(action="create a card", method="POST", path=CARDS, body=body)
    identity = read_fields(await api.call(call), _CardId)
    return CardIdentity(card=identity.card_id, created_ms=clock.now_ms())


async def shown_card(api: LarkApi, message: str, sent: CardIdentity) -> CardIdentity:
    """Return the card that a message shows.

    That is another one when the message was sent by an earlier process with the same key: the platform then returns the
    earlier message, which shows the earlier card.
    """
    body = {"message_id": message}
    call = ApiCall(action="find a card", method="POST", path=f"{CARDS}/id_convert", body=body)
    try:
        card = read_fields(await api.call(call), _CardId).card_id
    except DeliveryError:
        return sent
    if card == sent.card:
        return sent
    return CardIdentity(card=card, created_ms=sent.created_ms, sequence=JUMP)


class CardWriter:
    """The only writer of a card. Every method raises a DeliveryError when the platform did not confirm it."""

    def __init__(self, api: LarkApi, identity: CardIdentity, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._card = identity.card
        self._created_ms = identity.created_ms
        self._sequence = identity.sequence

    @property
    def identity(self) -> CardIdentity:
        """Return the card with the last number of its counter."""
        return CardIdentity(card=self._card, created_ms=self._created_ms, sequence=self._sequence)

    async def set_element(self, element: str, text: str) -> None:
        """Set the whole text of an element; only while the card streams. An empty text is refused."""
        await self._write("PUT", f"/elements/{element}/content", {"content": text})

    async def replace(self, card: JsonObject) -> None:
        """Replace the whole card; also when it does not stream."""
        data = {"type": "card_json", "data": encode(card).decode()}
        await self._write("PUT", "", {"card": data})

    async def open_stream(self) -> None:
        """Begin another ten minutes in which elements can be set."""
        await self._set_streaming(is_open=True)

    async def close_stream(self) -> None:
        """End the state in which the list of chats says that the card is being generated."""
        await self._set_streaming(is_open=False)

    async def _set_streaming(self, *, is_open: bool) -> None:
        settings = encode({"config": {"streaming_mode": is_open}}).decode()
        await self._write("PATCH", "/settings", {"settings": settings})

    async def _write(self, method: str, path: str, body: JsonObject) -> None:
        try:
            await self._send(method, path, body)
        except LarkRefused as error:
            if error.code != SEQUENCE_USED:
                raise
            self._sequence += JUMP
            await self._send(method, path, body)

    async def _send(self, method: str, path: str, body: JsonObject) -> None:
        # The number counts as used before the answer: a call that timed out may have been applied.
        elapsed = (self._clock.now_ms() - self._created_ms) // TICK_MS
        self._sequence = max(self._sequence + 1, elapsed + 1)
        call = ApiCall(
            action="update a card",
            method=method,
            path=f"{CARDS}/{self._card}{path}",
            body={**body, "sequence": self._sequence},
        )
        await self._api.call(call)
