"""Models that speak OpenAI's Responses API, of whatever maker."""

from agent_core.providers.adapters.openai_responses.model import OpenAIResponses

__all__ = ["OpenAIResponses"]
