"""Calls of Slack's Web API, with its errors as errors of the port."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from agent_core.channels.messaging.port import (
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text

TIMEOUT_S: Final = 30
DELAYED: Final = frozenset({"ratelimited", "rate_limited"})
UNCERTAIN: Final = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org"}
)
"""Errors after which a call may have been applied. https://docs.slack.dev/reference/methods/chat.postMessage#errors"""
READ_BYTES: Final = 1 << 16
_Call = Callable[..., Awaitable[object]]


class SlackApi:
    """The methods of the Web API that the adapter uses. Every call raises a DeliveryError when it was not confirmed."""

    def __init__(self, bot_token: str, *, base_url: str) -> None:
        """Create it; nothing is sent.

        Args:
            bot_token: Token of the bot, `xoxb-…`.
            base_url: Address of the Web API, with a slash at its end.
        """
        # Without the SDK's own retries: a message whose connection was cut may have been sent.
        self.client = AsyncWebClient(
            token=bot_token, base_url=base_url, timeout=TIMEOUT_S, retry_handlers=[]
        )
        # Typed with bare dictionaries in the SDK.
        self._call = cast("_Call", self.client.api_call)
        self._upload = cast("_Call", self.client.files_upload_v2)
        self._token = bot_token
        self._host = urlsplit(base_url).hostname or ""

    async def call(self, method: str, /, **params: JsonValue) -> JsonObject:
        """Call a method and return its answer."""
        return await _settled(
            method,
            lambda: self._call(
                method, json={name: value for name, value in params.items() if value is not None}
            ),
        )

    async def get(self, method: str, /, **params: str | int | bool) -> JsonObject:
        """Call a method that only reads and return its answer."""
        return await _settled(
            method, lambda: self._call(method, http_verb="GET", params=dict(params))
        )

    async def upload(self, name: str, content: bytes, *, channel: str, thread: str | None) -> None:
        """Upload a file into a channel."""
        _ = await _settled(
            "files.upload",
            lambda: self._upload(filename=name, content=content, channel=channel, thread_ts=thread),
        )

    async def download(self, url: str, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Yield the bytes of a file of Slack; the token is sent to Slack alone."""
        host = urlsplit(url).hostname or ""
        if host != self._host and not host.endswith(".slack.com"):
            message = f"The file is stored at {host!r}, which is not Slack."
            raise DeliveryImpossible(message)
        count = 0
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(url, headers={"Authorization": f"Bearer {self._token}"}) as answer,
            ):
                if answer.status != HTTPStatus.OK:
                    message = f"Slack answered {answer.status} for the file."
                    raise DeliveryImpossible(message)
                async for part in answer.content.iter_chunked(READ_BYTES):
                    count += len(part)
                    if count > limit_bytes:
                        message = f"The file has more than {limit_bytes:,} bytes."
                        raise DeliveryImpossible(message)
                    yield part
        except (aiohttp.ClientError, TimeoutError) as error:
            message = f"The file could not be read from Slack: {error or type(error).__name__}"
            raise DeliveryUncertain(message) from error


async def _settled(method: str, send: Callable[[], Awaitable[object]]) -> JsonObject:
    try:
        answer = await send()
    except SlackApiError as error:
        raise _refusal(method, error) from error
    except (
        SlackClientError,
        aiohttp.ClientError,
        TimeoutError,
        asyncio.IncompleteReadError,
    ) as error:
        message = f"Slack did not answer {method}: {error or type(error).__name__}"
        raise DeliveryUncertain(message) from error
    return as_object(cast("JsonValue", getattr(answer, "data", {})))


def body_of(error: SlackApiError) -> JsonObject:
    """Return the body of a refusal; empty: it is no JSON."""
    response = cast("object", error.response)  # untyped in the SDK
    return as_object(cast("JsonValue", getattr(response, "data", {})))


def _refusal(method: str, error: SlackApiError) -> DeliveryError:
    response = cast("object", error.response)  # untyped in the SDK
    status = cast("int", getattr(response, "status_code", 0))
    headers = cast("dict[str, str]", getattr(response, "headers", {}))
    code = as_text(body_of(error).get("error")) or f"HTTP {status}"
    message = f"Slack refused {method}: {code}"
    if code in DELAYED or status == HTTPStatus.TOO_MANY_REQUESTS:
        after = headers.get("Retry-After") or headers.get("retry-after") or ""
        return DeliveryDelayed(message, retry_after_s=float(after) if after.isdecimal() else None)
    if code in UNCERTAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return DeliveryUncertain(message)
    return DeliveryImpossible(message)
