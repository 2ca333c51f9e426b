"""Tools of servers that speak the Model Context Protocol."""

from agent_core.mcp.servers import Approval, Approves, McpServers, Reply

__all__ = ["Approval", "Approves", "McpServers", "Reply"]
