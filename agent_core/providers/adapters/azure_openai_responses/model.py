"""A model behind the Responses API of Azure."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.azure_openai_responses.address import deployment, responses_url
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import responses_body, session_headers
from agent_core.providers.wire.responses.stream import ResponseReader


class AzureOpenAIResponses:
    """Asks a deployment of an Azure resource."""

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
        post = HttpRequest(
            provider=model.provider,
            url=responses_url(model),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                _key(grant),
                session_headers(request, compat),
                model.headers,
                grant.headers,
            ),
            body=json.encode(
                responses_body(request, model, compat=compat, model=deployment(model))
            ),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = ResponseReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(read_parts(body, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _key(grant: RequestCredentials) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"api-key": grant.key}
