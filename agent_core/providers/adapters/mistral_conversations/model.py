"""A model behind Mistral's chat endpoint."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.mistral_conversations.request import request_body
from agent_core.providers.auth.authenticator import Authenticator, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.messages.cache_retention import configured_retention, retention
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.chat.stream import ChunkReader


class MistralConversations:
    """Client of a server at `<base URL>/v1/chat/completions`, which streams the chunks of Chat Completions."""

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
        base_url = model.base_url.rstrip("/").removesuffix("/v1")
        post = HttpRequest(
            provider=model.provider,
            url=f"{base_url}/v1/chat/completions",
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                {"authorization": f"Bearer {grant.key}"} if grant.key else {},
                _affinity(request, model),
                model.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, model)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = ChunkReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(read_parts(body, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _affinity(request: ModelRequest, model: ModelInfo) -> dict[str, str]:
    """Bring the requests of one session to where their beginning is still in the cache."""
    if not request.session or retention(request, configured_retention(model)) == "none":
        return {}
    return {"x-affinity": request.session}
