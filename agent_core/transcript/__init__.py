"""The entries of a session, the tree they form, and what the model is shown of it."""

from agent_core.transcript.context import (
    ModelContext,
    ProjectedEntry,
    build_context,
    context_messages,
    project,
)
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    ColdEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    LabelEntry,
    LineLocation,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    StoredMessage,
    ThinkingChange,
    UnknownEntry,
    UsageEntry,
    WholeEntry,
)
from agent_core.transcript.preparation import CompactionPreparation
from agent_core.transcript.tree import Transcript

__all__ = [
    "AnyEntry",
    "BranchSummaryEntry",
    "ColdEntry",
    "CompactionEntry",
    "CompactionPreparation",
    "ContextEditEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Header",
    "LabelEntry",
    "LineLocation",
    "MessageEntry",
    "ModelChange",
    "ModelContext",
    "ProjectedEntry",
    "SessionNameEntry",
    "StoredMessage",
    "ThinkingChange",
    "Transcript",
    "UnknownEntry",
    "UsageEntry",
    "WholeEntry",
    "build_context",
    "context_messages",
    "project",
]
