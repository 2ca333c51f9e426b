"""Bounds and cleans the results of tools, whatever the tool did. Pure. Hidden characters of a text are written out."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agent_core.kernel import JsonValue
from agent_core.kernel.json import scrub
from agent_core.kernel.truncation import DEFAULT_MAX_BYTES, byte_count, cut_bytes, format_size
from agent_core.kernel.visible_text import for_model
from agent_core.messages import Image, Text, UserContent
from agent_core.tools.port import ToolResult

NOTICE_BYTES = 4_096
"""Bytes that a tool may add to the bounded text: its notices and its last line."""


def shaped(result: ToolResult) -> ToolResult:
    """Return a result whose words fit the bound and can be encoded.

    Tools bound their own output in their own way; this holds for those that do not.
    """
    content = tuple(_scrubbed(part) for part in result.content)
    total = sum(byte_count(part.text) for part in content if isinstance(part, Text))
    if total > DEFAULT_MAX_BYTES + NOTICE_BYTES:
        content = _cut(content, total=total)
    return replace(result, content=content, details=scrub_json(result.details))


def _scrubbed(part: UserContent) -> UserContent:
    if isinstance(part, Image):
        return part
    text = for_model(scrub(part.text))
    return part if text == part.text else replace(part, text=text)


def _cut(content: Sequence[UserContent], *, total: int) -> tuple[UserContent, ...]:
    room = DEFAULT_MAX_BYTES
    kept: list[UserContent] = []
    for part in content:
        if isinstance(part, Image):
            kept.append(part)
            continue
        text = cut_bytes(part.text, room)
        room -= byte_count(text)
        if text:
            kept.append(replace(part, text=text))
    limit = format_size(DEFAULT_MAX_BYTES)
    kept.append(
        Text(text=f"\n\n[Output cut: the first {limit} of {format_size(total)} are shown.]")
    )
    return tuple(kept)


def scrub_json(value: JsonValue) -> JsonValue:
    """Return JSON that every encoding takes: lone surrogates in its texts become U+FFFD."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {scrub(key): scrub_json(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [scrub_json(item) for item in value]
    return value
