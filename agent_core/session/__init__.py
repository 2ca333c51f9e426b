"""A session: its one public face, and the parts behind it."""

from agent_core.session.cancel import CancelResult
from agent_core.session.changes import FileChange
from agent_core.session.face import AgentSession, CompactReceipt
from agent_core.session.intake import Receipt
from agent_core.session.snapshot import ItemView, RunView, SessionSnapshot
from agent_core.session.views import ModelView, SessionView, ToolView

__all__ = [
    "AgentSession",
    "CancelResult",
    "CompactReceipt",
    "FileChange",
    "ItemView",
    "ModelView",
    "Receipt",
    "RunView",
    "SessionSnapshot",
    "SessionView",
    "ToolView",
]
