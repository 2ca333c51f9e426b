"""A model behind Chat Completions."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.openai_completions.copilot import copilot_headers
from agent_core.providers.adapters.openai_completions.request import request_body
from agent_core.providers.auth.authenticator import Access, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.chat.stream import ChunkReader


class OpenAICompletions:
    """Asks a server at `<base URL>/chat/completions`."""

    def __init__(self, facts: ModelFacts, *, access: Access, pool: HttpPool) -> None:
        self._facts = facts
        self._access = access
        self._pool = pool

    @property
    def facts(self) -> ModelFacts:
        """Facts about the model."""
        return self._facts

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncGenerator[Part, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        grant = await self._access.grant()
        key = {"authorization": f"Bearer {grant.key}"} if grant.key else {}
        facts = self._facts
        post = Post(
            provider=facts.provider,
            url=f"{facts.base_url.rstrip('/')}/chat/completions",
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                key,
                copilot_headers(request, facts),
                facts.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, facts)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = ChunkReader(facts, self._pool.clock)
        async with (
            posted(self._pool, post) as body,
            aclosing(read_parts(body, reader, facts=facts, pool=self._pool, post=post)) as parts,
        ):
            yield parts
