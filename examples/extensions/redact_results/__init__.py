"""Takes secrets out of what tools give back, before the model, the file and the editor see it."""

import re
from dataclasses import replace

from agent_core.extensions import ExtensionApi
from agent_core.hooks import GoOn, ResultReplaced, ToolResultOutcome, ToolReturned
from agent_core.kernel import JsonValue
from agent_core.messages import Text

HIDDEN = "[redacted]"
SECRETS = (
    re.compile(r"\b(?:sk|pk|rk)[-_](?:live|test|proj)[-_][A-Za-z0-9_-]{8,}"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"(?<=password=)\S+", re.IGNORECASE),
)


def hidden(text: str) -> str:
    """Give a text without what looks like a secret."""
    for pattern in SECRETS:
        text = pattern.sub(HIDDEN, text)
    return text


def hidden_json(value: JsonValue) -> JsonValue:
    """Give a value without what looks like a secret."""
    match value:
        case str():
            return hidden(value)
        case dict():
            return {name: hidden_json(one) for name, one in value.items()}
        case list():
            return [hidden_json(one) for one in value]
        case _:
            return value


def extension(api: ExtensionApi) -> None:
    """Register it. A plain function runs in a thread: long results hold up nobody."""

    @api.on(ToolReturned)
    def redact(event: ToolReturned) -> ToolResultOutcome:
        content = tuple(
            replace(part, text=hidden(part.text)) if isinstance(part, Text) else part
            for part in event.content
        )
        details = hidden_json(event.details)
        if content == event.content and details == event.details:
            return GoOn()
        return ResultReplaced(content=content, details=details)
