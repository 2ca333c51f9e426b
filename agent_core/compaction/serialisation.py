"""Writes a conversation as plain text that a model can summarise without taking part in it."""

from collections.abc import Iterable, Sequence
from typing import assert_never

from agent_core.compaction.estimate import estimate_text
from agent_core.kernel import json
from agent_core.messages import (
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)

RESULT_CHARS = 2_000
"""Characters of a tool's output that are kept: the following answer mostly repeats its content."""
TIGHTER_RESULT_CHARS = (500, 100)
"""Smaller limits, tried in order when the conversation does not fit otherwise."""
HEAD_SHARE = 4
"""When the text itself must be cut, one part in this many of what fits is its beginning."""


def serialise(messages: Sequence[Message], *, result_chars: int = RESULT_CHARS) -> str:
    """Write messages one after the other; thoughts are left out, long tool output is cut."""
    pieces: list[str] = []
    for message in messages:
        pieces.extend(_pieces(message, result_chars=result_chars))
    return "\n\n".join(pieces)


def serialise_within(
    messages: Sequence[Message],
    *,
    tokens: int | None,
    limits: Sequence[int] = (RESULT_CHARS, *TIGHTER_RESULT_CHARS),
) -> str:
    """Write messages so that the text fits.

    Args:
        messages: In order.
        tokens: How much may be used; None: any.
        limits: How much of each tool output is shown, tried in turn. When none fits, the middle of the
            conversation is left out and the text says so.
    """
    text, estimated = "", 0
    for limit in limits:
        text = serialise(messages, result_chars=limit)
        if tokens is None:
            return text
        estimated = estimate_text(text)
        if estimated <= tokens:
            return text
    return text if tokens is None else _without_middle(text, tokens=tokens, estimated=estimated)


def _without_middle(text: str, *, tokens: int, estimated: int) -> str:
    fits = len(text) * max(tokens, 0) // max(estimated, 1)
    head = fits // HEAD_SHARE
    tail = fits - head
    left_out = len(text) - fits
    end = text[len(text) - tail :]
    return f"{text[:head]}\n\n[… {left_out} characters left out here …]\n\n{end}"


def _pieces(message: Message, *, result_chars: int) -> Iterable[str]:
    match message:
        case UserMessage() | CustomMessage():
            yield f"[User]: {_shown(message.content)}"
        case AssistantMessage():
            if message.text.strip():
                yield f"[Assistant]: {message.text}"
            if message.tool_calls:
                yield f"[Assistant tool calls]: {'; '.join(map(_call, message.tool_calls))}"
        case ToolResultMessage():
            yield f"[Tool result]: {_cut(_shown(message.content), limit=result_chars)}"
        case BashMessage():
            output = _cut(message.output, limit=result_chars)
            yield f"[User ran a command]: {message.command}\n{output}"
        case BranchSummaryMessage() | CompactionSummaryMessage():
            yield f"[Summary of earlier work]: {message.summary}"
        case _:
            assert_never(message)


def _shown(content: tuple[UserContent, ...]) -> str:
    return "".join(_part(part) for part in content)


def _part(part: UserContent) -> str:
    match part:
        case Text():
            return part.text
        case Image():
            return f"[image {part.mime}]"
        case _:
            assert_never(part)


def _call(call: ToolCall) -> str:
    arguments = ", ".join(
        f"{key}={json.encode(value).decode()}" for key, value in call.arguments.items()
    )
    return f"{call.name}({arguments})"


def _cut(text: str, *, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[… {len(text) - limit} more characters cut]"
