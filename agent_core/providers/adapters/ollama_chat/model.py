"""A model that Ollama runs."""

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.providers.adapters.ollama_chat.request import request_body
from agent_core.providers.adapters.ollama_chat.stream import LineReader
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import NdjsonDecoder
from agent_core.providers.http_model import HttpModel, bearer
from agent_core.providers.model import ModelRequest


class OllamaChat(HttpModel):
    """Client of a server at `<base URL>/api/chat`."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        # Many write the address of its OpenAI-like side.
        base_url = self._model.base_url.rstrip("/").removesuffix("/v1").removesuffix("/api")
        return self._post(
            grant,
            url=f"{base_url}/api/chat",
            body=request_body(request, self._model),
            key=bearer(grant),
            accept="application/x-ndjson",
        )

    @override
    def _reader(self, clock: Clock) -> tuple[LineReader, NdjsonDecoder]:
        return LineReader(self._model, clock), NdjsonDecoder()
