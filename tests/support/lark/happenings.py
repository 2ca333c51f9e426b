"""Events as the platform sends them (schema 2.0)."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.lark.world import APP, BOT, Sent

Event = Mapping[str, Any]
MENTION = {"key": "@_user_1", "id": {"open_id": BOT}, "name": "Tiller", "tenant_key": "t"}


def event(kind: str, body: Mapping[str, Any], *, event_id: str, at: str) -> Event:
    header = {
        "event_id": event_id, "event_type": kind, "create_time": at, "token": "", "app_id": APP,
        "tenant_key": "t",
    }  # fmt: skip
    return {"schema": "2.0", "header": header, "event": body}


def message(sent: Sent, *, chat_type: str = "group", mentions: Any = None) -> Event:
    """A message of a person."""
    body = {
        "sender": {
            "sender_id": {"open_id": sent.sender, "union_id": "on_1", "user_id": "u1"},
            "sender_type": "user",
            "tenant_key": "t",
        },
        "message": {
            "message_id": sent.id,
            "chat_id": sent.chat,
            "chat_type": chat_type,
            "message_type": sent.kind,
            "content": sent.content,
            "create_time": str(sent.at_ms),
            **({"parent_id": sent.parent, "root_id": sent.parent} if sent.parent else {}),
            **({"thread_id": sent.thread} if sent.thread else {}),
            **({"mentions": mentions} if mentions else {}),
        },
    }
    return event("im.message.receive_v1", body, event_id=f"ev-{sent.id}", at=str(sent.at_ms))


def recall(sent: Sent) -> Event:
    body = {"message_id": sent.id, "chat_id": sent.chat, "recall_time": str(sent.at_ms + 5)}
    return event("im.message.recalled_v1", body, event_id="ev-recall", at="0")


def click(sent: Sent, value: Any, **action: Any) -> Event:
    """A click on a button of a message; times are microseconds."""
    body = {
        "operator": {"open_id": "ou_ada", "tenant_key": "t"},
        "token": "c-1",
        "action": {"tag": "button", "value": value, **action},
        "context": {"open_message_id": sent.id, "open_chat_id": sent.chat},
    }
    return event("card.action.trigger", body, event_id="ev-click", at=str(sent.at_ms * 1000))


def post(*rows: Any, title: str = "") -> str:
    return json.dumps({"title": title, "content": rows})
