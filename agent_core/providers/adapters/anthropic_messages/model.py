"""A model behind the Messages API."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.auth.authenticator import Access, Grant, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.anthropic.request import beta_headers, request_body
from agent_core.providers.wire.anthropic.stream import EventReader

VERSION = "2023-06-01"


class AnthropicMessages:
    """Asks a server at `<base URL>/v1/messages`."""

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
        body = request_body(request, facts)
        base_url = facts.base_url.rstrip("/").removesuffix("/v1")
        post = Post(
            provider=facts.provider,
            url=f"{base_url}/v1/messages",
            headers=with_headers(
                {
                    "content-type": "application/json",
                    "accept": "text/event-stream",
                    "anthropic-version": VERSION,
                },
                _key(grant),
                beta_headers(body),
                facts.headers,
                grant.headers,
            ),
            body=json.encode(body),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = EventReader(facts, self._pool.clock)
        async with (
            posted(self._pool, post) as answer,
            aclosing(read_parts(answer, reader, facts=facts, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _key(grant: Grant) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"x-api-key": grant.key}
