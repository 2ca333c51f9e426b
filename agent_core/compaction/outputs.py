"""Makes room without a summary: long tool output is cut to its beginning. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.compaction.estimate import estimate_message
from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import Image, Text, ToolResultMessage, UserContent, text_of
from agent_core.transcript import AnyEntry, project

HEAD_CHARS = 1_000
"""How much of an output stays: enough to know what it was."""
LEAST_SAVED_TOKENS = 100
"""An output that would free less is left alone."""


class CutOutput(Value, frozen=True, kw_only=True):
    """Content that replaces a tool result in the model's context."""

    target: EntryId
    content: tuple[UserContent, ...]
    saved_tokens: int


def cut_outputs(path: Sequence[AnyEntry], *, free_tokens: int) -> tuple[CutOutput, ...]:
    """Choose tool results to cut, oldest first, until about so many tokens are free.

    Args:
        path: Root to leaf.
        free_tokens: By estimate.

    Returns:
        Fewer than wanted, or none, when there is not so much tool output.
    """
    chosen: list[CutOutput] = []
    for placed in project(path):
        if free_tokens <= 0:
            break
        if not isinstance(placed.message, ToolResultMessage):
            continue
        content = _beginning(placed.message)
        shorter = replace(placed.message, content=content)
        saved = estimate_message(placed.message) - estimate_message(shorter)
        if saved >= LEAST_SAVED_TOKENS:
            chosen.append(CutOutput(target=placed.entry.id, content=content, saved_tokens=saved))
            free_tokens -= saved
    return tuple(chosen)


def _beginning(result: ToolResultMessage) -> tuple[UserContent, ...]:
    text = text_of(result.content)
    pictures = sum(isinstance(part, Image) for part in result.content)
    left_out = [f"{len(text) - HEAD_CHARS} more characters"] if len(text) > HEAD_CHARS else []
    left_out += [f"{pictures} pictures"] if pictures else []
    if not left_out:
        return result.content
    note = f"[… {' and '.join(left_out)} cut to make room; call the tool again if you need them]"
    return (Text(text=f"{text[:HEAD_CHARS]}\n{note}"),)
