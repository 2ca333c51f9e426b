"""A model behind the Gemini API."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import quote, urlsplit

from agent_core.kernel import json
from agent_core.providers.auth.authenticator import Access, Grant, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.gemini.request import request_body
from agent_core.providers.wire.gemini.stream import GeminiReader

BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"


class GoogleGenerativeAI:
    """Asks a server at `<base URL>/models/<id>:streamGenerateContent`."""

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
        post = Post(
            provider=facts.provider,
            url=_url(facts),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                _key(grant),
                facts.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, facts)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = GeminiReader(facts, self._pool.clock)
        async with (
            posted(self._pool, post) as body,
            aclosing(read_parts(body, reader, facts=facts, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _url(facts: ModelFacts) -> str:
    """Return the address; without `alt=sse` the server streams one long JSON list."""
    base = (facts.base_url or BASE_URL).rstrip("/")
    if not urlsplit(base).path:
        base = f"{base}/{VERSION}"
    # A tuned model is its own kind of thing, and says so in its id.
    name = facts.id if "/" in facts.id else f"models/{facts.id}"
    return f"{base}/{quote(name)}:streamGenerateContent?alt=sse"


def _key(grant: Grant) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"x-goog-api-key": grant.key}
