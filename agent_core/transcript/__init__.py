"""The entries of a session, the tree they form, and what the model is shown of it."""

from agent_core.transcript.context import Context, Placed, build_context, project
from agent_core.transcript.entries import (
    AnyEntry,
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChange,
    SessionNameEntry,
    StoredMessage,
    ThinkingChange,
    UnknownEntry,
)
from agent_core.transcript.preparation import CompactionPreparation
from agent_core.transcript.tree import Transcript

__all__ = [
    "AnyEntry",
    "BranchSummaryEntry",
    "CompactionEntry",
    "CompactionPreparation",
    "Context",
    "ContextEditEntry",
    "CustomEntry",
    "CustomMessageEntry",
    "Header",
    "LabelEntry",
    "MessageEntry",
    "ModelChange",
    "Placed",
    "SessionNameEntry",
    "StoredMessage",
    "ThinkingChange",
    "Transcript",
    "UnknownEntry",
    "build_context",
    "project",
]
