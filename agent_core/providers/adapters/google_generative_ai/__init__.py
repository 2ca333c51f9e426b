"""Models behind Google's Gemini API."""

from agent_core.providers.adapters.google_generative_ai.model import GoogleGenerativeAI

__all__ = ["GoogleGenerativeAI"]
