"""Tools of servers that speak the Model Context Protocol."""

from agent_core.mcp.servers import Approval, Approves, McpApprovalReply, McpServers

__all__ = ["Approval", "Approves", "McpApprovalReply", "McpServers"]
