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
from agent_core.providers.auth.authenticator import Access, Grant, with_headers
from agent_core.providers.http.client import HttpPool, posted
from agent_core.providers.http.request import Post
from agent_core.providers.http.stream import Dialect, read_parts
from agent_core.providers.model import ModelFacts, ModelRequest, Part
from agent_core.providers.wire.anthropic import request as anthropic_request
from agent_core.providers.wire.anthropic.stream import EventReader
from agent_core.providers.wire.gemini import request as gemini_request
from agent_core.providers.wire.gemini.stream import GeminiReader

CLAUDE_VERSION = "vertex-2023-10-16"


class GoogleVertex:
    """Asks a project's Gemini, or its Claude.

    A key of the provider is an API key; without one, Application Default Credentials are used.
    """

    def __init__(
        self,
        facts: ModelFacts,
        *,
        access: Access,
        pool: HttpPool,
        tickets: TicketSource | None = None,
    ) -> None:
        self._facts = facts
        self._access = access
        self._pool = pool
        self._tickets = tickets or AdcTokens(provider=facts.provider)

    @property
    def facts(self) -> ModelFacts:
        """Facts about the model."""
        return self._facts

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncGenerator[Part, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        facts = self._facts
        post = await self._post(request, await self._access.grant())
        clock = self._pool.clock
        reader: Dialect = (
            EventReader(facts, clock) if is_claude(facts) else GeminiReader(facts, clock)
        )
        async with (
            posted(self._pool, post) as body,
            aclosing(read_parts(body, reader, facts=facts, pool=self._pool, post=post)) as parts,
        ):
            yield parts

    async def _post(self, request: ModelRequest, grant: Grant) -> Post:
        facts = self._facts
        body, beta = _body(request, facts)
        project = project_of(facts)
        if grant.key is None:
            ticket = await self._tickets.ticket()
            project = project or ticket.project
            entry, secrets = _entry(ticket), (ticket.token,)
        else:
            entry, secrets = _key(grant, grant.key), ()
        # A plain key belongs to a project already, and opens Gemini only.
        keyed = grant.key is not None and not grant.bearer and not is_claude(facts)
        if project is None and not keyed:
            raise self._unplaced()
        return Post(
            provider=facts.provider,
            url=url_of(facts, project=None if keyed else project),
            headers=with_headers(
                {"content-type": "application/json", "accept": "text/event-stream"},
                entry,
                beta,
                facts.headers,
                grant.headers,
            ),
            body=json.encode(body),
            secrets=(*grant.secrets, *secrets),
            key_source=grant.source,
        )

    def _unplaced(self) -> ProviderError:
        facts = self._facts
        message = (
            f"{facts.ref} cannot be asked: no project is known; set GOOGLE_CLOUD_PROJECT, or project in the "
            "model's compat in models.json"
        )
        return ProviderError(
            message, reason="auth", provider=facts.provider, before_first_byte=True
        )


def _body(request: ModelRequest, facts: ModelFacts) -> tuple[JsonObject, dict[str, str]]:
    """Return the body, and the headers that it needs."""
    if not is_claude(facts):
        return gemini_request.request_body(request, facts), {}
    body = dict(anthropic_request.request_body(request, facts))
    # The address names the model here.
    _ = body.pop("model", None)
    body["anthropic_version"] = CLAUDE_VERSION
    return body, anthropic_request.beta_headers(body)


def _entry(ticket: Ticket) -> dict[str, str]:
    entry = {"authorization": f"Bearer {ticket.token}"}
    if ticket.quota_project:
        entry["x-goog-user-project"] = ticket.quota_project
    return entry


def _key(grant: Grant, key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if grant.bearer else {"x-goog-api-key": key}
