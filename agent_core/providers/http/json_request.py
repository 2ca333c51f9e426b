"""Small JSON requests to servers that are no models: logins, and lists of what a local server has."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec

from agent_core.kernel import JsonObject, json
from agent_core.kernel.values import SecretValue

if TYPE_CHECKING:
    import httpx

BODY_BYTES = 1 << 20
ASK_S = 15.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class JsonRequestFailed(Exception):
    """No answer that can be used; the text is a clause that names the host and holds no secret."""


class JsonRequest(SecretValue, frozen=True, kw_only=True):
    """A request; its `repr` shows no secret."""

    hidden: ClassVar = frozenset({"headers", "form", "body"})

    url: str
    method: Literal["GET", "POST"] = "GET"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    form: Mapping[str, str] | None = None
    body: JsonObject | None = None


class JsonResponse(SecretValue, frozen=True, kw_only=True):
    """An answer; its `repr` shows no secret."""

    hidden: ClassVar = frozenset({"body"})

    status: int
    body: JsonObject


SendJson = Callable[[JsonRequest], Awaitable[JsonResponse]]


async def request_json(question: JsonRequest, *, limit_s: float = ASK_S) -> JsonResponse:
    """Send a request and read one JSON object of any status. Redirects are not followed: a request may hold secrets.

    Raises:
        AskFailed: The server cannot be reached, is silent, or answers something else.
    """
    host = urlsplit(question.url).netloc
    try:
        with anyio.fail_after(limit_s):
            status, raw = await _asked(question)
    except TimeoutError:
        message = f"{host} did not answer within {limit_s:g} s"
        raise JsonRequestFailed(message) from None
    if status is None:
        message = f"{host} cannot be reached"
        raise JsonRequestFailed(message)
    try:
        value = json.decode(raw)
    except (ValueError, RecursionError):
        value = None
    if not json.is_object(value):
        message = f"{host} answered {status} with something that is not JSON"
        raise JsonRequestFailed(message)
    return JsonResponse(status=status, body=value)


async def _asked(question: JsonRequest) -> tuple[int | None, bytes]:
    client = await anyio.to_thread.run_sync(_client, question.url)
    import httpx  # noqa: PLC0415 - it was imported in the thread: a tenth of a second, for logins only

    headers = {"accept": "application/json", "user-agent": "tiller", **question.headers}
    form = None if question.form is None else dict(question.form)
    try:
        async with (
            client,
            client.stream(
                question.method, question.url, headers=headers, data=form, json=question.body
            ) as response,
        ):
            raw = bytearray()
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > BODY_BYTES:
                    break
            return response.status_code, bytes(raw)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None, b""


def _client(url: str) -> "httpx.AsyncClient":
    """Make a client; blocking, for it reads certificates from the disk, where there is anything to check with them."""
    import httpx  # noqa: PLC0415 - see above

    parts = urlsplit(url)
    here = parts.hostname in LOOPBACK
    return httpx.AsyncClient(
        follow_redirects=False,
        trust_env=not here,
        timeout=None,  # noqa: S113 - the caller limits the whole exchange
        verify=parts.scheme != "http",
    )
