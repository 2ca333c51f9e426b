"""HTTP by httpx, with its errors in our words; imported when the first request is made."""

from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus

import httpx

from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.providers.post import Post

POOLED = 8
POOLED_S = 60.0


class HttpxIncoming:
    """An answer whose body is still on its way."""

    def __init__(self, response: httpx.Response, provider: str) -> None:
        self._response = response
        self._provider = provider
        self.status = response.status_code
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }

    @property
    def is_closed(self) -> bool:
        """Tell whether the connection was given back or closed."""
        return self._response.is_closed

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Give the body as it comes.

        Raises:
            ProviderError: The connection broke, or the body is damaged.
        """
        response = self._response
        # What was not compressed needs no decoder, which copies every piece twice.
        plain = self.status == HTTPStatus.OK and "content-encoding" not in self.headers
        try:
            async for chunk in response.aiter_raw() if plain else response.aiter_bytes():
                if chunk:
                    yield chunk
        except httpx.HTTPError as error:
            raise _failure(error, self._provider) from error

    async def aclose(self) -> None:
        """Close the connection, if the body was not read to its end."""
        await self._response.aclose()


class HttpxExchange:
    """Keeps connections and sends requests over them."""

    def __init__(self, *, direct: bool, connect_s: float) -> None:
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=connect_s),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=POOLED, keepalive_expiry=POOLED_S
            ),
            follow_redirects=False,
            trust_env=not direct,
            headers={"accept-encoding": "identity", "user-agent": "tiller"},
        )

    async def send(self, post: Post) -> HttpxIncoming:
        """Send a request and give the answer as soon as its headers are there.

        Raises:
            ProviderError: It could not be sent, or the connection broke before an answer.
        """
        try:
            request = self._client.build_request(
                "POST", post.url, headers=dict(post.headers), content=post.body
            )
            response = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            raise _failure(error, post.provider, sending=True) from None
        except (httpx.InvalidURL, ValueError):
            raise _malformed(post.provider) from None
        return HttpxIncoming(response, post.provider)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def _failure(error: httpx.HTTPError, provider: str, *, sending: bool = False) -> ProviderError:
    reason: ProviderErrorKind = "network"
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        # The text of these quotes what was to be sent, keys included.
        return _malformed(provider)
    if isinstance(error, httpx.TimeoutException):
        reason, text = "timeout", "the connection was not made in time"
    elif isinstance(error, httpx.DecodingError):
        reason = "protocol"
    message = f"cannot reach {provider}: {text}" if sending else f"{provider}: {text}"
    return ProviderError(message, reason=reason, provider=provider)


def _malformed(provider: str) -> ProviderError:
    message = f"{provider} cannot be asked: its baseUrl or a header is malformed; see models.json"
    return ProviderError(message, reason="invalid_request", provider=provider)
