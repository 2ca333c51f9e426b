"""From the events of the connection to the sink of the channel, and back to the answers of callbacks."""

import logging
from typing import Final

from typing_extensions import override

from agent_core.channels.messaging.port import (
    ClickReply,
    ConnectionState,
    DeliveryError,
    DeliveryImpossible,
    InboundClick,
    InboundMessage,
    InboundRecall,
    InboundSink,
)
from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.deadline import within
from tiller_server.channels.lark.api.rest import ApiCall, LarkApi, read_fields
from tiller_server.channels.lark.cards.builders import approval_card, settled_card
from tiller_server.channels.lark.connection.endpoint import ConnectionFailed
from tiller_server.channels.lark.connection.long_connection import EventHandler, EventReply
from tiller_server.channels.lark.events import inbound
from tiller_server.channels.lark.events.inbound import (
    EventInvalid,
    ForeignButton,
    event_type,
    read_click,
    read_message,
    read_recall,
)
from tiller_server.channels.lark.history import LarkHistory
from tiller_server.channels.lark.messages import LarkMessages
from tiller_server.channels.lark.people import People

CLICK_S: Final = 2.6
CLICK_NAME_S: Final = 0.3
"""The platform waits 3 s for the answer to a click: both limits together are less."""
STORE_S: Final = 10.0
_log = logging.getLogger(__name__)


class _Bot(Value, frozen=True):
    open_id: str


class _BotInfo(Value, frozen=True):
    bot: _Bot


class Bot:
    """The bot of the app, by whose id its mentions are recognised."""

    def __init__(self, api: LarkApi) -> None:
        self._api = api
        self._open_id = ""

    @property
    def open_id(self) -> str:
        """Return its id; empty before `load`."""
        return self._open_id

    async def load(self) -> str:
        """Return its id, which is read once.

        Raises:
            DeliveryError: It cannot be read.
        """
        if not self._open_id:
            call = ApiCall(action="describe the bot", method="GET", path="/open-apis/bot/v3/info")
            self._open_id = read_fields(await self._api.call(call), _BotInfo).bot.open_id
        return self._open_id


class EventReceiver(EventHandler):
    """The handler of a connection's events."""

    def __init__(
        self,
        sink: InboundSink,
        *,
        bot: Bot,
        messages: LarkMessages,
        history: LarkHistory,
        people: People,
        clock: Clock,
    ) -> None:
        self._sink = sink
        self._bot = bot
        self._messages = messages
        self._history = history
        self._people = people
        self._clock = clock

    @override
    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        self._sink.connection_changed(state, reason)

    @override
    async def prepare(self) -> None:
        try:
            await self._bot.load()
        except DeliveryError as error:
            msg = f"The id of the bot cannot be read: {error}"
            is_final = isinstance(error, DeliveryImpossible)
            raise ConnectionFailed(msg, needs_person=is_final) from error

    @override
    def is_callback(self, payload: JsonObject) -> bool:
        return event_type(payload) == inbound.CLICK

    @override
    async def handle(self, payload: JsonObject) -> EventReply:
        kind = event_type(payload)
        try:
            match kind:
                case inbound.MESSAGE:
                    return await self._store(await self._people.named(self._message(payload)))
                case inbound.RECALL:
                    return await self._store(read_recall(payload))
                case inbound.CLICK:
                    return await self._click(payload)
                case _:
                    return EventReply(kind="unknown")
        except ForeignButton:
            text = "This button is not in use any more."
            return EventReply(answer=_toast(text, "warning"))
        except EventInvalid as error:
            # It would be as invalid the next time.
            _log.warning("An event of the type %s was ignored: %s", kind, error)
            return EventReply(kind="damaged")

    def _message(self, payload: JsonObject) -> InboundMessage:
        message = read_message(payload, bot=self._bot.open_id)
        self._history.note_chat(message.target.chat, is_direct=message.chat_kind == "direct")
        self._messages.note_thread(message.target.thread, message.key)
        return message

    async def _store(self, event: InboundMessage | InboundRecall) -> EventReply:
        try:
            await within(self._clock, STORE_S, lambda: self._sink.receive(event))
        except Exception:  # noqa: BLE001 - an event that was not stored is not acknowledged
            _log.exception("An event could not be stored; the platform sends it again")
            return EventReply(kind="failed")
        return EventReply()

    async def _click(self, payload: JsonObject) -> EventReply:
        click = read_click(payload)
        reply = await self._decide(await self._people.named(click, limit_s=CLICK_NAME_S))
        return EventReply(answer=_click_answer(reply))

    async def _decide(self, click: InboundClick) -> ClickReply:
        try:
            return await within(self._clock, CLICK_S, lambda: self._sink.click(click))
        except Exception:  # noqa: BLE001 - a click without an answer shows an error code
            _log.exception("A click could not be decided")
            return ClickReply(text="Not recorded. Try again, or answer by text.", kind="error")


def _click_answer(reply: ClickReply) -> JsonObject:
    answer: dict[str, JsonValue] = dict(_toast(reply.text, reply.kind))
    if reply.prompt is not None:
        settlement = reply.settlement
        card = (
            approval_card(reply.prompt)
            if settlement is None
            else settled_card(reply.prompt, settlement)
        )
        answer["card"] = {"type": "raw", "data": card}
    return answer


def _toast(text: str, kind: str) -> JsonObject:
    return {"toast": {"type": kind, "content": text}}
