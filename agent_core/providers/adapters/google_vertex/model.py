"""A model behind Vertex AI."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.google_vertex.address import (
    is_claude,
    project_of,
    url_of,
)
from agent_core.providers.adapters.google_vertex.tokens import AdcTokens, Ticket, TicketSource
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import StreamReader, read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent
from agent_core.providers.wire.anthropic import request as anthropic_request
from agent_core.providers.wire.anthropic.stream import AnthropicReader
from agent_core.providers.wire.gemini import request as gemini_request
from agent_core.providers.wire.gemini.stream import GeminiReader

CLAUDE_VERSION = "vertex-2023-10-16"


class GoogleVertex:
    """Asks a project's Gemini, or its Claude.

    A key of the provider is an API key; without one, Application Default Credentials are used.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        access: Authenticator,
        pool: HttpPool,
        tickets: TicketSource | None = None,
    ) -> None:
        self._model = model
        self._access = access
        self._pool = pool
        self._tickets = tickets or AdcTokens(provider=model.provider)

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return self._model

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        model = self._model
        post = await self._post(request, await self._access.credentials())
        clock = self._pool.clock
        reader: StreamReader = (
            AnthropicReader(model, clock) if is_claude(model) else GeminiReader(model, clock)
        )
        async with (
            open_stream(self._pool, post) as body,
            aclosing(read_parts(body, reader, model=model, pool=self._pool, post=post)) as parts,
        ):
            yield parts

    async def _post(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        model = self._model
        body, beta = _body(request, model)
        project = project_of(model)
        if grant.key is None:
            ticket = await self._tickets.ticket()
            project = project or ticket.project
            entry, secrets = _entry(ticket), (ticket.token,)
        else:
            entry, secrets = _key(grant, grant.key), ()
        # A plain key belongs to a project already, and opens Gemini only.
        keyed = grant.key is not None and not grant.bearer and not is_claude(model)
        if project is None and not keyed:
            raise self._unplaced()
        return HttpRequest(
            provider=model.provider,
            url=url_of(model, project=None if keyed else project),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                entry,
                beta,
                model.headers,
                grant.headers,
            ),
            body=json.encode(body),
            secrets=(*grant.secrets, *secrets),
            key_source=grant.source,
        )

    def _unplaced(self) -> ProviderError:
        model = self._model
        message = (
            f"{model.ref} cannot be asked: no project is known; set GOOGLE_CLOUD_PROJECT, or project in the "
            "model's compat in models.json"
        )
        return ProviderError(
            message, reason="auth", provider=model.provider, before_first_byte=True
        )


def _body(request: ModelRequest, model: ModelInfo) -> tuple[JsonObject, dict[str, str]]:
    """Return the body, and the headers that it needs."""
    if not is_claude(model):
        return gemini_request.request_body(request, model), {}
    body = dict(anthropic_request.request_body(request, model))
    # The address names the model here.
    _ = body.pop("model", None)
    body["anthropic_version"] = CLAUDE_VERSION
    return body, anthropic_request.beta_headers(body)


def _entry(ticket: Ticket) -> dict[str, str]:
    entry = {"authorization": f"Bearer {ticket.token}"}
    if ticket.quota_project:
        entry["x-goog-user-project"] = ticket.quota_project
    return entry


def _key(grant: RequestCredentials, key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if grant.bearer else {"x-goog-api-key": key}
