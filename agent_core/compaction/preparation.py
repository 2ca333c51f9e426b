"""Decides what would be summarised: pure."""

from collections.abc import Sequence

from agent_core.compaction.cut_point import find_cut
from agent_core.compaction.estimate import context_tokens
from agent_core.compaction.files import touched_files
from agent_core.compaction.settings import CompactionPolicy
from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import Message
from agent_core.transcript import (
    AnyEntry,
    CompactionEntry,
    CompactionPreparation,
    ProjectedEntry,
    project,
)


class NothingToCompact(Value, frozen=True, kw_only=True):
    """Compaction would change nothing."""

    why: str


def prepare(
    path: Sequence[AnyEntry],
    *,
    context_window: int,
    settings: CompactionPolicy,
    pinned: EntryId | None = None,
    overhead: int = 0,
) -> CompactionPreparation | NothingToCompact:
    """Cut the conversation into what is summarised and what is kept.

    The part that the previous compaction kept is taken up again: it may be summarised now, together with its
    summary.

    Args:
        path: Root to leaf.
        context_window: Of the model that goes on, in tokens; 0 when unknown.
        settings: As the user set them; scaled to the window here.
        pinned: An entry that stays word for word, with all that follows it.
        overhead: Tokens of the system prompt and tools, for `tokens_before`.
    """
    placed = project(path)
    earlier = placed[0].entry if placed else None
    if isinstance(earlier, CompactionEntry):
        placed = placed[1:]
        if _ends_with(path, earlier):
            return NothingToCompact(why="already compacted: nothing has been said since")
    keep = settings.scaled(context_window).keep_recent_tokens
    cut = find_cut(placed, keep_tokens=keep, pinned=pinned)
    history, prefix = _halves(placed, cut.kept_from, cut.turn_from) if cut else ((), ())
    if cut is None or not (history or prefix):
        return NothingToCompact(why="the conversation is too short to be compacted")
    before = earlier if isinstance(earlier, CompactionEntry) else None
    # What a hook wrote into the details is its own: it need not mean what ours does.
    details = before.details if before is not None and not before.from_hook else None
    files = touched_files((*history, *prefix), before=details)
    return CompactionPreparation(
        messages=history,
        turn_prefix=prefix,
        first_kept=placed[cut.kept_from].entry.id,
        tokens_before=context_tokens(path, overhead=overhead),
        previous_summary=None if before is None else before.summary,
        read_files=files.read,
        modified_files=files.modified,
    )


def _ends_with(path: Sequence[AnyEntry], compaction: CompactionEntry) -> bool:
    """Return whether nothing that the model sees has followed the compaction."""
    place = next(place for place, entry in enumerate(path) if entry is compaction)
    return not any(one.message is not None for one in project(path[place + 1 :]))


def _halves(
    placed: Sequence[ProjectedEntry], kept_from: int, turn_from: int | None
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    middle = kept_from if turn_from is None else turn_from
    return _messages(placed[:middle]), _messages(placed[middle:kept_from])


def _messages(placed: Sequence[ProjectedEntry]) -> tuple[Message, ...]:
    return tuple(one.message for one in placed if one.message is not None)
