"""A model behind the Responses API of Azure."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.azure_openai_responses.address import deployment, responses_url
from agent_core.providers.auth.authenticator import Access, Grant, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body, session_headers
from agent_core.providers.wire.responses.stream import ResponseReader


class AzureOpenAIResponses:
    """Asks a deployment of an Azure resource."""

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
        compat = responses_compat(facts)
        post = Post(
            provider=facts.provider,
            url=responses_url(facts),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                _key(grant),
                session_headers(request, compat),
                facts.headers,
                grant.headers,
            ),
            body=json.encode(
                responses_body(request, facts, compat=compat, model=deployment(facts))
            ),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = ResponseReader(facts, self._pool.clock)
        async with (
            posted(self._pool, post) as body,
            aclosing(read_parts(body, reader, facts=facts, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _key(grant: Grant) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"api-key": grant.key}
