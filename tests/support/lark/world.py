"""Chats, messages and cards of the fake platform, with its rules about them.

Each rule is from the documentation of the open platform unless it cites something else.
"""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_core.kernel import Clock
from tests.support.lark.card_schema import CARD_BYTES, CardRefused, check_card, elements

APP = "cli_app"
BOT = "ou_bot"
TEXT_BYTES = 150 * 1024
UUID_S = 3600
STREAM_S = 600
CARD_DAYS_S = 14 * 24 * 3600
EDITS = 20


class Refused(Exception):
    """An answer with a code."""

    def __init__(self, code: int, message: str = "", *, status: int = 400, **headers: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(kw_only=True)
class Sent:
    """A message."""

    id: str
    chat: str
    kind: str
    content: str
    at_ms: int
    sender: str = APP
    parent: str | None = None
    thread: str | None = None
    card: str | None = None
    deleted: bool = False
    mentions: list[Any] = field(default_factory=list)
    reactions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Author and name by id."""


@dataclass(kw_only=True)
class CardEntity:
    """A card of CardKit."""

    id: str
    data: dict[str, Any]
    created_ms: int
    window_ms: int
    is_streaming: bool
    sequence: int = 0
    has_expired: bool = False
    is_sent: bool = False
    operations: list[tuple[str, int]] = field(default_factory=list)
    """Kind and sequence of each applied call."""


class World:
    """What the platform stores."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.messages: dict[str, Sent] = {}
        self.cards: dict[str, CardEntity] = {}
        self.chats: dict[str, str] = {"oc_group": "group", "oc_direct": "p2p"}
        self.people = {"ou_ada": "Ada", "ou_bob": "Bob"}
        self.resources: dict[str, bytes | int] = {}
        """Files by key; a number is the size of one that is made up on the way."""
        self.uuids: dict[str, tuple[str, int]] = {}
        self.edits: Counter[str] = Counter()
        self.enforces_rates = False
        self.accepts_cards = True
        self._recent: defaultdict[str, deque[float]] = defaultdict(deque)
        self._numbers = 0

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def limit(self, key: str, count: int, seconds: float, code: int) -> None:
        """Refuse more than some calls in a time."""
        if not self.enforces_rates:
            return
        now, recent = self.clock.monotonic_s(), self._recent[key]
        while recent and recent[0] <= now - seconds:
            recent.popleft()
        if len(recent) >= count:
            reset = max(0.0, recent[0] + seconds - now)
            raise Refused(code, "rate limit", status=429, x_ogw_ratelimit_reset=f"{reset:.3f}")
        recent.append(now)

    def say(self, chat: str, text: str, **fields: Any) -> Sent:
        """Store a message of a person."""
        content = json.dumps({"text": text}, ensure_ascii=False)
        fields = {"kind": "text", "content": content, "sender": "ou_ada", **fields}
        message = Sent(id=f"om_{self.number()}", chat=chat, at_ms=self.clock.now_ms(), **fields)
        self.messages[message.id] = message
        return message

    def send(self, chat: str, body: dict[str, Any], parent: Sent | None = None) -> Sent:
        """Store a message of the bot; the same one for a uuid of the last hour."""
        if chat not in self.chats:
            raise Refused(230002, "Bot is not in the chat")
        self.limit(f"chat {chat}", 5, 1, 230020)
        uuid = body.get("uuid")
        if uuid and len(uuid) > 50:
            raise Refused(230001, "uuid is too long")
        if uuid in self.uuids:
            message, at_ms = self.uuids[uuid]
            if self.clock.now_ms() - at_ms < UUID_S * 1000:
                return self.messages[message]
        card = self._check_content(body["msg_type"], body["content"])
        thread = parent.thread if parent else None
        if parent and body.get("reply_in_thread") and thread is None:
            thread = parent.thread = f"omt_{parent.id}"
        message = Sent(
            id=f"om_{self.number()}", chat=chat, kind=body["msg_type"], content=body["content"],
            at_ms=self.clock.now_ms(), parent=parent.id if parent else None, thread=thread,
            card=card,
        )  # fmt: skip
        self.messages[message.id] = message
        if uuid:
            self.uuids[uuid] = (message.id, message.at_ms)
        return message

    def _check_content(self, kind: str, text: str) -> str | None:
        """Check a content; returns the card entity that it shows."""
        content = json.loads(text)
        limit = TEXT_BYTES if kind == "text" else CARD_BYTES
        if len(text.encode()) > limit:
            raise Refused(230025, "The content is too long")
        if kind in {"image", "file"} and content[f"{kind}_key"] not in self.resources:
            raise Refused(230001, "invalid key")
        if kind == "post" and not content["zh_cn"]["content"]:
            raise Refused(230001, "empty")
        if kind != "interactive":
            return None
        if not self.accepts_cards:
            raise Refused(230099, "Failed to create card content")
        if content.get("type") != "card":
            self._checked(text)
            return None
        card = self.cards[content["data"]["card_id"]]
        if card.is_sent:
            raise Refused(230099, "The card was sent already")
        card.is_sent = True
        return card.id

    def edit(self, message: Sent, body: dict[str, Any]) -> None:
        if message.kind not in {"text", "post"}:
            raise Refused(230054, "not a text")
        if self.edits[message.id] >= EDITS:
            raise Refused(230072, "The message has been edited 20 times")
        self._check_content(body["msg_type"], body["content"])
        self.edits[message.id] += 1
        message.kind, message.content = body["msg_type"], body["content"]

    def redraw(self, message: Sent, text: str) -> None:
        self.limit(f"message {message.id}", 5, 1, 230020)
        if message.kind != "interactive":
            raise Refused(230054, "not a card")
        if self.clock.now_ms() - message.at_ms > CARD_DAYS_S * 1000:
            raise Refused(230031, "The card is older than 14 days")
        self._checked(text)
        message.content = text

    def create_card(self, body: dict[str, Any]) -> CardEntity:
        if not self.accepts_cards:
            raise Refused(99991672, "Access denied: cardkit:card:write")
        data, now_ms = self._checked(body["data"]), self.clock.now_ms()
        card = CardEntity(
            id=f"card_{self.number()}", data=data, created_ms=now_ms, window_ms=now_ms,
            is_streaming=data.get("config", {}).get("streaming_mode", False),
        )  # fmt: skip
        self.cards[card.id] = card
        return card

    def begin(self, card: CardEntity, kind: str, body: dict[str, Any]) -> None:
        """Check what all calls of a card have in common."""
        self.limit(f"card {card.id}", 10, 1, 200810)
        if self.clock.now_ms() - card.created_ms > CARD_DAYS_S * 1000:
            raise Refused(200740, "The card has expired")
        sequence = body.get("sequence", 0)
        if not isinstance(sequence, int) or not card.sequence < sequence < 2**31:
            raise Refused(300317, "sequence number compare failed")
        card.sequence = sequence
        card.operations.append((kind, sequence))

    def replace_card(self, card: CardEntity, body: dict[str, Any]) -> None:
        data = self._checked(body["card"]["data"])
        wants = data.get("config", {}).get("streaming_mode", False)
        card.is_streaming = wants and not self._is_over(card)
        card.data = data

    def set_streaming(self, card: CardEntity, body: dict[str, Any]) -> None:
        card.is_streaming = json.loads(body["settings"])["config"]["streaming_mode"]
        card.data["config"]["streaming_mode"] = card.is_streaming
        if card.is_streaming:
            card.window_ms, card.has_expired = self.clock.now_ms(), False

    def set_element(self, card: CardEntity, element: str, body: dict[str, Any]) -> None:
        if card.is_streaming and self._is_over(card):
            # First 200850, then 300309 for each write.
            card.is_streaming = False
            raise Refused(200850, "card streaming timeout")
        if not card.is_streaming:
            raise Refused(300309, "streaming mode is closed")
        if not body["content"]:
            raise Refused(99992402, "content is required")
        for entry in elements(card.data["body"]["elements"]):
            if entry.get("element_id") == element:
                entry["content"] = body["content"]
                if len(json.dumps(card.data, ensure_ascii=False).encode()) > CARD_BYTES:
                    raise Refused(300305, "the card is too large")
                return
        raise Refused(300313, "element not found")

    def in_container(self, kind: str, container: str) -> Iterator[Sent]:
        for message in self.messages.values():
            if kind == "thread" and message.thread == container:
                yield message
            # The flow of a chat shows of a thread its root alone.
            is_root = message.thread is None or message.thread == f"omt_{message.id}"
            if kind == "chat" and message.chat == container and is_root:
                yield message

    def _is_over(self, card: CardEntity) -> bool:
        return self.clock.now_ms() - card.window_ms >= STREAM_S * 1000

    def _checked(self, text: str) -> dict[str, Any]:
        try:
            return check_card(text)
        except CardRefused as error:
            raise Refused(error.code, str(error)) from None
