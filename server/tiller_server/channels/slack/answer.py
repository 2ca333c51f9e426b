"""An answer of Slack that is shown while it grows: one message, which is replaced, and others for the rest of a long text."""

from typing import Final

from agent_core.channels.messaging.delivery.text_parts import text_parts
from agent_core.channels.messaging.port import Outcome, SentMessage, Target
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_text
from tiller_server.channels.slack.api import SlackApi
from tiller_server.channels.slack.messages import channel_and_ts, message_id

TEXT_BYTES: Final = 11_000
"""Of a message; `markdown_text` may have 12,000 characters."""
PLACEHOLDER: Final = "_Working …_"
NO_TEXT: Final = "_The run ended without a text._"
CUT: Final = "_… the beginning is shown at the end of the run._\n\n"


def marked(key: str) -> JsonObject:
    """Return the metadata by which a message of ours is found again: Slack does not recognise repetitions."""
    return {"event_type": "tiller_message", "event_payload": {"key": key}}


async def post_markdown(
    api: SlackApi, target: Target, text: str, *, key: str, thread: str | None
) -> SentMessage:
    """Send a message of Markdown."""
    sent = await api.call(
        "chat.postMessage",
        channel=target.chat,
        markdown_text=text,
        thread_ts=thread,
        unfurl_links=False,
        unfurl_media=False,
        metadata=marked(key),
    )
    return SentMessage(message=message_id(target.chat, as_text(sent.get("ts"))), thread=thread)


class SlackAnswer:
    """A running answer. Its message is replaced as a whole: repeating an update is harmless."""

    def __init__(self, api: SlackApi, sent: SentMessage, *, key: str, posted: int = 0) -> None:
        """Create it for a message that was sent.

        Args:
            api: The Web API.
            sent: The message.
            key: Key of the message; those of the others are made from it.
            posted: Number of messages for the rest that were confirmed.
        """
        self._api = api
        self._sent = sent
        self._key = key
        self._posted = posted
        self._shown = ""

    @property
    def sent(self) -> SentMessage:
        """The first message."""
        return self._sent

    @property
    def resume_token(self) -> str:
        """The message, its thread, and how many messages for the rest were sent."""
        return f"{self._sent.message}|{self._sent.thread or ''}|{self._posted}"

    async def set_text(self, text: str) -> None:
        """Show the end of the text so far."""
        await self._show(_tail(text) if text.strip() else PLACEHOLDER)

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the whole text, in as many messages as it needs."""
        _ = outcome  # the text and the reaction say how the run ended
        first, *rest = text_parts(text, limit_bytes=TEXT_BYTES) if text.strip() else (NO_TEXT,)
        await self._show(first)
        channel, ts = channel_and_ts(self._sent.message)
        # In the thread of the answer, or in its own: the main flow of a channel shows one message of a run.
        thread = self._sent.thread or (None if channel.startswith("D") else ts)
        for number, part in enumerate(rest):
            if number < self._posted:
                continue
            key = f"{self._key}.{number}"
            _ = await post_markdown(self._api, Target(chat=channel), part, key=key, thread=thread)
            self._posted = number + 1

    async def _show(self, text: str) -> None:
        if text == self._shown:
            return
        channel, ts = channel_and_ts(self._sent.message)
        _ = await self._api.call("chat.update", channel=channel, ts=ts, markdown_text=text)
        self._shown = text


def resumed(api: SlackApi, resume_token: str, *, key: str) -> SlackAnswer:
    """Return the answer that another process had opened."""
    message, thread, posted = resume_token.split("|")
    return SlackAnswer(
        api, SentMessage(message=message, thread=thread or None), key=key, posted=int(posted)
    )


def _tail(text: str) -> str:
    if len(text.encode()) <= TEXT_BYTES:
        return text
    end = text.encode()[-(TEXT_BYTES - len(CUT.encode())) :].decode(errors="ignore")
    _, _, whole_lines = end.partition("\n")
    whole = whole_lines or end
    is_in_code = text.removesuffix(whole).count("\n```") % 2 == 1
    return CUT + ("```\n" if is_in_code else "") + whole
