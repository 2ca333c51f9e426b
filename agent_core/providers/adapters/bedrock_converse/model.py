"""A model behind Bedrock."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from typing_extensions import override

from agent_core.kernel import Clock, JsonValue, json
from agent_core.providers.adapters.bedrock_converse.request import request_body
from agent_core.providers.adapters.bedrock_converse.signature import AwsSigner, Signer
from agent_core.providers.adapters.bedrock_converse.stream import ConverseReader
from agent_core.providers.auth.credentials import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.aws_event_stream import EventStreamDecoder
from agent_core.providers.http.client import HttpPool
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http_model import HttpModel
from agent_core.providers.model import ModelInfo, ModelRequest

RESERVED = ("authorization", "host", "content-length")
RESERVED_LEAD = "x-amz-"
SIGNED = ("authorization", "x-amz-security-token")

DEFAULT_REGION = "us-east-1"
_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:([a-z0-9-]+):")
_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")
_USUAL = re.compile(r"bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?")


class BedrockConverse(HttpModel):
    """Client of a server at `<base URL>/model/<id>/converse-stream`.

    A key of the provider is a bearer token; without one, requests are signed.
    """

    def __init__(
        self,
        model: ModelInfo,
        *,
        access: Authenticator,
        pool: HttpPool,
        signer: Signer | None = None,
    ) -> None:
        super().__init__(model, access=access, pool=pool)
        self._signer = signer or AwsSigner(provider=model.provider)

    @override
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        body = json.encode(request_body(request, self._model))
        model = self._model
        profile = _profile_of(model)
        region = region_of(model)
        if region is None and grant.key is None:
            region = await self._signer.region(profile)
        region = region or DEFAULT_REGION
        url = url_of(model, region=region)
        own = {"content-type": "application/json"}
        if grant.key is not None:
            entry: Mapping[str, str] = {**own, "authorization": f"Bearer {grant.key}"}
        else:
            entry = await self._signer.signed(
                url, body, headers=own, region=region, profile=profile
            )
        headers = with_headers(
            {"accept": "application/vnd.amazon.eventstream"},
            _free(model.headers),
            _free(grant.headers),
            entry,
        )
        secrets = tuple(headers[name] for name in SIGNED if name in headers)
        return HttpRequest(
            provider=model.provider,
            url=url,
            headers=headers,
            body=body,
            secrets=(*grant.secrets, *secrets),
            key_source=grant.source,
            signed=grant.key is None,
        )

    @override
    def _reader(self, clock: Clock) -> tuple[ConverseReader, EventStreamDecoder]:
        framing = EventStreamDecoder()
        return ConverseReader(self._model, clock, framing=framing), framing


def _free(headers: Mapping[str, str]) -> dict[str, str]:
    """Leave out headers that belong to the signature."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in RESERVED and not name.lower().startswith(RESERVED_LEAD)
    }


def region_of(model: ModelInfo) -> str | None:
    """Return the region of a model: from its ARN, else `compat`, else its address; None: none of them has it."""
    arn = _ARN.match(model.id)
    if arn:
        return arn[1]
    chosen = _word(model.compat.get("region"))
    if chosen:
        return chosen
    host = _HOST.search(_host(model.base_url))
    return host[1] if host else None


def _profile_of(model: ModelInfo) -> str | None:
    """Name the profile whose credentials are used; None: the usual ones."""
    return _word(model.compat.get("profile"))


def url_of(model: ModelInfo, *, region: str) -> str:
    """Return the address of a model's stream; an ARN is one segment of it."""
    base = model.base_url.rstrip("/")
    if not base or _USUAL.fullmatch(_host(base)):
        # A catalogue knows one region; the model's own ARN or the user's choice is nearer.
        suffix = ".cn" if region.startswith("cn-") else ""
        base = f"https://bedrock-runtime.{region}.amazonaws.com{suffix}"
    return f"{base}/model/{quote(model.id, safe='')}/converse-stream"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _word(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
