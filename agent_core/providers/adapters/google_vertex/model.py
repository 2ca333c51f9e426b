"""A model behind Vertex AI."""

import re
from urllib.parse import quote, urlsplit

from typing_extensions import override

from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.google_vertex.tokens import AdcTokens, Ticket, TicketSource
from agent_core.providers.auth.credentials import Authenticator, RequestCredentials
from agent_core.providers.http.client import HttpPool
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, key_header
from agent_core.providers.model import ModelInfo, ModelRequest
from agent_core.providers.wire.anthropic import request as anthropic_request
from agent_core.providers.wire.anthropic.stream import AnthropicReader
from agent_core.providers.wire.gemini import request as gemini_request
from agent_core.providers.wire.gemini.stream import GeminiReader

CLAUDE_VERSION = "vertex-2023-10-16"

HOST = "aiplatform.googleapis.com"
GLOBAL = "global"
_LOCATED = re.compile(r"//([a-z0-9-]+)-aiplatform\.googleapis\.com")
REGIONS_IN_ONE = ("us", "eu")
GEMINI_VERSION = "v1beta1"
CLAUDE_PATH_VERSION = "v1"


class GoogleVertex(HttpModel):
    """Client of a project's Gemini, or its Claude.

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
        super().__init__(model, access=access, pool=pool)
        self._tickets = tickets or AdcTokens(provider=model.provider)

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        model = self._model
        body, beta = _body(request, model)
        project = _project_of(model)
        if grant.key is None:
            ticket = await self._tickets.ticket()
            project = project or ticket.project
            key, secrets = _entry(ticket), (ticket.token,)
        else:
            key, secrets = key_header(grant, "x-goog-api-key"), ()
        # A plain key belongs to a project already, and opens Gemini only.
        keyed = grant.key is not None and not grant.bearer and not _is_claude(model)
        if project is None and not keyed:
            raise self._unplaced()
        url = url_of(model, project=None if keyed else project)
        return self._post(grant, url=url, body=body, key=key, extra=beta, secrets=secrets)

    @override
    def _reader(self, clock: Clock) -> tuple[AnthropicReader | GeminiReader, None]:
        reader = AnthropicReader if _is_claude(self._model) else GeminiReader
        return reader(self._model, clock), None

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
    if not _is_claude(model):
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


def _is_claude(model: ModelInfo) -> bool:
    """Return whether a model is one of Anthropic's, which is asked in Anthropic's words."""
    return model.id.startswith("claude-")


def _project_of(model: ModelInfo) -> str | None:
    """Return the project that is billed, from `compat`; None: not set."""
    return _word(model.compat.get("project"))


def url_of(model: ModelInfo, *, project: str | None) -> str:
    """Return the address of a model's stream; without a project, the one for keys."""
    location = _word(model.compat.get("location")) or _location_in(model.base_url) or GLOBAL
    base = _base(model, location if project else GLOBAL)
    if project:
        base = f"{base}/projects/{quote(project, safe=':')}/locations/{quote(location)}"
    return f"{base}/{_name(model)}:{_verb(model)}"


def _location_in(url: str) -> str | None:
    found = _LOCATED.search(url)
    return found[1] if found else None


def _base(model: ModelInfo, location: str) -> str:
    version = CLAUDE_PATH_VERSION if _is_claude(model) else GEMINI_VERSION
    base = model.base_url.rstrip("/")
    if not base or HOST in base:
        # A catalogue knows one location; the user's choice is nearer.
        return f"https://{_host(location)}/{version}"
    return base if urlsplit(base).path else f"{base}/{version}"


def _host(location: str) -> str:
    if location == GLOBAL:
        return HOST
    if location in REGIONS_IN_ONE:
        return f"aiplatform.{location}.rep.googleapis.com"
    return f"{location}-{HOST}"


def _name(model: ModelInfo) -> str:
    # A model of one's own is an endpoint, and says so in its id.
    if "/" in model.id:
        return quote(model.id, safe="/@")
    publisher = "anthropic" if _is_claude(model) else "google"
    return f"publishers/{publisher}/models/{quote(model.id, safe='@')}"


def _verb(model: ModelInfo) -> str:
    return "streamRawPredict" if _is_claude(model) else "streamGenerateContent?alt=sse"


def _word(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
