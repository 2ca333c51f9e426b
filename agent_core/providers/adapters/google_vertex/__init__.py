"""Models behind Google's Vertex AI: Gemini, and Anthropic's Claude."""

from agent_core.providers.adapters.google_vertex.model import GoogleVertex
from agent_core.providers.adapters.google_vertex.tokens import AdcTokens, Ticket, TicketSource

__all__ = ["AdcTokens", "GoogleVertex", "Ticket", "TicketSource"]
