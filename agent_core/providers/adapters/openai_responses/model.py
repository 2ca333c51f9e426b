"""A model behind the Responses API."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.auth.authenticator import Authenticator, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body, session_headers
from agent_core.providers.wire.responses.stream import ResponseReader


class OpenAIResponses:
    """Asks a server at `<base URL>/responses`."""

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
        compat = responses_compat(model)
        key = {"authorization": f"Bearer {grant.key}"} if grant.key else {}
        post = HttpRequest(
            provider=model.provider,
            url=f"{model.base_url.rstrip('/')}/responses",
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                key,
                session_headers(request, compat),
                model.headers,
                grant.headers,
            ),
            body=json.encode(responses_body(request, model, compat=compat, model=model.id)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = ResponseReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(read_parts(body, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts
