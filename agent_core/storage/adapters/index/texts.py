"""The searchable text of an entry: pure.

Of tool results only the beginning is searched: they are most of a session's text, they mostly stand in the workspace's
files as well, where other searches find them, and they would bury the conversation.
"""

from collections.abc import Iterator, Mapping

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.storage.adapters.index.tokenizer import composed

SAID_CHARS = 100_000
"""How much of one message is searched."""
OUTPUT_CHARS = 200
"""How much of what a tool or command gave back is searched."""
ARGUMENTS = ("command", "path", "pattern", "query", "url")
"""Arguments of tool calls that say what the call was about."""


class IndexedText(Value, frozen=True):
    """Text of an entry that is searched; of a format without ids, the entry is None."""

    entry: str | None
    text: str


def piece_of(raw: JsonObject) -> IndexedText | None:
    """Return the text of an entry; None when there is nothing to search for in it."""
    text = "\n".join(part for part in _texts(raw) if part and not part.isspace())
    if not text:
        return None
    entry = raw.get("id")
    return IndexedText(entry if isinstance(entry, str) else None, composed(text))


def _texts(raw: JsonObject) -> Iterator[str]:
    match raw:
        case {"type": "message", "message": dict(message)}:
            yield from _texts_of_message(message)
        case {"type": "compaction" | "branch_summary", "summary": str(summary)}:
            yield summary[:SAID_CHARS]
        case {"type": "custom_message"}:
            yield _content_text(raw.get("content"))
        case {"type": "label", "label": str(label)}:
            yield label[:SAID_CHARS]
        case _:
            pass


def _texts_of_message(message: JsonObject) -> Iterator[str]:
    match message:
        case {"role": "user" | "custom" | "hookMessage"}:
            yield _content_text(message.get("content"))
        case {"role": "assistant"}:
            yield _content_text(message.get("content"))
            yield from _calls(message.get("content"))
        case {"role": "toolResult"}:
            yield _content_text(message.get("content"), most=OUTPUT_CHARS)
        case {"role": "bashExecution"}:
            yield _text(message.get("command"))
            yield _text(message.get("output"), most=OUTPUT_CHARS)
        case _:
            pass


def _content_text(content: JsonValue, *, most: int = SAID_CHARS) -> str:
    if isinstance(content, str):
        return content[:most]
    if not isinstance(content, list):
        return ""
    found: list[str] = []
    for block in content:
        match block:
            case {"type": "text", "text": str(text)} if most > 0:
                found.append(text[:most])
                most -= len(text)
            case _:
                pass
    return "\n".join(found)


def _calls(content: JsonValue) -> Iterator[str]:
    if not isinstance(content, list):
        return
    for block in content:
        match block:
            case {"type": "toolCall", "name": str(name), "arguments": Mapping() as arguments}:
                values = [_text(arguments.get(key)) for key in ARGUMENTS]
                yield " ".join((name, *filter(None, values)))
            case _:
                pass


def _text(value: JsonValue, *, most: int = SAID_CHARS) -> str:
    return value[:most] if isinstance(value, str) else ""
