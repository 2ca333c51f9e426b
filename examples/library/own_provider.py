"""Answers in the place of a model: for tests, for demonstrations, for models that speak no API that is known."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_core import create_session
from agent_core.extensions import ExtensionApi
from agent_core.messages import AssistantMessage, Text
from agent_core.providers import ModelInfo, ModelRequest, StreamEvent, StreamFinished, TextDelta


@dataclass(frozen=True, slots=True)
class Counter:
    """Says how many messages it was sent; a `Model`."""

    facts: ModelInfo

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Answer; leaving the context ends it."""
        parts = self._parts(f"I was sent {len(request.messages)} message.")
        try:
            yield parts
        finally:
            await parts.aclose()

    async def _parts(self, text: str) -> AsyncGenerator[StreamEvent, None]:
        yield TextDelta(text=text)
        yield StreamFinished(
            message=AssistantMessage(
                content=(Text(text=text),),
                provider=self.facts.provider,
                model=self.facts.id,
                api=self.facts.api,
                stop_reason="stop",
                at_ms=0,
            )
        )


def counting(api: ExtensionApi) -> None:
    """Register the provider; no key is needed, and none is sent."""
    api.provider(
        "own",
        {"apiKey": "none", "models": [{"id": "counter"}]},
        adapter=lambda facts, _access: Counter(facts),
    )


async def main(question: str) -> None:
    """Ask it."""
    async with create_session(
        workspace=".", store="memory", extensions=[counting], model="own/counter"
    ) as session:
        await session.prompt(question)
        ended = await session.wait_idle()
    if ended is None or ended.status != "completed":
        why = ended.error.message if ended and ended.error else "it was not answered"
        sys.exit(f"no answer: {why}")
    print(ended.text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Hello."))
