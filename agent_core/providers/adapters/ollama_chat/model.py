"""A model that Ollama runs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.ollama_chat.request import request_body
from agent_core.providers.adapters.ollama_chat.stream import LineReader
from agent_core.providers.auth.authenticator import Access, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.ndjson import NdjsonDecoder
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part


class OllamaChat:
    """Asks a server at `<base URL>/api/chat`."""

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
        # Many write the address of its OpenAI-like side.
        base_url = facts.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        post = Post(
            provider=facts.provider,
            url=f"{base_url}/api/chat",
            headers=with_headers(
                {"content-type": "application/json", "accept": "application/x-ndjson"},
                {"authorization": f"Bearer {grant.key}"} if grant.key else {},
                facts.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, facts)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = LineReader(facts, self._pool.clock)
        async with (
            posted(self._pool, post) as body,
            aclosing(
                read_parts(
                    body,
                    reader,
                    facts=facts,
                    pool=self._pool,
                    post=post,
                    decoder=NdjsonDecoder(),
                )
            ) as parts,
        ):
            yield parts
