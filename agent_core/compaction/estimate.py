"""How many tokens something takes, without asking a tokenizer."""

import re
import string
from collections.abc import Iterable, Sequence
from typing import assert_never

from agent_core.kernel import EntryId, json
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
    context_messages,
)

UNITS_PER_TOKEN = 4
"""Everything is weighed in quarters of a token. Weights: measured on tests/compaction/corpus."""
LETTER = 1
DIGIT = 3
MARK = 2
"""Punctuation: programs and JSON are mostly that, and take more tokens than prose of their length."""
LINE_END = 4
"""With the indentation that follows; a space between words goes with the word."""
FOREIGN_LETTER = 2
"""Latin letters with accents, Cyrillic, Greek and the like."""
WIDE = 3
"""A Chinese, Japanese or Korean character."""
EMOJI = 4
IMAGE_UNITS = 4_800

_SLICE_CHARS = 1_000_000
_LETTERS = string.ascii_letters.encode()
_DIGITS = string.digits.encode()
_LINE_ENDS = b"\n\r\t"
_FOREIGN = re.compile("[\x80-\u1fff]+")
_EMOJI = re.compile("[\U0001f000-\U0001ffff]+")


def estimate_text(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return _tokens(_units(text))


def estimate_message(message: Message) -> int:
    """Estimate the tokens of one message, rounded up."""
    return _tokens(_message_units(message))


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages; 0 for none."""
    return sum(map(estimate_message, messages))


def context_tokens(path: Sequence[AnyEntry], *, overhead: int = 0) -> int:
    """Return the tokens in the context: the provider's last count plus an estimate of the messages after it.

    A count from before a compaction or context edit is not valid for the current context; without a newer one,
    everything is estimated.

    Args:
        path: Root to leaf.
        overhead: Tokens of the system prompt and tools; a provider's count holds them already.
    """
    edited: set[EntryId] = set()
    for place in range(len(path) - 1, -1, -1):
        match path[place]:
            case CompactionEntry():
                break
            case ContextEditEntry(target=target):
                edited.add(target)
            case MessageEntry(message=AssistantMessage() as said) if _counted(said):
                newer = path[place + 1 :]
                # An attempt that failed after the count and was left out was never in the count.
                if not edited <= {entry.id for entry in newer}:
                    break
                return said.usage.total + estimate_messages(context_messages(newer))
            case _:
                pass
    return overhead + estimate_messages(context_messages(path))


def _counted(said: AssistantMessage) -> bool:
    return said.stop_reason not in {"error", "aborted"} and said.usage.total > 0


def _message_units(message: Message) -> int:
    match message:
        case UserMessage() | AssistantMessage() | ToolResultMessage() | CustomMessage():
            return sum(map(_part_units, message.content))
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
    # In slices: one step on a text of 100 MB would hold up all other threads for as long as it takes.
    if len(text) <= _SLICE_CHARS:
        return _slice_units(text)
    return sum(
        _slice_units(text[at : at + _SLICE_CHARS]) for at in range(0, len(text), _SLICE_CHARS)
    )


def _slice_units(text: str) -> int:
    # Counting by deletion runs at the speed of memory; a loop over characters would hold up the event loop.
    # Most of a text is letters: each step has only what the one before it left.
    plain = text.encode("ascii", "ignore")
    no_letters = plain.translate(None, _LETTERS)
    no_digits = no_letters.translate(None, _DIGITS)
    no_ends = no_digits.translate(None, _LINE_ENDS)
    letters = len(plain) - len(no_letters)
    digits = len(no_letters) - len(no_digits)
    ends = len(no_digits) - len(no_ends)
    marks = len(no_ends) - no_ends.count(b" ")
    units = letters * LETTER + digits * DIGIT + ends * LINE_END + marks * MARK
    beyond = len(text) - len(plain)
    if not beyond:
        return units
    foreign, emoji = _matched(_FOREIGN, text), _matched(_EMOJI, text)
    wide = beyond - foreign - emoji
    return units + foreign * FOREIGN_LETTER + emoji * EMOJI + wide * WIDE


def _matched(pattern: re.Pattern[str], text: str) -> int:
    return sum(run.end() - run.start() for run in pattern.finditer(text))


def _tokens(units: int) -> int:
    return -(-units // UNITS_PER_TOKEN)
