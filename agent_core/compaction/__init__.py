"""Compaction: keeps a conversation inside the model's context window by summarising its older part."""

from agent_core.compaction.compactor import (
    Cancelled,
    Compacted,
    Compactor,
    RetryPolicy,
    SummaryUsage,
)
from agent_core.compaction.estimate import (
    context_tokens,
    estimate_message,
    estimate_messages,
    estimate_text,
)
from agent_core.compaction.outputs import CutOutput, cut_outputs
from agent_core.compaction.preparation import NothingToCompact, prepare
from agent_core.compaction.settings import CompactionPolicy, ModelFigures, should_compact

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
