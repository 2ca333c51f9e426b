"""How much room compaction leaves and keeps."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from agent_core.kernel.values import Value

RESERVE_TOKENS = 16_384
KEEP_RECENT_TOKENS = 20_000
LARGEST_SHARE = 4
"""Neither figure takes more than one part in this many of the context window."""


class ModelFigures(Value, frozen=True, kw_only=True):
    """User settings for one model; None: the value for all models."""

    reserve_tokens: int | None = None
    keep_recent_tokens: int | None = None


class CompactionPolicy(Value, frozen=True, kw_only=True):
    """User settings of compaction."""

    enabled: bool = True
    """Whether it happens by itself; by hand it always works."""
    reserve_tokens: int = RESERVE_TOKENS
    """Room that must stay free for the next question and its answer."""
    keep_recent_tokens: int = KEEP_RECENT_TOKENS
    """How much of the newest conversation is kept word for word."""
    branch_reserve_tokens: int = RESERVE_TOKENS
    """Room that stays free beside a branch that is summarised."""
    offer_branch_summary: bool = True
    """Front ends ask whether a branch that is left shall be summarised; nothing here does."""
    by_model: Mapping[str, ModelFigures] = msgspec.field(default_factory=dict[str, ModelFigures])
    """By full name, `provider/id`."""

    def of_model(self, ref: str | None) -> "CompactionPolicy":
        """Return the figures that hold for a model; None: there is none."""
        own = None if ref is None else self.by_model.get(ref)
        if own is None:
            return self
        reserve, keep = own.reserve_tokens, own.keep_recent_tokens
        return replace(
            self,
            reserve_tokens=self.reserve_tokens if reserve is None else reserve,
            keep_recent_tokens=self.keep_recent_tokens if keep is None else keep,
        )

    def scaled(self, context_window: int) -> "CompactionPolicy":
        """Fit the figures to a model.

        Args:
            context_window: In tokens; 0 when unknown, which leaves the figures as they are.
        """
        if context_window <= 0:
            return self
        most = context_window // LARGEST_SHARE
        return replace(
            self,
            reserve_tokens=min(self.reserve_tokens, most),
            keep_recent_tokens=min(self.keep_recent_tokens, most),
        )


def should_compact(tokens: int, *, context_window: int, settings: CompactionPolicy) -> bool:
    """Return whether the context is so full that it must be compacted before more is asked.

    Never for a model whose context window is unknown (0), nor when it was switched off.
    """
    if not settings.enabled or context_window <= 0:
        return False
    return tokens > context_window - settings.scaled(context_window).reserve_tokens
