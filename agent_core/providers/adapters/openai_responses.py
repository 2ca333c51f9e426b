"""Models that speak OpenAI's Responses API, of whatever maker."""

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, bearer
from agent_core.providers.model import ModelRequest
from agent_core.providers.wire.responses.compat import responses_compat
from agent_core.providers.wire.responses.request import session_headers, split_body
from agent_core.providers.wire.responses.stream import ResponseReader


class OpenAIResponses(HttpModel):
    """Client of a server at `<base URL>/responses`."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        model = self._model
        compat = responses_compat(model)
        return self._post(
            grant,
            url=f"{model.base_url.rstrip('/')}/responses",
            body=split_body(request, model, self._history, compat=compat, model=model.id),
            key=bearer(grant),
            extra=session_headers(request, compat),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[ResponseReader, None]:
        return ResponseReader(self._model, clock), None
