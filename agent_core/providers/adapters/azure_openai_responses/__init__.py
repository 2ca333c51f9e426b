"""OpenAI's models in Azure, by the Responses API."""

from agent_core.providers.adapters.azure_openai_responses.model import AzureOpenAIResponses

__all__ = ["AzureOpenAIResponses"]
