"""Slack's events and clicks as events of the port. No I/O."""

import re
from typing import Final

import msgspec

from agent_core.channels.messaging.port import (
    ChatAttachment,
    InboundClick,
    InboundMessage,
    InboundRecall,
    Sender,
    Target,
)
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.values import threadsafe

MESSAGE_SUBTYPES: Final = frozenset({"", "file_share", "bot_message", "thread_broadcast"})
"""Subtypes that are messages; any other reports a change of a channel."""
_LINK: Final = re.compile(r"<(?P<url>[a-z][a-z0-9+.-]*:[^|>]+)(?:\|(?P<label>[^>]*))?>")
_NAMED: Final = re.compile(r"<[@#!](?P<id>[^|>]+)(?:\|(?P<name>[^>]*))?>")
_COMMAND: Final = re.compile(r"!(?=[a-z])")
MS: Final = 1000


def unescape(text: str) -> str:
    """Return a text without Slack's escapes: it writes `&`, `<` and `>` as entities, and no other character."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


class ButtonValue(
    msgspec.Struct, frozen=True, rename={"request": "r", "option": "o", "digest": "h"}
):
    """Value of a button, at most 2,000 characters."""

    request: str
    option: str
    digest: str


def message_id(channel: str, ts: str) -> str:
    """Return the id of a message: Slack's time stamps are unique in a channel only."""
    return f"{channel}:{ts}"


def channel_and_ts(message: str) -> tuple[str, str]:
    """Return the channel and the time stamp of a message by its id."""
    channel, _, ts = message.partition(":")
    return channel, ts


def time_ms(ts: str) -> int:
    """Return the time of a message in milliseconds since 1970; 0: its time stamp cannot be read."""
    seconds, _, fraction = ts.partition(".")
    if not (seconds.isdecimal() and (not fraction or fraction.isdecimal())):
        return 0
    return int(seconds) * MS + int((fraction or "0")[:3].ljust(3, "0"))


def plain_text(text: str, *, bot: str) -> str:
    """Return the Markdown of a text of Slack, without mentions of the bot; `!stop` is the command `/stop`."""

    def link(match: re.Match[str]) -> str:
        url, label = match["url"], match["label"]
        return url if not label or label == url else f"[{label}]({url})"

    def named(match: re.Match[str]) -> str:
        return "" if match["id"] == bot else f"@{match['name'] or match['id']}"

    plain = unescape(_NAMED.sub(named, _LINK.sub(link, text))).strip()
    return _COMMAND.sub("/", plain, count=1) if _COMMAND.match(plain) else plain


def inbound_of(event: JsonObject, *, bot: str) -> InboundMessage | InboundRecall | None:
    """Return the event of the port for an event of Slack; None: it is of another kind, or of the bot itself.

    Args:
        event: The inner event of an envelope, or a message of a history with its `channel`.
        bot: Id of the bot's user.
    """
    channel, ts = as_text(event.get("channel")), as_text(event.get("ts"))
    subtype = as_text(event.get("subtype"))
    if event.get("type") not in {"message", "app_mention"} or not channel:
        return None
    thread = as_text(event.get("thread_ts"))
    target = Target(chat=channel, thread=thread or None)
    if subtype == "message_deleted":
        deleted = as_text(event.get("deleted_ts"))
        before = as_text(as_object(event.get("previous_message")).get("thread_ts"))
        return InboundRecall(
            key=f"recall:{message_id(channel, deleted)}",
            target=Target(chat=channel, thread=before or None),
            message=message_id(channel, deleted),
            at_ms=time_ms(ts),
        )
    user, raw = as_text(event.get("user")), as_text(event.get("text"))
    if subtype not in MESSAGE_SUBTYPES or not ts or user == bot:
        return None
    return InboundMessage(
        key=message_id(channel, ts),
        target=target,
        chat_kind="direct"
        if as_text(event.get("channel_type")) == "im" or channel[0] == "D"
        else "group",
        sender=Sender(
            id=user or as_text(event.get("bot_id")),
            name=as_text(as_object(event.get("user_profile")).get("display_name")),
            is_bot=bool(event.get("bot_id")),
        ),
        text=plain_text(raw, bot=bot),
        mentioned=f"<@{bot}" in raw,
        reply_to=message_id(channel, thread) if thread and thread != ts else None,
        attachments=_attachments(event),
        at_ms=time_ms(ts),
    )


def _attachments(event: JsonObject) -> tuple[ChatAttachment, ...]:
    files = event.get("files")
    listed = files if isinstance(files, list | tuple) else ()
    return tuple(
        ChatAttachment(
            ref=as_text(file.get("id")),
            name=as_text(file.get("name")) or "file",
            mime=as_text(file.get("mimetype")) or None,
            size_bytes=size if isinstance(size := file.get("size"), int) else None,
        )
        for file in listed
        if is_object(file) and as_text(file.get("id"))
    )


def command_of(body: JsonObject, *, at_ms: int) -> InboundMessage:
    """Return the message for a slash command of the app, `/tiller stop`; it has no thread and no time of its own."""
    channel = as_text(body.get("channel_id"))
    return InboundMessage(
        key=f"command:{as_text(body.get('trigger_id'))}",
        target=Target(chat=channel),
        chat_kind="direct" if channel[:1] == "D" else "group",
        sender=Sender(id=as_text(body.get("user_id")), name=as_text(body.get("user_name"))),
        text="/" + (unescape(as_text(body.get("text"))).strip() or "help"),
        mentioned=True,
        at_ms=at_ms,
    )


def click_of(body: JsonObject) -> InboundClick | None:
    """Return the click in the body of an interaction; None: it is no click on a button of ours."""
    actions = body.get("actions")
    first = as_object(actions[0] if isinstance(actions, list | tuple) and actions else None)
    container, user = as_object(body.get("container")), as_object(body.get("user"))
    channel, ts = as_text(container.get("channel_id")), as_text(container.get("message_ts"))
    try:
        value = msgspec.json.decode(as_text(first.get("value")), type=threadsafe(ButtonValue))
    except msgspec.DecodeError:
        return None
    if body.get("type") != "block_actions" or not channel or not ts:
        return None
    return InboundClick(
        key=f"click:{as_text(body.get('trigger_id'))}",
        target=Target(chat=channel, thread=as_text(container.get("thread_ts")) or None),
        message=message_id(channel, ts),
        sender=Sender(
            id=as_text(user.get("id")), name=as_text(user.get("name") or user.get("username"))
        ),
        request=value.request,
        option=value.option,
        digest=value.digest,
        at_ms=time_ms(as_text(first.get("action_ts"))),
    )
