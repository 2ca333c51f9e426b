"""Blocks of Slack for approvals. Pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent_core.channels.messaging.port import ApprovalPrompt, Settlement
from agent_core.kernel import JsonObject, JsonValue
from tiller_server.channels.slack.messages import ButtonValue

SECTION_CHARS: Final = 2_900
"""Of a section, whose limit is 3,000 characters."""
HEADER_CHARS: Final = 150
BUTTON_CHARS: Final = 75
CONTEXT_CHARS: Final = 1_000
MARKS: Final[Mapping[str, str]] = {
    "low": ":large_blue_circle:",
    "medium": ":large_yellow_circle:",
    "high": ":red_circle:",
}


def approval_blocks(prompt: ApprovalPrompt) -> list[JsonValue]:
    """Return the blocks of an approval that waits for an answer."""
    buttons: list[JsonValue] = []
    for option in prompt.options:
        value = ButtonValue(request=prompt.request, option=option.id, digest=prompt.digest)
        button: JsonObject = {
            "type": "button",
            "action_id": f"tiller-{option.id}",
            "text": {"type": "plain_text", "text": option.label[:BUTTON_CHARS]},
            "value": msgspec.json.encode(value).decode(),
        }
        if option.style != "default":
            button["style"] = option.style
        buttons.append(button)
    by_text = f"Or answer in this thread: `!approve {prompt.code}` or `!deny {prompt.code}`"
    return [*_head(prompt), {"type": "actions", "elements": buttons}, _context(by_text)]


def settled_blocks(prompt: ApprovalPrompt, settlement: Settlement) -> list[JsonValue]:
    """Return the blocks of an approval that is answered, without buttons."""
    mark = ":white_check_mark:" if settlement.allowed else ":no_entry:"
    by = f" by {escaped(settlement.by)}" if settlement.by else ""
    at = (
        f"<!date^{settlement.at_ms // 1000}^{{date_short_pretty}} {{time}}|>"
        if settlement.at_ms
        else ""
    )
    return [*_head(prompt), _context(f"{mark} {escaped(settlement.label)}{by} {at}".strip())]


def summary(prompt: ApprovalPrompt) -> str:
    """Return the text of notifications and of clients that show no blocks."""
    return f"{prompt.title}\n{prompt.body}"[:SECTION_CHARS]


def escaped(text: str) -> str:
    """Return a text that Slack shows as it is (docs.slack.dev/messaging/formatting-message-text)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _head(prompt: ApprovalPrompt) -> list[JsonValue]:
    title = f"{MARKS[prompt.risk]} {prompt.title}"[:HEADER_CHARS]
    blocks: list[JsonValue] = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": True}},
        # Markdown as the rest of the answer, with its own limit; a section would need Slack's own syntax.
        {"type": "markdown", "text": prompt.body[:SECTION_CHARS]},
    ]
    return [*blocks, _context(escaped(prompt.detail))] if prompt.detail else blocks


def _context(text: str) -> JsonObject:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text[:CONTEXT_CHARS]}]}
