from agent_core.assembly import create_session, export_session
from agent_core.events import Event, EventEnvelope, RunResult
from agent_core.hooks import Hook, HookTable
from agent_core.kernel.errors import TillerError
from agent_core.messages import File, Image, Text
from agent_core.session import AgentSession, CancelResult, Receipt, SessionSnapshot
from agent_core.storage import SessionStore
from agent_core.tools import Tool, ToolContext, ToolResult, ToolSpec
from agent_core.workspace import Files, Processes, Workspace

__all__ = [
    "AgentSession",
    "CancelResult",
    "Event",
    "EventEnvelope",
    "File",
    "Files",
    "Hook",
    "HookTable",
    "Image",
    "Processes",
    "Receipt",
    "RunResult",
    "SessionSnapshot",
    "SessionStore",
    "Text",
    "TillerError",
    "Tool",
    "ToolContext",
    "ToolResult",
    "ToolSpec",
    "Workspace",
    "create_session",
    "export_session",
]
