"""OpenAI's models in Azure, by the Responses API."""

from urllib.parse import urlencode, urlsplit, urlunsplit

from typing_extensions import override

from agent_core.kernel import Clock, JsonValue, json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel, key_header
from agent_core.providers.model import ModelInfo, ModelRequest
from agent_core.providers.wire.responses.compat import AZURE, responses_compat
from agent_core.providers.wire.responses.request import session_headers, split_body
from agent_core.providers.wire.responses.stream import ResponseReader

RESOURCE = "azureResourceName"
API_VERSION = "azureApiVersion"
DEPLOYMENTS = "azureDeploymentNameMap"
"""In `compat`: an object, or text such as `gpt-5=mine,gpt-5-mini=small`."""
V1 = "v1"
UNFINISHED_PATHS = ("", "/openai", "/openai/responses", "/openai/v1/responses")


class AzureOpenAIResponses(HttpModel):
    """Client of a deployment of an Azure resource."""

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        model = self._model
        compat = responses_compat(model)
        return self._post(
            grant,
            url=responses_url(model),
            body=split_body(request, model, self._history, compat=compat, model=deployment(model)),
            key=key_header(grant, "api-key"),
            extra=session_headers(request, compat),
        )

    @override
    def _reader(self, clock: Clock) -> tuple[ResponseReader, None]:
        return ResponseReader(self._model, clock), None


def deployment(model: ModelInfo) -> str:
    """Return the name by which a model is deployed; its own when nothing else is said."""
    mapped = model.compat.get(DEPLOYMENTS)
    names = _pairs(mapped) if isinstance(mapped, str) else json.as_object(mapped)
    name = names.get(model.id)
    return name if isinstance(name, str) and name else model.id


def responses_url(model: ModelInfo) -> str:
    """Return the address to ask.

    Raises:
        ProviderError: No address is known; the text says what to set.
    """
    version = _word(model, API_VERSION) or V1
    base = _base_url(model)
    try:
        scheme, host, path, query, _ = urlsplit(base)
        hostname = urlsplit(base).hostname or ""
    except ValueError:
        scheme = host = path = query = hostname = ""
    if not scheme or not host:
        message = (
            f"{model.ref} has no usable address ({base!r}); set AZURE_OPENAI_BASE_URL or "
            f"AZURE_OPENAI_RESOURCE_NAME, or {RESOURCE} in models.json"
        )
        raise ProviderError(
            message, reason="invalid_request", provider=model.provider, before_first_byte=True
        )
    path = path.rstrip("/")
    if hostname.endswith(AZURE) and path in UNFINISHED_PATHS:
        # The dated versions live beside the lasting one.
        path = "/openai" if version[:1].isdecimal() else "/openai/v1"
        query = ""
    if version != V1 and "api-version=" not in query:
        query = "&".join(part for part in (query, urlencode({"api-version": version})) if part)
    return urlunsplit((scheme, host, f"{path}/responses", query, ""))


def _base_url(model: ModelInfo) -> str:
    if model.base_url:
        return model.base_url
    resource = _word(model, RESOURCE)
    return f"https://{resource}.openai.azure.com" if resource else ""


def _word(model: ModelInfo, key: str) -> str:
    value = model.compat.get(key)
    return value.strip() if isinstance(value, str) else ""


def _pairs(text: str) -> dict[str, JsonValue]:
    pairs = (entry.partition("=") for entry in text.split(","))
    return {model.strip(): name.strip() for model, _, name in pairs if model.strip()}
