"""Models behind Google's Gemini API."""

from urllib.parse import quote, urlsplit

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, key_header
from agent_core.providers.model import ModelInfo, ModelRequest
from agent_core.providers.wire.gemini.request import request_body
from agent_core.providers.wire.gemini.stream import GeminiReader

BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"


class GoogleGenerativeAI(HttpModel):
    """Client of a server at `<base URL>/models/<id>:streamGenerateContent`."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        return self._post(
            grant,
            url=_url(self._model),
            body=request_body(request, self._model),
            key=key_header(grant, "x-goog-api-key"),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[GeminiReader, None]:
        return GeminiReader(self._model, clock), None


def _url(model: ModelInfo) -> str:
    """Return the address; without `alt=sse` the server streams one long JSON list."""
    base = (model.base_url or BASE_URL).rstrip("/")
    if not urlsplit(base).path:
        base = f"{base}/{VERSION}"
    # A tuned model is its own kind of thing, and says so in its id.
    name = model.id if "/" in model.id else f"models/{model.id}"
    return f"{base}/{quote(name)}:streamGenerateContent?alt=sse"
