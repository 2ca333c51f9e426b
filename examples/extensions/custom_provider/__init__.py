"""A model of your own: an adapter that answers without a network, and says back what it was told."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import time_ns

from agent_core.extensions import ExtensionApi
from agent_core.messages import AssistantMessage, Text, UserMessage
from agent_core.providers import ModelInfo, ModelRequest, StreamEvent, StreamFinished, TextDelta

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Echo:
    """Says the user's last words back, a word at a time; a `Model`."""

    facts: ModelInfo

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Answer; leaving the context ends it."""
        parts = self._parts(request)
        try:
            yield parts
        finally:
            await parts.aclose()

    async def _parts(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        said = [one for one in request.messages if isinstance(one, UserMessage)]
        words = [part.text for part in said[-1].content if isinstance(part, Text)] if said else []
        text = f"You said: {' '.join(words)}"
        for word in text.split(" "):
            yield TextDelta(text=word if word == "You" else f" {word}")
        yield StreamFinished(
            message=AssistantMessage(
                content=(Text(text=text),),
                provider=self.facts.provider,
                model=self.facts.id,
                api=self.facts.api,
                stop_reason="stop",
                at_ms=time_ns() // NS_PER_MS,
            )
        )


def extension(api: ExtensionApi) -> None:
    """Register the provider."""
    api.provider(
        "echo",
        {
            "apiKey": "none",
            "models": [{"id": "parrot", "contextWindow": 32_000, "maxTokens": 4_096}],
        },
        adapter=lambda facts, _access: Echo(facts),
    )
