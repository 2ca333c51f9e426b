"""A model behind Chat Completions."""

from typing_extensions import override

from agent_core.kernel import Clock
from agent_core.messages import CustomMessage, Image, ToolResultMessage, UserMessage
from agent_core.providers.adapters.openai_completions.request import split_body
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, bearer
from agent_core.providers.model import ModelInfo, ModelRequest
from agent_core.providers.wire.chat.stream import ChunkReader

COPILOT_HOST = "githubcopilot.com"


class OpenAICompletions(HttpModel):
    """Client of a server at `<base URL>/chat/completions`."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        return self._post(
            grant,
            url=f"{self._model.base_url.rstrip('/')}/chat/completions",
            body=split_body(request, self._model, self._history),
            key=bearer(grant),
            extra=_copilot_headers(request, self._model),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[ChunkReader, None]:
        return ChunkReader(self._model, clock), None


def _copilot_headers(request: ModelRequest, model: ModelInfo) -> dict[str, str]:
    """Return the headers that Copilot expects; empty for other hosts.

    They name the initiator, since only requests of a user count against the plan, and whether the request has images.
    """
    if COPILOT_HOST not in model.base_url:
        return {}
    last = request.messages[-1] if request.messages else None
    headers = {"x-initiator": "agent" if isinstance(last, ToolResultMessage) else "user"}
    if model.images and _shows_anything(request):
        headers["copilot-vision-request"] = "true"
    return headers


def _shows_anything(request: ModelRequest) -> bool:
    return any(
        isinstance(part, Image)
        for message in request.messages
        if isinstance(message, UserMessage | CustomMessage | ToolResultMessage)
        for part in message.content
    )
