"""The calls of the REST API on the world of the fake platform."""

import json
import re
from collections.abc import Callable, Mapping
from email import message_from_bytes, policy
from typing import Any

from tests.support.lark.world import APP, BOT, CardEntity, Refused, Sent, World
from tests.support.provider.http import HttpRequest

IMAGE_BYTES, FILE_BYTES = 10 * 1024 * 1024, 30 * 1024 * 1024
SECRET = "app-secret"
Answer = Mapping[str, Any]
Handler = Callable[..., Answer]


class Routes:
    """One method per call."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.token = ""
        self.token_until_s = 0.0
        self._table: tuple[tuple[str, re.Pattern[str], Handler], ...] = tuple(
            (method, re.compile(f"/open-apis/{pattern}"), handler)
            for method, pattern, handler in (
                ("GET", r"bot/v3/info", self._bot),
                ("GET", r"contact/v3/users/(\w+)", self._user),
                ("GET", r"im/v1/chats/(\w+)", self._chat),
                ("POST", r"im/v1/messages", self._create),
                ("GET", r"im/v1/messages", self._list),
                ("GET", r"im/v1/messages/(\w+)", self._get),
                ("PUT", r"im/v1/messages/(\w+)", self._edit),
                ("PATCH", r"im/v1/messages/(\w+)", self._redraw),
                ("DELETE", r"im/v1/messages/(\w+)", self._delete),
                ("POST", r"im/v1/messages/(\w+)/reply", self._reply),
                ("GET", r"im/v1/messages/(\w+)/reactions", self._reactions),
                ("POST", r"im/v1/messages/(\w+)/reactions", self._react),
                ("DELETE", r"im/v1/messages/(\w+)/reactions/(\w+)", self._unreact),
                ("POST", r"im/v1/(image|file)s", self._upload),
                ("POST", r"cardkit/v1/cards", self._create_card),
                ("POST", r"cardkit/v1/cards/id_convert", self._convert_id),
                ("PUT", r"cardkit/v1/cards/(\w+)", self._replace_card),
                ("PATCH", r"cardkit/v1/cards/(\w+)/settings", self._settings),
                ("PUT", r"cardkit/v1/cards/(\w+)/elements/(\w+)/content", self._set_element),
            )
        )

    def expire_tokens(self) -> None:
        self.token = ""

    def issue_token(self, request: HttpRequest) -> Answer:
        body = json.loads(request.body)
        if body != {"app_id": APP, "app_secret": SECRET}:
            return {"code": 10014, "msg": "app secret invalid"}
        self.token = f"t-{self.world.number()}"
        self.token_until_s = self.world.clock.monotonic_s() + 7200
        return {"code": 0, "msg": "ok", "tenant_access_token": self.token, "expire": 7200}

    def answer(self, request: HttpRequest) -> Answer:
        """Apply a call.

        Raises:
            Refused: It breaks a rule.
        """
        is_stale = self.world.clock.monotonic_s() >= self.token_until_s
        if is_stale or request.headers.get("authorization") != f"Bearer {self.token}":
            raise Refused(99991663, "Invalid access token for authorization")
        self.world.limit(f"app {request.method} {request.path}", 1000, 60, 99991400)
        for method, pattern, handler in self._table:
            if method == request.method and (match := pattern.fullmatch(request.path)):
                return handler(request, *match.groups())
        raise Refused(404, f"no such call: {request.method} {request.path}", status=404)

    def _bot(self, request: HttpRequest) -> Answer:
        return {"code": 0, "msg": "ok", "bot": {"open_id": BOT, "app_name": "Tiller"}}

    def _user(self, request: HttpRequest, person: str) -> Answer:
        if request.query.get("user_id_type") != "open_id":
            raise Refused(40003, "user_id_type")
        return _data({"user": {"name": self.world.people[person], "open_id": person}})

    def _chat(self, request: HttpRequest, chat: str) -> Answer:
        return _data({"chat_mode": self.world.chats[chat], "name": chat})

    def _message(self, key: str) -> Sent:
        message = self.world.messages.get(key)
        if message is None:
            raise Refused(230110, "The message was deleted")
        if message.deleted:
            raise Refused(230011, "The message has been recalled")
        return message

    def _create(self, request: HttpRequest) -> Answer:
        body = json.loads(request.body)
        if request.query.get("receive_id_type") != "chat_id":
            raise Refused(230001, "receive_id_type")
        return _data(self._view(self.world.send(body["receive_id"], body)))

    def _reply(self, request: HttpRequest, key: str) -> Answer:
        parent, body = self._message(key), json.loads(request.body)
        return _data(self._view(self.world.send(parent.chat, body, parent)))

    def _edit(self, request: HttpRequest, key: str) -> Answer:
        self.world.edit(self._message(key), json.loads(request.body))
        return _data({})

    def _redraw(self, request: HttpRequest, key: str) -> Answer:
        self.world.redraw(self._message(key), json.loads(request.body)["content"])
        return _data({})

    def _delete(self, request: HttpRequest, key: str) -> Answer:
        self._message(key).deleted = True
        return _data({})

    def _get(self, request: HttpRequest, key: str) -> Answer:
        return _data({"items": [self._view(self._message(key))]})

    def _list(self, request: HttpRequest) -> Answer:
        query = request.query
        kind = query["container_id_type"]
        if kind == "thread" and "start_time" in query:
            raise Refused(230001, "a thread has no start_time")
        start_ms = int(query.get("start_time", "0")) * 1000
        found = [
            message
            for message in self.world.in_container(kind, query["container_id"])
            if message.at_ms >= start_ms
        ]
        if query.get("sort_type") == "ByCreateTimeDesc":
            found.reverse()
        size, begin = int(query.get("page_size", "20")), int(query.get("page_token", "0"))
        if size > 50:
            raise Refused(230001, "page_size")
        end = begin + size
        items = [self._view(message) for message in found[begin:end]]
        has_more = end < len(found)
        return _data({"items": items, "has_more": has_more, "page_token": str(end) * has_more})

    def _reactions(self, request: HttpRequest, key: str) -> Answer:
        items = [
            {
                "reaction_id": number,
                "operator": {
                    "operator_id": author,
                    "operator_type": "app" if author == APP else "user",
                },
                "reaction_type": {"emoji_type": name},
            }
            for number, (author, name) in self._message(key).reactions.items()
        ]
        return _data({"items": items, "has_more": False})

    def _react(self, request: HttpRequest, key: str) -> Answer:
        name = json.loads(request.body)["reaction_type"]["emoji_type"]
        if name not in {"OnIt", "THINKING", "DONE", "ERROR", "OK", "THUMBSUP"}:
            raise Refused(231001, "reaction type is invalid")
        number = f"r{self.world.number()}"
        self._message(key).reactions[number] = (APP, name)
        return _data({"reaction_id": number})

    def _unreact(self, request: HttpRequest, key: str, reaction: str) -> Answer:
        if self._message(key).reactions.pop(reaction, None) is None:
            raise Refused(231002, "no such reaction")
        return _data({})

    def _upload(self, request: HttpRequest, kind: str) -> Answer:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        parts = message_from_bytes(head + request.body, policy=policy.HTTP)
        content, fields = b"", {}
        for part in parts.iter_parts():
            name = part.get_param("name", header="content-disposition")
            raw = part.get_payload(decode=True)
            assert isinstance(raw, bytes)
            if part.get_filename():
                content = raw
            else:
                fields[name] = raw.decode()
        limit = IMAGE_BYTES if kind == "image" else FILE_BYTES
        if len(content) > limit or not content:
            raise Refused(234006, "The file size exceeds the limit")
        wanted = {"image_type"} if kind == "image" else {"file_type", "file_name"}
        if set(fields) != wanted:
            raise Refused(234001, f"fields {sorted(fields)}")
        key = f"{kind}_{self.world.number()}"
        self.world.resources[key] = content
        return _data({f"{kind}_key": key})

    def _create_card(self, request: HttpRequest) -> Answer:
        return _data({"card_id": self.world.create_card(json.loads(request.body)).id})

    def _convert_id(self, request: HttpRequest) -> Answer:
        message = self._message(json.loads(request.body)["message_id"])
        if message.card is None:
            raise Refused(200750, "no card")
        return _data({"card_id": message.card})

    def _card(self, request: HttpRequest, key: str, kind: str) -> tuple[CardEntity, Any]:
        card, body = self.world.cards.get(key), json.loads(request.body)
        if card is None:
            raise Refused(200740, "no such card")
        self.world.begin(card, kind, body)
        return card, body

    def _replace_card(self, request: HttpRequest, key: str) -> Answer:
        self.world.replace_card(*self._card(request, key, "card"))
        return _data({})

    def _settings(self, request: HttpRequest, key: str) -> Answer:
        self.world.set_streaming(*self._card(request, key, "settings"))
        return _data({})

    def _set_element(self, request: HttpRequest, key: str, element: str) -> Answer:
        card, body = self._card(request, key, "element")
        self.world.set_element(card, element, body)
        return _data({})

    def _view(self, message: Sent) -> Answer:
        """Return a message as the API shows it: of a card only its title."""
        content = message.content
        if message.kind == "interactive":
            card = self.world.cards[message.card].data if message.card else json.loads(content)
            title = card.get("header", {}).get("title", {}).get("content", "")
            rows = [[{"tag": "text", "text": "Upgrade to the latest version to view the content"}]]
            content = json.dumps({"title": title, "elements": rows}, ensure_ascii=True)
        is_app = message.sender == APP
        return {
            "message_id": message.id,
            "chat_id": message.chat,
            "msg_type": message.kind,
            "create_time": str(message.at_ms),
            "deleted": message.deleted,
            "sender": {
                "id": message.sender,
                "id_type": "app_id" if is_app else "open_id",
                "sender_type": "app" if is_app else "user",
            },
            "body": {"content": content},
            **({"mentions": message.mentions} if message.mentions else {}),
            **({"parent_id": message.parent} if message.parent else {}),
            **({"thread_id": message.thread} if message.thread else {}),
        }


def _data(value: Answer) -> Answer:
    return {"code": 0, "msg": "success", "data": value}
