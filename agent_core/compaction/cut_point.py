"""Where to cut a conversation in two: pure."""

from collections.abc import Sequence

from agent_core.compaction.estimate import estimate_message
from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, ToolResultMessage
from agent_core.transcript import ProjectedEntry


class Cut(Value, frozen=True, kw_only=True):
    """Where the kept part begins, as places in the list that was cut."""

    kept_from: int
    turn_from: int | None = None
    """Where the turn began that the cut goes through; None: the cut lies between turns."""


def find_cut(
    placed: Sequence[ProjectedEntry], *, keep_tokens: int, pinned: EntryId | None = None
) -> Cut | None:
    """Find where to cut so that about `keep_tokens` of the newest conversation stay.

    A tool result never begins the kept part: it would stand there without its call.

    Args:
        placed: Entries as the model sees them, in order.
        keep_tokens: By estimate.
        pinned: Kept, however long it and what follows it are.

    Returns:
        None when there is nothing that the kept part could begin with.
    """
    last = next((place for place, one in enumerate(placed) if one.entry.id == pinned), len(placed))
    points = [place for place, one in enumerate(placed[: last + 1]) if _may_begin(one)]
    if not points:
        return None
    reached = _walk_back(placed, keep_tokens=keep_tokens)
    kept_from = next((point for point in points if point >= reached), points[-1])
    turn_from = None
    if not _starts_turn(placed[kept_from]):
        turns = (place for place in reversed(points[: points.index(kept_from)]))
        turn_from = next((place for place in turns if _starts_turn(placed[place])), None)
    while kept_from > 0 and placed[kept_from - 1].message is None:
        kept_from -= 1
    return Cut(kept_from=kept_from, turn_from=turn_from)


def _walk_back(placed: Sequence[ProjectedEntry], *, keep_tokens: int) -> int:
    total = 0
    for place in range(len(placed) - 1, -1, -1):
        message = placed[place].message
        total += 0 if message is None else estimate_message(message)
        if message is not None and total >= keep_tokens:
            return place
    return 0


def _may_begin(one: ProjectedEntry) -> bool:
    return one.message is not None and not isinstance(one.message, ToolResultMessage)


def _starts_turn(one: ProjectedEntry) -> bool:
    return _may_begin(one) and not isinstance(one.message, AssistantMessage)
