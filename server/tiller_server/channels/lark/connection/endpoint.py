"""The address of the long connection, the settings that come with it, and the reasons for which it is refused."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

import httpx

from agent_core.kernel import Clock
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value
from tiller_server.channels.lark.api.account import LarkAccount
from tiller_server.channels.lark.api.deadline import within
from tiller_server.channels.lark.api.json_fields import as_object, parse_object

ENDPOINT_S: Final = 10.0
LEAST_INTERVAL_S: Final = 5
MOST_INTERVAL_S: Final = 300
MOST_FIRST_WAIT_S: Final = 5
_PATH: Final = "/callback/ws/endpoint"
_BUSY: Final = 1
_INTERNAL: Final = 1000040343
_AUTH_STATUS: Final = 514
_REASONS: Final[Mapping[int, str]] = {
    403: "the app may not use the long connection; switch it on in the developer console",
    514: "the app id or secret is not accepted; check channels.lark.appId and the secret",
    1000040344: "no app id or secret was sent; set channels.lark.appId and the secret",
    1000040350: "the app has too many connections; stop other processes that use it",
}


class ConnectionFailed(TillerError):
    """The long connection could not be opened, or has ended.

    Attributes:
        needs_person: Whether it fails again until a person changes something.
    """

    def __init__(self, message: str, *, needs_person: bool = False) -> None:
        super().__init__(message)
        self.needs_person = needs_person


class ConnectionConfig(Value, frozen=True, kw_only=True):
    """Intervals that the platform sets, in seconds, bounded to 5 to 300."""

    ping_s: int = 120
    reconnect_s: int = 120
    """Longest wait between two attempts."""
    first_wait_s: int = MOST_FIRST_WAIT_S
    """Longest wait before the first attempt; the wait is random."""

    def updated(self, config: JsonValue) -> "ConnectionConfig":
        """Return it with the fields of a `ClientConfig`; those that are missing or no numbers stay."""
        fields = as_object(config)
        nonce = _whole(fields.get("ReconnectNonce"))
        return ConnectionConfig(
            ping_s=_bounded(fields.get("PingInterval"), self.ping_s),
            reconnect_s=_bounded(fields.get("ReconnectInterval"), self.reconnect_s),
            first_wait_s=self.first_wait_s
            if nonce is None
            else min(max(nonce, 0), MOST_FIRST_WAIT_S),
        )


class SocketEndpoint(Value, frozen=True, kw_only=True):
    """The address of a connection."""

    url: str
    service: int
    config: ConnectionConfig


def refused(code: int, detail: str) -> ConnectionFailed:
    """Return the error for a code of the endpoint or of the handshake."""
    reason = _REASONS.get(code)
    shown = " ".join(detail.split())[:200]
    message = f"Lark refused the connection (code {code}, {shown!r})"
    if reason is not None:
        return ConnectionFailed(f"{message}: {reason}", needs_person=True)
    return ConnectionFailed(
        f"{message}; it is tried again",
        needs_person=code not in {_BUSY, _INTERNAL} and code < 500,  # noqa: PLR2004 - a fault of the server
    )


def handshake_refused(headers: Mapping[str, str], status: int) -> ConnectionFailed:
    """Return the error for a refused handshake. Headers are named in lower case."""
    code = _number(headers.get("handshake-status")) or status
    if code == _AUTH_STATUS:
        code = _number(headers.get("handshake-autherrcode")) or code
    return refused(code, headers.get("handshake-msg", ""))


async def request_endpoint(
    client: httpx.AsyncClient, account: LarkAccount, config: ConnectionConfig, clock: Clock
) -> SocketEndpoint:
    """Return the address of a new connection.

    Raises:
        ConnectionFailed: It is refused, or there is no answer in 10 s.
    """

    async def post() -> httpx.Response:
        return await client.post(
            account.base_url + _PATH,
            json={"AppID": account.app_id, "AppSecret": account.app_secret},
            headers={"locale": "zh"},
        )

    host = urlsplit(account.base_url).netloc
    try:
        response = await within(clock, ENDPOINT_S, post)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        msg = f"{host} cannot be reached ({reason}); it is tried again"
        raise ConnectionFailed(msg) from error
    body = parse_object(response.content)
    code, detail = body.get("code"), body.get("msg")
    if code != 0:
        number = code if isinstance(code, int) else response.status_code
        raise refused(number, detail if isinstance(detail, str) else "")
    return _endpoint(as_object(body.get("data")), config)


def _endpoint(data: JsonObject, config: ConnectionConfig) -> SocketEndpoint:
    url = data.get("URL")
    query = parse_qs(urlsplit(url).query) if isinstance(url, str) else {}
    service = _number(query.get("service_id", [""])[0])
    if not isinstance(url, str) or service is None or "device_id" not in query:
        raise ConnectionFailed(
            "Lark sent no address with device_id and service_id; it is tried again"
        )
    return SocketEndpoint(url=url, service=service, config=config.updated(data.get("ClientConfig")))


def _bounded(value: JsonValue, former: int) -> int:
    number = _whole(value)
    return former if number is None else min(max(number, LEAST_INTERVAL_S), MOST_INTERVAL_S)


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
