"""Compaction: keeps a conversation inside the model's context window by summarising its older part."""

from typing import TYPE_CHECKING

from agent_core.kernel.package_names import lazy_names

if TYPE_CHECKING:
    from agent_core.compaction.compactor import (
        Cancelled,
        Compacted,
        Compactor,
        RetryPolicy,
        SummaryUsage,
    )
    from agent_core.compaction.preparation import (
        CompactionPolicy,
        CutOutput,
        ModelFigures,
        NothingToCompact,
        context_tokens,
        cut_outputs,
        estimate_message,
        estimate_messages,
        estimate_text,
        prepare,
        should_compact,
    )

__all__ = [
    "Cancelled",
    "Compacted",
    "CompactionPolicy",
    "Compactor",
    "CutOutput",
    "ModelFigures",
    "NothingToCompact",
    "RetryPolicy",
    "SummaryUsage",
    "context_tokens",
    "cut_outputs",
    "estimate_message",
    "estimate_messages",
    "estimate_text",
    "prepare",
    "should_compact",
]

__getattr__ = lazy_names(
    __name__,
    {
        "compactor": (
            "Cancelled",
            "Compacted",
            "Compactor",
            "RetryPolicy",
            "SummaryUsage",
        ),
        "preparation": (
            "context_tokens",
            "estimate_message",
            "estimate_messages",
            "estimate_text",
            "CutOutput",
            "cut_outputs",
            "NothingToCompact",
            "prepare",
            "CompactionPolicy",
            "ModelFigures",
            "should_compact",
        ),
    },
)
