"""Models that speak Anthropic's Messages."""

from agent_core.providers.adapters.anthropic_messages.model import AnthropicMessages

__all__ = ["AnthropicMessages"]
