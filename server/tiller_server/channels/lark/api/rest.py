"""Calls of the REST API: token, time limits, and errors as the port of chat platforms names them."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import httpx
import msgspec

from agent_core.channels.messaging.port import (
    DeliveryDelayed,
    DeliveryError,
    DeliveryUncertain,
)
from agent_core.kernel import Clock
from agent_core.kernel.json import JsonObject, JsonValue, encode, is_object
from agent_core.kernel.values import Value, threadsafe
from tiller_server.channels.lark.api.account import LarkAccount, is_loopback
from tiller_server.channels.lark.api.codes import TOKEN_INVALID, LarkRefused, delivery_error
from tiller_server.channels.lark.api.deadline import within
from tiller_server.channels.lark.api.json_fields import as_object, parse_object

CALL_S: Final = 20.0
"""Limit of one call, with its answer."""
TRANSFER_S: Final = 120.0
"""Limit of an upload, and of each wait during a download."""
ANSWER_BYTES: Final = 16 * 1024 * 1024
REFUSAL_BYTES: Final = 16 * 1024
TOKEN_REFRESH_S: Final = 600.0
"""A token is renewed this long before it ends."""
_AUTH_PATH: Final = "/open-apis/auth/v3/tenant_access_token/internal"
_Result = TypeVar("_Result")
_Shape = TypeVar("_Shape")
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Upload(Value, frozen=True, kw_only=True):
    """A file that goes with the fields of a form."""

    field: str
    name: str
    content: bytes


class ApiCall(Value, frozen=True, kw_only=True):
    """A call of the API."""

    action: str
    """The action as part of a sentence: `send a message`."""
    method: str
    path: str
    """Path below the domain."""
    query: Mapping[str, str] = {}
    body: JsonValue = None
    form: Mapping[str, str] = {}
    upload: Upload | None = None


class _Token(Value, frozen=True, kw_only=True):
    text: str
    until_s: float


class LarkApi:
    """The REST API of one app."""

    def __init__(self, account: LarkAccount, client: httpx.AsyncClient, clock: Clock) -> None:
        """Prepare; nothing is sent yet. The caller closes the client."""
        self.account = account
        self.client = client
        self._clock = clock
        self._token: _Token | None = None
        self._token_lock = anyio.Lock()

    async def call(self, call: ApiCall) -> JsonObject:
        """Return the `data` of the answer, or the whole body where it has none.

        Raises:
            LarkRefused: The platform refuses for good.
            DeliveryDelayed: It refused for now, or was not reached; nothing was applied.
            DeliveryUncertain: The call may have been applied.
        """
        limit_s = CALL_S if call.upload is None else TRANSFER_S
        response = await self._authorised(call, lambda token: self._send(call, token, limit_s))
        return _data(response)

    async def download(self, call: ApiCall, *, limit_bytes: int) -> AsyncGenerator[bytes]:
        """Read the body of an answer in chunks.

        Raises:
            LarkRefused: The platform refuses it, or it has more bytes than the limit.
            DeliveryError: It cannot be read.
        """
        too_large = LarkRefused(
            f"Lark did not {call.action}: it has more than {limit_bytes} bytes; send a smaller file",
            code=0,
        )
        response = await self._authorised(call, lambda token: self._open(call, token))
        try:
            announced = response.headers.get("content-length", "")
            if announced.isdigit() and int(announced) > limit_bytes:
                raise too_large
            size = 0
            chunks = response.aiter_bytes(64 * 1024)
            while (chunk := await self._next(call, chunks)) is not None:
                size += len(chunk)
                if size > limit_bytes:
                    raise too_large
                yield chunk
        finally:
            with anyio.move_on_after(5, shield=True):
                await response.aclose()

    async def _next(self, call: ApiCall, chunks: AsyncIterator[bytes]) -> bytes | None:
        async def step() -> bytes | None:
            return await anext(chunks, None)

        return await self._guarded(call, TRANSFER_S, step)

    async def _authorised(
        self, call: ApiCall, send: Callable[[str], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Send with a token, and once more with a new one when it is refused."""
        for is_last in (False, True):
            token = await self._current_token()
            response = await send(token.text)
            failure = await _failure(call.action, response)
            if failure is None:
                return response
            code, error = failure
            if code not in TOKEN_INVALID or is_last:
                raise error
            if self._token is token:
                self._token = None
        raise AssertionError  # the last attempt returns or raises

    async def _current_token(self) -> _Token:
        async with self._token_lock:
            token = self._token
            if token is None or token.until_s <= self._clock.monotonic_s():
                token = self._token = await self._new_token()
            return token

    async def _new_token(self) -> _Token:
        account = self.account
        body = {"app_id": account.app_id, "app_secret": account.app_secret}
        call = ApiCall(action="issue a token", method="POST", path=_AUTH_PATH, body=body)
        response = await self._send(call, "", CALL_S)
        failure = await _failure(call.action, response)
        if isinstance(failure, tuple):
            # Also a refusal for good is an obstacle for now: the message itself has no fault.
            message = f"{failure[1]}; check the app id, the app secret and channels.lark.domain"
            raise DeliveryDelayed(message, retry_after_s=60.0) from failure[1]
        fields = _data(response)
        text, expire_s = fields.get("tenant_access_token"), fields.get("expire")
        if not isinstance(text, str) or not text:
            raise DeliveryDelayed(
                "Lark issued no token; check channels.lark.domain", retry_after_s=60.0
            )
        life_s = float(expire_s) if isinstance(expire_s, int | float) else 0.0
        use_s = max(life_s - TOKEN_REFRESH_S, life_s / 2)
        return _Token(text=text, until_s=self._clock.monotonic_s() + use_s)

    async def _send(self, call: ApiCall, token: str, limit_s: float) -> httpx.Response:
        return await self._guarded(
            call, limit_s, partial(self._exchange, call, token, stream=False)
        )

    async def _open(self, call: ApiCall, token: str) -> httpx.Response:
        return await self._guarded(call, CALL_S, partial(self._exchange, call, token, stream=True))

    async def _exchange(self, call: ApiCall, token: str, *, stream: bool) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = None
        if call.body is not None:
            content, headers["Content-Type"] = encode(call.body), "application/json; charset=utf-8"
        upload = call.upload
        request = self.client.build_request(
            call.method,
            self.account.base_url + call.path,
            params=dict(call.query) or None,
            headers=headers,
            content=content,
            data=dict(call.form) or None,
            files=None if upload is None else {upload.field: (upload.name, upload.content)},
        )
        return await self.client.send(request, stream=stream)

    async def _guarded(
        self, call: ApiCall, limit_s: float, work: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        try:
            return await within(self._clock, limit_s, work)
        except _NOT_SENT as error:
            message = f"Lark did not {call.action}: {self._host} cannot be reached ({error}); it is repeated"
            raise DeliveryDelayed(message) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            message = f"Lark did not confirm to {call.action} ({reason}); it may have been applied"
            raise DeliveryUncertain(message) from error

    @property
    def _host(self) -> str:
        return self.account.base_url.partition("//")[2]


@asynccontextmanager
async def open_api(account: LarkAccount, clock: Clock) -> AsyncGenerator[LarkApi]:
    """Open the connections of an app; they are closed at the end."""
    make = partial(
        httpx.AsyncClient,
        timeout=None,  # `within` limits each wait, by the clock of the caller
        trust_env=not is_loopback(account.base_url),
        headers={"User-Agent": "tiller"},
    )
    # It reads the certificates from the disk.
    client = await anyio.to_thread.run_sync(make)
    async with client:
        yield LarkApi(account, client, clock)


def read_fields(data: JsonObject, kind: type[_Shape]) -> _Shape:
    """Return the fields of an answer.

    Raises:
        DeliveryUncertain: They are not there.
    """
    try:
        return msgspec.convert(data, threadsafe(kind), strict=False)
    except msgspec.ValidationError as error:
        msg = f"Lark answered without the fields that were expected: {error}"
        raise DeliveryUncertain(msg) from error


def read_items(data: JsonObject, kind: type[_Shape]) -> tuple[_Shape, ...]:
    """Return the `items` of an answer; those without the expected fields are left out."""
    entries = data.get("items")
    items: list[_Shape] = []
    for entry in entries if isinstance(entries, list) else ():
        with suppress(msgspec.ValidationError):
            items.append(msgspec.convert(entry, threadsafe(kind), strict=False))
    return tuple(items)


async def _failure(action: str, response: httpx.Response) -> tuple[int, DeliveryError] | None:
    """Return code and error of an answer that is no success; the body of a success stays unread if it is a stream."""
    is_stream, is_ok = not response.is_closed, response.status_code < HTTPStatus.BAD_REQUEST
    if is_stream and is_ok and not _may_be_refusal(response):
        return None
    try:
        raw = await response.aread()
    except httpx.HTTPError:
        raw = b""
    body = parse_object(raw)
    code, detail = body.get("code"), body.get("msg")
    if is_ok and (code == 0 or (is_stream and not isinstance(code, int))):
        return None
    number = code if isinstance(code, int) else 0
    return number, delivery_error(
        action,
        code=number,
        detail=detail if isinstance(detail, str) else "",
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
    )


def _may_be_refusal(response: httpx.Response) -> bool:
    """Return whether a body can be a refusal instead of a file: it is JSON and short."""
    size = response.headers.get("content-length", "")
    is_json = "json" in response.headers.get("content-type", "")
    return is_json and size.isdigit() and int(size) <= REFUSAL_BYTES


def _data(response: httpx.Response) -> JsonObject:
    body = parse_object(response.content)
    return as_object(body["data"]) if is_object(body.get("data")) else body
