"""Events of the platform as values of the port; pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, cast

import msgspec

from agent_core.channels.messaging.port import (
    ChatAttachment,
    InboundClick,
    InboundMessage,
    InboundRecall,
    Sender,
    Target,
)
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value, threadsafe
from tiller_server.channels.lark.api.json_fields import as_object, parse_object
from tiller_server.channels.lark.events.content import MessageContent, read_content

MESSAGE: Final = "im.message.receive_v1"
RECALL: Final = "im.message.recalled_v1"
CLICK: Final = "card.action.trigger"
_Shape = TypeVar("_Shape")
_MICROSECONDS: Final = 10**14
_MENTION: Final = re.compile(r"@_user_\d+|@_all\b")


class EventInvalid(TillerError):
    """An event without the fields of its type."""


class ForeignButton(EventInvalid):
    """A click on a button that is none of ours."""


class _Header(Value, frozen=True):
    event_type: str = ""
    event_id: str = ""
    create_time: str = "0"


class _UserId(Value, frozen=True):
    open_id: str = ""


class _EventSender(Value, frozen=True):
    sender_id: _UserId | None = None
    sender_type: str = "user"


class _Mention(Value, frozen=True):
    key: str
    id: _UserId | str = ""
    """An object in events, a text in the history."""
    name: str = ""

    @property
    def open_id(self) -> str:
        return self.id if isinstance(self.id, str) else self.id.open_id


class _EventMessage(Value, frozen=True):
    message_id: str
    chat_id: str
    message_type: str
    content: str = ""
    chat_type: str = "group"
    create_time: str = "0"
    parent_id: str = ""
    thread_id: str = ""
    mentions: Sequence[_Mention] | None = None


class _MessageEvent(Value, frozen=True):
    sender: _EventSender
    message: _EventMessage


class _RecallEvent(Value, frozen=True):
    message_id: str
    chat_id: str
    recall_time: str = "0"


class _Operator(Value, frozen=True):
    open_id: str


class _Action(Value, frozen=True):
    value: object = None
    option: str = ""
    form_value: Mapping[str, object] = {}
    input_value: str = ""


class _ClickContext(Value, frozen=True):
    open_message_id: str
    open_chat_id: str


class _ClickEvent(Value, frozen=True):
    operator: _Operator
    action: _Action
    context: _ClickContext


class _HistorySender(Value, frozen=True):
    id: str = ""
    sender_type: str = ""


class _HistoryBody(Value, frozen=True):
    content: str = ""


class ChatHistoryItem(Value, frozen=True):
    """A message of the history."""

    message_id: str
    chat_id: str = ""
    msg_type: str = ""
    create_time: str = "0"
    parent_id: str = ""
    thread_id: str = ""
    deleted: bool = False
    sender: _HistorySender = _HistorySender()
    body: _HistoryBody = _HistoryBody()
    mentions: Sequence[_Mention] | None = None

    @property
    def at_ms(self) -> int:
        """Time of the message."""
        return _time_ms(self.create_time)


def event_type(payload: JsonObject) -> str:
    """Return the type of an event; empty for one without a header."""
    kind = as_object(payload.get("header")).get("event_type")
    return kind if isinstance(kind, str) else ""


def read_message(payload: JsonObject, *, bot: str) -> InboundMessage:
    """Return the message of an `im.message.receive_v1`.

    Args:
        payload: The event.
        bot: The `open_id` of the bot, to recognise its mentions.

    Raises:
        EventInvalid: It lacks fields.
    """
    event = _convert(payload.get("event"), _MessageEvent)
    sender, message = event.sender, event.message
    author = sender.sender_id or _UserId()
    item = ChatHistoryItem(
        message_id=message.message_id,
        chat_id=message.chat_id,
        msg_type=message.message_type,
        create_time=message.create_time,
        parent_id=message.parent_id,
        thread_id=message.thread_id,
        sender=_HistorySender(id=author.open_id, sender_type=sender.sender_type),
        body=_HistoryBody(content=message.content),
        mentions=message.mentions,
    )
    return inbound(item, bot=bot, is_direct=message.chat_type == "p2p")


def inbound(item: ChatHistoryItem, *, bot: str, is_direct: bool) -> InboundMessage:
    """Return a message of an event or of the history as a value of the port."""
    content = read_content(item.msg_type, parse_object(item.body.content))
    mentions = {mention.key: mention for mention in item.mentions or ()}
    is_mentioned = bot != "" and any(mention.open_id == bot for mention in mentions.values())
    return InboundMessage(
        key=item.message_id,
        target=Target(chat=item.chat_id, thread=item.thread_id or None),
        chat_kind="direct" if is_direct else "group",
        sender=Sender(id=item.sender.id, is_bot=item.sender.sender_type != "user"),
        text=_with_names(content.text, mentions, bot=bot),
        mentioned=is_mentioned or (bot != "" and bot in content.mentioned),
        reply_to=item.parent_id or None,
        attachments=_attachments(item.message_id, content),
        at_ms=item.at_ms,
    )


def read_history_item(value: JsonValue) -> ChatHistoryItem:
    """Return a message of the history.

    Raises:
        EventInvalid: It lacks fields.
    """
    return _convert(value, ChatHistoryItem)


def read_recall(payload: JsonObject) -> InboundRecall:
    """Return the withdrawal of an `im.message.recalled_v1`.

    Raises:
        EventInvalid: It lacks fields.
    """
    event = _convert(payload.get("event"), _RecallEvent)
    return InboundRecall(
        key=f"recall:{event.message_id}",
        target=Target(chat=event.chat_id),
        message=event.message_id,
        at_ms=_time_ms(event.recall_time),
    )


def read_click(payload: JsonObject) -> InboundClick:
    """Return the click of a `card.action.trigger`.

    Raises:
        ForeignButton: The button has not the value of our cards.
        EventInvalid: It lacks fields.
    """
    event = _convert(payload.get("event"), _ClickEvent)
    header = _convert(payload.get("header"), _Header)
    fields = as_object(event.action.value)
    request, option, digest = (fields.get(name) for name in ("r", "o", "h"))
    chosen = event.action.option or option
    if not (isinstance(request, str) and isinstance(chosen, str) and isinstance(digest, str)):
        raise ForeignButton("The button has no request, option and digest")
    return InboundClick(
        key=f"{header.event_id}:{request}",
        target=Target(chat=event.context.open_chat_id),
        message=event.context.open_message_id,
        sender=Sender(id=event.operator.open_id),
        request=request,
        option=chosen,
        digest=digest,
        form={name: _form_text(entry) for name, entry in event.action.form_value.items()},
        at_ms=_time_ms(header.create_time),
    )


def _with_names(text: str, mentions: Mapping[str, _Mention], *, bot: str) -> str:
    """Return a text with names in the place of mentions, and without those of the bot."""

    def name(match: re.Match[str]) -> str:
        if match[0] == "@_all":
            return "@all"
        mention = mentions.get(match[0])
        if mention is None:
            return match[0]
        return "" if bot and mention.open_id == bot else f"@{mention.name or 'somebody'}"

    return _MENTION.sub(name, text).strip()


def _attachments(message_id: str, content: MessageContent) -> tuple[ChatAttachment, ...]:
    return tuple(
        ChatAttachment(ref=f"{message_id}/{file.kind}/{file.key}", name=file.name)
        for file in content.files
    )


def _form_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value)))
    return "" if value is None else str(value)


def _time_ms(text: str) -> int:
    """Return a time in milliseconds; some events have microseconds."""
    try:
        number = int(text)
    except ValueError:
        return 0
    return number // 1000 if number >= _MICROSECONDS else number


def _convert(value: JsonValue, kind: type[_Shape]) -> _Shape:
    try:
        return msgspec.convert(value, threadsafe(kind), strict=False)
    except msgspec.ValidationError as error:
        msg = f"The event has not the fields of its type: {error}"
        raise EventInvalid(msg) from error
