"""Extensions: third-party code that handles hooks, contributes tools and commands, and shows dialogs and views.

An extension is a file with `def extension(api)`, or `async def`. Its events are defined in `agent_core.hooks`, the
base class of its tools' arguments in `agent_core.tools.arguments`.
"""

from agent_core.extensions.api import ExtensionApi
from agent_core.extensions.context import (
    CommandContext,
    Context,
    ExtensionModelList,
    ExtensionSession,
    ToolCallContext,
)
from agent_core.extensions.scope import ExecResult
from agent_core.extensions.ui import ListView, Row, TableView, TextView, View
from agent_core.kernel.errors import ContextStale, ExtensionBroken, Unsupported
from agent_core.providers.auth.oauth import DeviceFacts, LoginFunctions, PkceFacts, StoredTokens
from agent_core.resources.offers import Completion
from agent_core.tools import ToolResult, error_result, text_result
from agent_core.tools.arguments import ToolArguments
from agent_core.tools.port import ToolInfo

__all__ = [
    "CommandContext",
    "Completion",
    "Context",
    "ContextStale",
    "DeviceFacts",
    "ExecResult",
    "ExtensionApi",
    "ExtensionBroken",
    "ExtensionModelList",
    "ExtensionSession",
    "ListView",
    "LoginFunctions",
    "PkceFacts",
    "Row",
    "StoredTokens",
    "TableView",
    "TextView",
    "ToolArguments",
    "ToolCallContext",
    "ToolInfo",
    "ToolResult",
    "Unsupported",
    "View",
    "error_result",
    "text_result",
]
