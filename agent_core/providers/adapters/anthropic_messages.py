"""Models that speak Anthropic's Messages API."""

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, key_header
from agent_core.providers.model import ModelRequest
from agent_core.providers.wire.anthropic.request import VERSION, beta_headers, split_body
from agent_core.providers.wire.anthropic.stream import AnthropicReader


class AnthropicMessages(HttpModel):
    """Client of a server at `<base URL>/v1/messages`."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        base_url = self._model.base_url.rstrip("/").removesuffix("/v1")
        body = split_body(request, self._model, self._history)
        return self._post(
            grant,
            url=f"{base_url}/v1/messages",
            body=body,
            key={"anthropic-version": VERSION, **key_header(grant, "x-api-key")},
            extra=beta_headers(body.fields),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[AnthropicReader, None]:
        return AnthropicReader(self._model, clock), None
