"""Messages: texts, replies, files, cards and reactions."""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from agent_core.channels.messaging.port import (
    ApprovalPrompt,
    DeliveryImpossible,
    Reaction,
    SentMessage,
    Settlement,
    Target,
)
from agent_core.kernel.json import JsonObject, JsonValue, encode
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.codes import REPLIED_TO_GONE, LarkRefused
from tiller_server.channels.lark.api.rest import ApiCall, LarkApi, Upload, read_fields, read_items
from tiller_server.channels.lark.cards.builders import approval_card, settled_card
from tiller_server.channels.lark.cards.markdown import inert
from tiller_server.channels.lark.cards.marks import mark

MESSAGES: Final = "/open-apis/im/v1/messages"
KEY_CHARS: Final = 50
POST_BYTES: Final = 28 * 1024
"""Largest rich text; a longer one is sent as plain text."""
TEXT_BYTES: Final = 150 * 1024
IMAGE_BYTES: Final = 10 * 1024 * 1024
FILE_BYTES: Final = 30 * 1024 * 1024
_IMAGES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"})
_THREADS: Final = 1_000
_EMOJI: Final[Mapping[Reaction, str]] = {
    "started": "OnIt",
    "completed": "DONE",
    "aborted": "OK",
    "failed": "ERROR",
}


class _MessageId(Value, frozen=True):
    message_id: str
    thread_id: str = ""


class _Operator(Value, frozen=True):
    operator_id: str = ""


class _ReactionType(Value, frozen=True):
    emoji_type: str = ""


class _OwnReaction(Value, frozen=True):
    reaction_id: str
    operator: _Operator = _Operator()
    reaction_type: _ReactionType = _ReactionType()


class MessagePlace(Value, frozen=True, kw_only=True):
    """Where and how a message is sent."""

    target: Target
    key: str
    reply_to: str | None = None
    in_thread: bool = False


