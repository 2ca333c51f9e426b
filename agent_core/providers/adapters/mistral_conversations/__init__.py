"""Models behind Mistral's own chat endpoint."""

from agent_core.providers.adapters.mistral_conversations.model import MistralConversations

__all__ = ["MistralConversations"]
