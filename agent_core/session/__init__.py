"""A session: its one public face, and the parts behind it."""

from agent_core.session.history.branches import Forked, Navigated
from agent_core.session.history.compaction_request import CompactReceipt
from agent_core.session.history.entries import TreeNode
from agent_core.session.history.tree import TreeView
from agent_core.session.input.submission import Receipt
from agent_core.session.runs.cancel import CancelResult
from agent_core.session.session import AgentSession
from agent_core.session.snapshot import (
    Activities,
    ContextUsage,
    ItemView,
    RunView,
    SessionSnapshot,
    SessionStats,
)
from agent_core.session.tools.user_bash import BashResult
from agent_core.session.views import ModelView, SessionView, ToolView

__all__ = [
    "Activities",
    "AgentSession",
    "BashResult",
    "CancelResult",
    "CompactReceipt",
    "ContextUsage",
    "Forked",
    "ItemView",
    "ModelView",
    "Navigated",
    "Receipt",
    "RunView",
    "SessionSnapshot",
    "SessionStats",
    "SessionView",
    "ToolView",
    "TreeNode",
    "TreeView",
]
