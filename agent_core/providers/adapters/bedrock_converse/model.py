"""A model behind Bedrock."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import json
from agent_core.providers.adapters.bedrock_converse.address import (
    DEFAULT_REGION,
    profile_of,
    region_of,
    url_of,
)
from agent_core.providers.adapters.bedrock_converse.request import request_body
from agent_core.providers.adapters.bedrock_converse.signature import AwsSigner, Signer
from agent_core.providers.adapters.bedrock_converse.stream import ConverseReader
from agent_core.providers.auth.authenticator import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.aws_event_stream import EventStreamDecoder
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import read_parts
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent

RESERVED = ("authorization", "host", "content-length")
RESERVED_LEAD = "x-amz-"
SIGNED = ("authorization", "x-amz-security-token")


class BedrockConverse:
    """Asks a server at `<base URL>/model/<id>/converse-stream`.

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
        self._model = model
        self._access = access
        self._pool = pool
        self._signer = signer or AwsSigner(provider=model.provider)

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return self._model

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        grant = await self._access.credentials()
        model = self._model
        post = await self._post(json.encode(request_body(request, model)), grant)
        framing = EventStreamDecoder()
        reader = ConverseReader(model, self._pool.clock, framing=framing)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(
                read_parts(
                    body,
                    reader,
                    model=model,
                    pool=self._pool,
                    post=post,
                    decoder=framing,
                )
            ) as parts,
        ):
            yield parts

    async def _post(self, body: bytes, grant: RequestCredentials) -> HttpRequest:
        model = self._model
        profile = profile_of(model)
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


def _free(headers: Mapping[str, str]) -> dict[str, str]:
    """Leave out headers that belong to the signature."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in RESERVED and not name.lower().startswith(RESERVED_LEAD)
    }
