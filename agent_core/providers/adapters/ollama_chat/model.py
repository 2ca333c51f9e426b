"""A model that Ollama runs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.ollama_chat.request import request_body
from agent_core.providers.adapters.ollama_chat.stream import LineReader
from agent_core.providers.auth.authenticator import Authenticator, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.ndjson import NdjsonDecoder
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent


class OllamaChat:
    """Asks a server at `<base URL>/api/chat`."""

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
        # Many write the address of its OpenAI-like side.
        base_url = model.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        post = HttpRequest(
            provider=model.provider,
            url=f"{base_url}/api/chat",
            headers=with_headers(
                {"content-type": "application/json", "accept": "application/x-ndjson"},
                {"authorization": f"Bearer {grant.key}"} if grant.key else {},
                model.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, model)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = LineReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(
                read_parts(
                    body,
                    reader,
                    model=model,
                    pool=self._pool,
                    post=post,
                    decoder=NdjsonDecoder(),
                )
            ) as parts,
        ):
            yield parts
