"""Asks a model for extensions."""

from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, Text, UserMessage
from agent_core.providers import Model, ModelRequest, StreamFinished


async def ask_model(
    model: Model, prompt: str, *, system: str, max_tokens: int | None, at_ms: int
) -> AssistantMessage:
    """Ask, and give the whole answer.

    Raises:
        ProviderError: There is none.
    """
    request = ModelRequest(
        system=system,
        messages=(UserMessage(content=(Text(text=prompt),), at_ms=at_ms),),
        max_tokens=max_tokens,
    )
    async with model.stream(request) as parts:
        async for part in parts:
            if isinstance(part, StreamFinished):
                return part.message
    raise ProviderError(
        "the answer ended before it was whole", reason="protocol", provider=model.facts.provider
    )
