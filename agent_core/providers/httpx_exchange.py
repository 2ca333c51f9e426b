"""HTTP by httpx, with its errors in our words; imported when the first request is made."""

from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from agent_core.kernel.errors import ProviderError
from agent_core.providers.failure_words import origin_of, unreachable
from agent_core.providers.failures import masked
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
            raise _broken(error, self._provider) from error

    async def aclose(self) -> None:
        """Close the connection, if the body was not read to its end."""
        await self._response.aclose()


class HttpxExchange:
    """Keeps connections and sends requests over them."""

    def __init__(self, *, direct: bool, connect_s: float) -> None:
        self._direct = direct
        self._connect_s = connect_s
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
            raise self._unsent(error, post) from None
        except (httpx.InvalidURL, ValueError):
            raise _malformed(post.provider) from None
        return HttpxIncoming(response, post.provider)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    def _unsent(self, error: httpx.HTTPError, post: Post) -> ProviderError:
        provider = post.provider
        if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
            # The text of these quotes what was to be sent, keys included.
            return _malformed(provider)
        if isinstance(error, httpx.TimeoutException):
            message = (
                f"cannot reach {provider}: the connection to {origin_of(post.url)} was not made in time "
                f"({self._connect_s:g} s); check baseUrl and the network connection"
            )
            return ProviderError(message, reason="timeout", provider=provider)
        proxy = None if self._direct else _proxy_for(post.url)
        message = unreachable(error, provider=provider, url=post.url, proxy=proxy)
        return ProviderError(masked(message, post.secrets), reason="network", provider=provider)


def _broken(error: httpx.HTTPError, provider: str) -> ProviderError:
    if isinstance(error, httpx.DecodingError):
        message = f"{provider} sent an answer whose compression is damaged; try again"
        return ProviderError(message, reason="protocol", provider=provider)
    why = str(error) or type(error).__name__
    message = f"{provider}: the connection broke in the middle of the answer ({why}); try again"
    return ProviderError(message, reason="network", provider=provider)


def _proxy_for(url: str) -> str | None:
    """Name the proxy that a request goes through: its address without what opens it, and the variable."""
    parts = urlsplit(url)
    proxies = getproxies()
    name = parts.scheme if parts.scheme in proxies else "all"
    if name not in proxies or proxy_bypass(parts.hostname or ""):
        return None
    address = proxies[name] if "://" in proxies[name] else f"http://{proxies[name]}"
    return f"{origin_of(address)} ({name.upper()}_PROXY)"


def _malformed(provider: str) -> ProviderError:
    message = f"{provider} cannot be asked: its baseUrl or a header is malformed; see models.json"
    return ProviderError(message, reason="invalid_request", provider=provider)
