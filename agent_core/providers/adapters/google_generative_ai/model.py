"""A model behind the Gemini API."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import quote, urlsplit

from agent_core.kernel import json
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.gemini.request import request_body
from agent_core.providers.wire.gemini.stream import GeminiReader

BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"


class GoogleGenerativeAI:
    """Asks a server at `<base URL>/models/<id>:streamGenerateContent`."""

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
        post = HttpRequest(
            provider=model.provider,
            url=_url(model),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                _key(grant),
                model.headers,
                grant.headers,
            ),
            body=json.encode(request_body(request, model)),
            secrets=grant.secrets,
            key_source=grant.source,
        )
        reader = GeminiReader(model, self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(read_parts(body, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts


def _url(model: ModelInfo) -> str:
    """Return the address; without `alt=sse` the server streams one long JSON list."""
    base = (model.base_url or BASE_URL).rstrip("/")
    if not urlsplit(base).path:
        base = f"{base}/{VERSION}"
    # A tuned model is its own kind of thing, and says so in its id.
    name = model.id if "/" in model.id else f"models/{model.id}"
    return f"{base}/{quote(name)}:streamGenerateContent?alt=sse"


def _key(grant: RequestCredentials) -> dict[str, str]:
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {"x-goog-api-key": grant.key}
