"""A model behind the Messages API."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.anthropic.request import beta_headers, request_body
from agent_core.providers.wire.anthropic.stream import AnthropicReader

VERSION = "2023-06-01"


class AnthropicMessages:
    """Asks a server at `<base URL>/v1/messages`."""

    def __init__(self, model: ModelInfo, *, access: Authenticator, pool: HttpPool) -> None:
        self._model = model
        self._access = access
        self._pool = pool

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return self._model

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        grant = await self._access.credentials()
        model = self._model
        body = request_body(request, model)
        base_url = model.base_url.rstrip("/").removesuffix("/v1")
        post = HttpRequest(
            provider=model.provider,
            url=f"{base_url}/v1/messages",
            headers=with_headers(
                {
                    "content-type": "application/json",
                    "accept": "text/event-stream",
                    "anthropic-version": VERSION,
                },
                _key(grant),
                beta_headers(body),
                model.headers,
                grant.headers,
            ),
            body=json.encode(body),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = AnthropicReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as answer,
            aclosing(read_parts(answer, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _key(grant: RequestCredentials) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"x-api-key": grant.key}