class LarkMessages:
    """The sender of messages of one app."""

    def __init__(self, api: LarkApi) -> None:
        self._api = api
        self._anchors: OrderedDict[str, str] = OrderedDict()

    def note_thread(self, thread: str | None, message: str) -> None:
        """Store a message of a thread: only a reply to one gets into the thread."""
        if thread:
            self._anchors[thread] = message
            self._anchors.move_to_end(thread)
            if len(self._anchors) > _THREADS:
                self._anchors.popitem(last=False)

    async def post(self, delivery: MessagePlace, text: str) -> SentMessage:
        """Send Markdown as a rich text, or as plain text when it is too long for one."""
        return await self.send(delivery, *text_content(text, delivery.key))

    async def edit(self, message: str, text: str, *, key: str) -> None:
        """Replace the text of a message; at most 20 times."""
        kind, content = text_content(text, key)
        body: JsonObject = {"msg_type": kind, "content": content}
        path = f"{MESSAGES}/{message}"
        await self._api.call(ApiCall(action="edit a message", method="PUT", path=path, body=body))

    async def recall(self, message: str) -> None:
        """Withdraw a message of ours."""
        path = f"{MESSAGES}/{message}"
        await self._api.call(ApiCall(action="recall a message", method="DELETE", path=path))

    async def post_file(self, delivery: MessagePlace, name: str, content: bytes) -> SentMessage:
        """Upload and send a file; an image as an image."""
        if len(content) > FILE_BYTES or not content:
            size = f"{len(content):,} bytes"
            msg = f"The file {name!r} was not sent: it has {size}, and Lark accepts 1 to {FILE_BYTES:,} bytes"
            raise DeliveryImpossible(msg)
        is_image = PurePosixPath(name).suffix.lower() in _IMAGES and len(content) <= IMAGE_BYTES
        kind, field = ("image", "image_key") if is_image else ("file", "file_key")
        form = {"image_type": "message"} if is_image else {"file_type": "stream", "file_name": name}
        call = ApiCall(
            action=f"accept the file {name!r}",
            method="POST",
            path=f"/open-apis/im/v1/{kind}s",
            form=form,
            upload=Upload(field=kind, name=name, content=content),
        )
        key = (await self._api.call(call)).get(field)
        return await self.send(delivery, kind, encode({field: key}).decode())

    async def ask(self, delivery: MessagePlace, prompt: ApprovalPrompt) -> SentMessage:
        """Send the card of an approval."""
        card = approval_card(prompt, mark=mark(delivery.key))
        return await self.send(delivery, "interactive", encode(card).decode())

    async def settle(self, message: str, prompt: ApprovalPrompt, settlement: Settlement) -> None:
        """Redraw the card of an approval."""
        body = {"content": encode(settled_card(prompt, settlement)).decode()}
        path = f"{MESSAGES}/{message}"
        await self._api.call(ApiCall(action="redraw a card", method="PATCH", path=path, body=body))

    async def react(self, message: str, reaction: Reaction) -> None:
        """Add a reaction and remove the other ones of the bot, which would stay beside it."""
        path = f"{MESSAGES}/{message}/reactions"
        emoji = _EMOJI[reaction]
        own = await self._own_reactions(path)
        if emoji not in own.values():
            body: JsonObject = {"reaction_type": {"emoji_type": emoji}}
            await self._api.call(
                ApiCall(action="add a reaction", method="POST", path=path, body=body)
            )
        for former in [key for key, name in own.items() if name != emoji]:
            await self._api.call(
                ApiCall(action="remove a reaction", method="DELETE", path=f"{path}/{former}")
            )

    async def send(self, delivery: MessagePlace, kind: str, content: str) -> SentMessage:
        """Send a message of a type; into a thread as a reply to one of its messages.

        Args:
            delivery: Where it goes.
            kind: Type of the platform, as `post`.
            content: JSON as text.
        """
        body = {"msg_type": kind, "content": content, "uuid": delivery.key[:KEY_CHARS]}
        target = delivery.target
        in_thread = delivery.in_thread or target.thread is not None
        reply_to = delivery.reply_to or await self._anchor(target)
        if reply_to is None:
            return await self._create(target, body)
        try:
            return await self._reply(reply_to, body, in_thread=in_thread)
        except LarkRefused as error:
            # Only for a message that is gone: after a rate limit the reply is repeated, or it would stand there twice.
            if error.code not in REPLIED_TO_GONE:
                raise
        if target.thread is None:
            return await self._create(target, body)
        self._anchors.pop(target.thread, None)
        return await self._reply(await self._anchor(target) or reply_to, body, in_thread=True)

    async def _create(self, target: Target, body: JsonObject) -> SentMessage:
        call = ApiCall(
            action="send a message",
            method="POST",
            path=MESSAGES,
            query={"receive_id_type": "chat_id"},
            body={"receive_id": target.chat, **body},
        )
        return self._sent(await self._api.call(call))

    async def _reply(self, message: str, body: JsonObject, *, in_thread: bool) -> SentMessage:
        call = ApiCall(
            action="send a reply",
            method="POST",
            path=f"{MESSAGES}/{message}/reply",
            body={**body, "reply_in_thread": in_thread},
        )
        return self._sent(await self._api.call(call))

    async def _own_reactions(self, path: str) -> Mapping[str, str]:
        """Return the reactions of the bot: id and name. Without the right to list them there are none."""
        call = ApiCall(action="list reactions", method="GET", path=path, query={"page_size": "50"})
        try:
            data = await self._api.call(call)
        except LarkRefused:
            return {}
        own: dict[str, str] = {}
        for item in read_items(data, _OwnReaction):
            if item.operator.operator_id == self._api.account.app_id:
                own[item.reaction_id] = item.reaction_type.emoji_type
        return own

    async def _anchor(self, target: Target) -> str | None:
        """Return a message of the thread of a target, to which a reply can be sent."""
        thread = target.thread
        if thread is None or thread in self._anchors:
            return None if thread is None else self._anchors[thread]
        query = {"container_id_type": "thread", "container_id": thread, "page_size": "1"}
        call = ApiCall(action="read a thread", method="GET", path=MESSAGES, query=query)
        items = read_items(await self._api.call(call), _MessageId)
        if not items:
            msg = f"The thread {thread} has no message to which a reply can be sent"
            raise DeliveryImpossible(msg)
        self.note_thread(thread, items[0].message_id)
        return items[0].message_id

    def _sent(self, data: JsonObject) -> SentMessage:
        message = read_fields(data, _MessageId)
        sent = SentMessage(message=message.message_id, thread=message.thread_id or None)
        self.note_thread(sent.thread, sent.message)
        return sent


def text_content(text: str, key: str) -> tuple[str, str]:
    """Return type and content of a text: a rich text with Markdown, or plain text when it is too long for one."""
    marked = inert(text) + mark(key)
    rows: JsonValue = [[{"tag": "md", "text": marked}]]
    # One language is shown to all.
    post = encode({"zh_cn": {"content": rows}})
    if len(post) <= POST_BYTES:
        return "post", post.decode()
    plain = encode({"text": marked})
    if len(plain) > TEXT_BYTES:
        msg = f"The text was not sent: it has {len(plain):,} bytes, and Lark accepts {TEXT_BYTES:,}; send it as a file"
        raise DeliveryImpossible(msg)
    return "text", plain.decode()
