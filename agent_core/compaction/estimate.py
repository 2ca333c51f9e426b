"""How many tokens something takes, without asking a tokenizer."""

import re
from collections.abc import Iterable, Sequence
from typing import assert_never

from agent_core.kernel import json
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.transcript import (
    AnyEntry,
    CompactionEntry,
    ContextEditEntry,
    MessageEntry,
    build_context,
)

UNITS_PER_TOKEN = 4
"""Four UTF-16 units of ordinary text make about one token."""
IMAGE_UNITS = 4_800
WIDE_UNITS = 8
"""A Chinese, Japanese or Korean character may take two tokens: four of them to one would be far off."""

_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60\U00020000-\U0003ffff]+")
_ASTRAL = re.compile("[\U00010000-\U0001ffff]+")


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return _tokens(_units(text))


def estimate_message(message: Message) -> int:
    """Estimate the tokens of one message, rounded up."""
    return _tokens(_message_units(message))


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages; 0 for none."""
    return sum(estimate_message(message) for message in messages)


def context_tokens(path: Sequence[AnyEntry], *, overhead: int = 0) -> int:
    """Say how full the context is: what the provider counted last, and an estimate of what came after.

    A count from before a compaction or context edit says nothing of the context now, so without a
    newer one everything is estimated.

    Args:
        path: Root to leaf.
        overhead: Tokens of the system prompt and tools; a provider's count holds them already.
    """
    for place in range(len(path) - 1, -1, -1):
        match path[place]:
            case CompactionEntry() | ContextEditEntry():
                break
            case MessageEntry(message=AssistantMessage() as said) if _counted(said):
                newer = build_context(path[place + 1 :]).messages
                return said.usage.total + estimate_messages(newer)
            case _:
                pass
    return overhead + estimate_messages(build_context(path).messages)


def _counted(said: AssistantMessage) -> bool:
    return said.stop_reason not in {"error", "aborted"} and said.usage.total > 0


def _message_units(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage() | ToolResultMessage() | CustomMessage():
            return sum(_part_units(part) for part in message.content)
        case BashMessage():
            return _units(message.command) + _units(message.output)
        case BranchSummaryMessage() | CompactionSummaryMessage():
            return _units(message.summary)
        case _:
            assert_never(message)


def _part_units(part: UserContent | AssistantContent) -> int:
    match part:
        case Text() | Thinking():
            return _units(part.text)
        case ToolCall():
            return _units(part.name) + _units(json.encode(part.arguments).decode())
        case Image():
            return IMAGE_UNITS
        case _:
            assert_never(part)


def _units(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text) + (WIDE_UNITS - 1) * _matched(_WIDE, text) + _matched(_ASTRAL, text)


def _matched(pattern: re.Pattern[str], text: str) -> int:
    return sum(run.end() - run.start() for run in pattern.finditer(text))


def _tokens(units: int) -> int:
    return -(-units // UNITS_PER_TOKEN)
