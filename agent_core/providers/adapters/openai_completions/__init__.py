"""Models that speak OpenAI's Chat Completions, of whatever maker."""

from agent_core.providers.adapters.openai_completions.model import OpenAICompletions

__all__ = ["OpenAICompletions"]
