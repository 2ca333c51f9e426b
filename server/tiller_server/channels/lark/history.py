"""The messages of chats and threads, and their files."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from agent_core.channels.messaging.port import ChatAttachment, InboundMessage, Target
from agent_core.kernel.json import JsonValue, decode, encode
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.codes import LarkRefused
from tiller_server.channels.lark.api.rest import ApiCall, LarkApi, read_fields, read_items
from tiller_server.channels.lark.cards.marks import mark
from tiller_server.channels.lark.events.inbound import ChatHistoryItem, inbound
from tiller_server.channels.lark.messages import MESSAGES

PAGE_ITEMS: Final = 50
PAGES: Final = 20
"""Most pages that are read: a thousand messages."""
_REFERENCE: Final = re.compile(r"([\w-]+)/(image|file)/([\w-]+)")
_CHATS: Final = 1_000


class _Chat(Value, frozen=True):
    chat_mode: str = ""


class _Page(Value, frozen=True):
    has_more: bool = False
    page_token: str = ""


class LarkHistory:
    """The reader of stored messages of one app."""

    def __init__(self, api: LarkApi) -> None:
        self._api = api
        self._direct: dict[str, bool] = {}

    def note_chat(self, chat: str, *, is_direct: bool) -> None:
        """Store whether a chat has two members only, as an event said."""
        if len(self._direct) >= _CHATS:
            self._direct.clear()
        self._direct[chat] = is_direct

    async def messages(
        self, target: Target, *, since_ms: int, bot: str
    ) -> Sequence[InboundMessage]:
        """Return the messages since a time, oldest first, own and deleted ones left out."""
        items = await self._items(target, since_ms)
        others = [item for item in items if item.sender.id != self._api.account.app_id]
        if not others:
            return ()
        is_direct = await self._is_direct(target.chat)
        return tuple(
            inbound(item, bot=bot, is_direct=is_direct)
            for item in others
            if not item.deleted and item.msg_type != "system"
        )

    async def find(self, target: Target, *, key: str, since_ms: int) -> str | None:
        """Return the id of an own message with the mark of a key. Files have none."""
        needle = mark(key)
        for item in await self._items(target, since_ms):
            is_own = item.sender.id == self._api.account.app_id
            if is_own and needle in _unescaped(item.body.content):
                return item.message_id
        return None

    async def fetch(self, attachment: ChatAttachment, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Read a file of a message in chunks."""
        reference = _REFERENCE.fullmatch(attachment.ref)
        if reference is None:
            msg = f"The attachment {attachment.ref!r} is none of Lark"
            raise LarkRefused(msg, code=0)
        call = ApiCall(
            action=f"send the file {attachment.name!r}",
            method="GET",
            path=f"{MESSAGES}/{reference[1]}/resources/{reference[3]}",
            query={"type": reference[2]},
        )
        async with aclosing(self._api.download(call, limit_bytes=limit_bytes)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _items(self, target: Target, since_ms: int) -> list[ChatHistoryItem]:
        """Return the messages since a time, oldest first."""
        # The newest come first: a thread accepts no start time, and the last thousand matter more than the first.
        query = {
            "container_id_type": "chat" if target.thread is None else "thread",
            "container_id": target.thread or target.chat,
            "sort_type": "ByCreateTimeDesc",
            "page_size": str(PAGE_ITEMS),
        }
        if target.thread is None:
            query["start_time"] = str(max(0, since_ms // 1000))
        items: list[ChatHistoryItem] = []
        for _ in range(PAGES):
            call = ApiCall(action="read the history", method="GET", path=MESSAGES, query=query)
            data = await self._api.call(call)
            read = read_items(data, ChatHistoryItem)
            items += [item for item in read if item.at_ms >= since_ms]
            page = read_fields(data, _Page)
            if not page.has_more or not page.page_token or (read and read[-1].at_ms < since_ms):
                break
            query = {**query, "page_token": page.page_token}
        return items[::-1]

    async def _is_direct(self, chat: str) -> bool:
        if chat not in self._direct:
            call = ApiCall(
                action="describe a chat", method="GET", path=f"/open-apis/im/v1/chats/{chat}"
            )
            mode = read_fields(await self._api.call(call), _Chat).chat_mode
            self.note_chat(chat, is_direct=mode == "p2p")
        return self._direct[chat]


def _unescaped(content: str) -> str:
    """Return the JSON of a content with its characters as such."""
    value: JsonValue
    try:
        value = decode(content)
    except (ValueError, RecursionError):
        return content
    return encode(value).decode()
