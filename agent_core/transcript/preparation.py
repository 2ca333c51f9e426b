"""Plan of a compaction, as a value that both the loop and the compactor know."""

from agent_core.kernel import EntryId
from agent_core.kernel.values import Value
from agent_core.messages import Message


class CompactionPreparation(Value, frozen=True, kw_only=True):
    """A path of entries cut in two: the messages to summarise, and the first entry of the kept part."""

    messages: tuple[Message, ...]
    """Whole turns to summarise; may be empty when only a turn is split."""
    turn_prefix: tuple[Message, ...] = ()
    """The beginning of the turn that the cut goes through: summarised on its own."""
    first_kept: EntryId
    tokens_before: int
    """Tokens of the context before the compaction, as far as known or estimated."""
    previous_summary: str | None = None
    """The latest compaction's summary, to be brought up to date."""
    read_files: tuple[str, ...] = ()
    """Paths that were read and not changed in what is summarised, and before; sorted."""
    modified_files: tuple[str, ...] = ()
    """Paths that were written or edited; sorted."""
