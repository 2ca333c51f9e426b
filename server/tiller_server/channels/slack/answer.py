"""An answer of Slack that is shown while it grows: one message, which is replaced."""

from typing import Final

from agent_core.channels.messaging.port import Outcome, SentMessage, Target
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_text
from tiller_server.channels.slack.api import SlackApi
from tiller_server.channels.slack.messages import channel_and_ts, message_id

PLACEHOLDER: Final = "_Working …_"
NO_TEXT: Final = "_The run ended without a text._"


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

    def __init__(self, api: SlackApi, sent: SentMessage) -> None:
        self._api = api
        self._sent = sent
        self._shown = ""

    @property
    def sent(self) -> SentMessage:
        """The message."""
        return self._sent

    @property
    def resume_token(self) -> str:
        """The message and its thread."""
        return f"{self._sent.message}|{self._sent.thread or ''}"

    async def set_text(self, text: str) -> None:
        """Show the text so far."""
        await self._show(text if text.strip() else PLACEHOLDER)

    async def finish(self, text: str, outcome: Outcome) -> None:
        """Show the whole text."""
        _ = outcome  # the text and the reaction say how the run ended
        await self._show(text if text.strip() else NO_TEXT)

    async def _show(self, text: str) -> None:
        if text == self._shown:
            return
        channel, ts = channel_and_ts(self._sent.message)
        _ = await self._api.call("chat.update", channel=channel, ts=ts, markdown_text=text)
        self._shown = text


def resumed(api: SlackApi, resume_token: str) -> SlackAnswer:
    """Return the answer that another process had opened."""
    message, _, thread = resume_token.partition("|")
    return SlackAnswer(api, SentMessage(message=message, thread=thread or None))
