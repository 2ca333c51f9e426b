"""A model behind Mistral's chat endpoint."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.mistral_conversations.request import request_body
from agent_core.providers.auth.authenticator import Access, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.messages.cache_retention import retention, told_retention
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.chat.stream import ChunkReader


class MistralConversations:
    """Client of a server at `<base URL>/v1/chat/completions`, which streams the chunks of Chat Completions."""

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
        facts = self._facts
        base_url = facts.base_url.rstrip("/").removesuffix("/v1")
        post = Post(
            provider=facts.provider,
            url=f"{base_url}/v1/chat/completions",
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                {"authorization": f"Bearer {grant.key}"} if grant.key else {},
                _affinity(request, facts),
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


def _affinity(request: ModelRequest, facts: ModelFacts) -> dict[str, str]:
    """Bring the requests of one session to where their beginning is still in the cache."""
    if not request.session or retention(request, told_retention(facts)) == "none":
        return {}
    return {"x-affinity": request.session}
