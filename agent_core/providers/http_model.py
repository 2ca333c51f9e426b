"""A model behind an HTTP API: one POST request, one streamed answer."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager

from agent_core.kernel import Clock, JsonObject, json
from agent_core.providers.auth.credentials import Authenticator, RequestCredentials, with_headers
from agent_core.providers.http.client import HttpPool, open_stream
from agent_core.providers.http.request import HttpRequest
from agent_core.providers.http.stream import Decoder, StreamReader, read_parts
from agent_core.providers.messages.history import EncodedHistory, SplitBody
from agent_core.providers.model import ModelInfo, ModelRequest, StreamEvent

EVENT_STREAM = "text/event-stream"


class HttpModel(ABC):
    """Base of the adapters: each states its request and the reader of its answers."""

    def __init__(self, model: ModelInfo, *, access: Authenticator, pool: HttpPool) -> None:
        self._model = model
        self._access = access
        self._pool = pool
        self._history = EncodedHistory()

    @property
    def facts(self) -> ModelInfo:
        """Facts about the model."""
        return self._model

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[StreamEvent, None]]:
        """Ask; leaving the context closes the connection at once, also on cancellation."""
        post = await self._request(request, await self._access.credentials())
        reader, decoder = self._reader(self._pool.clock)
        async with (
            open_stream(self._pool, post) as body,
            aclosing(
                read_parts(
                    body, reader, model=self._model, pool=self._pool, post=post, decoder=decoder
                )
            ) as parts,
        ):
            yield parts

    @abstractmethod
    async def _request(self, request: ModelRequest, grant: RequestCredentials) -> HttpRequest:
        """Return the HTTP request; a `ProviderError` when the model cannot be asked."""

    @abstractmethod
    def _reader(self, clock: Clock) -> tuple[StreamReader, Decoder | None]:
        """Return a new reader of one answer, and its decoder; None: server-sent events."""

    def _post(
        self,
        grant: RequestCredentials,
        *,
        url: str,
        body: JsonObject | SplitBody,
        key: Mapping[str, str],
        extra: Mapping[str, str] | None = None,
        accept: str = EVENT_STREAM,
        secrets: tuple[str, ...] = (),
    ) -> HttpRequest:
        """Return a request with a JSON body; the headers of the model win over these, those of the user over all."""
        model = self._model
        return HttpRequest(
            provider=model.provider,
            url=url,
            headers=with_headers(
                {"content-type": "application/json", "accept": accept},
                key,
                extra or {},
                model.headers,
                grant.headers,
            ),
            body=body.encode() if isinstance(body, SplitBody) else json.encode(body),
            secrets=(*grant.secrets, *secrets),
            key_source=grant.source,
        )


def bearer(grant: RequestCredentials) -> dict[str, str]:
    """Return the header of a key that is a bearer token."""
    return {"authorization": f"Bearer {grant.key}"} if grant.key else {}


def key_header(grant: RequestCredentials, name: str) -> dict[str, str]:
    """Return the header of a key of an API that has its own header for it."""
    if grant.key is None:
        return {}
    if grant.bearer:
        return {"authorization": f"Bearer {grant.key}"}
    return {name: grant.key}
