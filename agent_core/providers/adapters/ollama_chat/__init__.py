"""Models that Ollama runs, in its own words."""

from agent_core.providers.adapters.ollama_chat.model import OllamaChat

__all__ = ["OllamaChat"]
