"""Logs in with a browser anywhere: the user types a code there, and this process asks until that is done."""

from collections.abc import Callable
from http import HTTPStatus
from typing import ClassVar

from agent_core.kernel import Clock, JsonObject
from agent_core.kernel.values import SecretValue
from agent_core.providers.auth.oauth import (
    DeviceFacts,
    LoginFailed,
    StoredTokens,
    exchanged,
    tokens_of,
)
from agent_core.providers.http.client import (
    JsonRequest,
    JsonRequestFailed,
    SendJson,
    request_json,
)

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
USUAL_INTERVAL_S = 5.0
LEAST_INTERVAL_S = 0.1
"""Of a provider that says 0: it is not asked without a pause."""
SLOWER_S = 5.0
USUAL_LIFE_S = 900.0
LONGEST_LIFE_S = 3_600.0


class DeviceCode(SecretValue, frozen=True, kw_only=True):
    """A device code. The user sees `url` and `code`; `secret` is never shown."""

    hidden: ClassVar = frozenset({"secret"})

    url: str
    code: str
    """To be typed in there."""
    secret: str
    interval_s: float
    lives_s: float


ShowCode = Callable[[DeviceCode], None]


async def log_in_with_code(
    facts: DeviceFacts, *, show: ShowCode, clock: Clock, ask: SendJson = request_json
) -> StoredTokens:
    """Wait until the user has typed in the code, and give what opens the provider.

    Raises:
        LoginFailed: The user or the provider refused, or the code ended before it was typed in.
    """
    device = await _device_code(facts, ask)
    show(device)
    body = await _tokens(facts, device, clock, ask)
    tokens = tokens_of(body, clock.now_ms())
    if not facts.exchange_url:
        return tokens
    return await exchanged(facts, tokens.access, ask=ask)


async def _device_code(facts: DeviceFacts, ask: SendJson) -> DeviceCode:
    form = {"client_id": facts.client_id, "scope": facts.scope}
    try:
        reply = await ask(JsonRequest(url=facts.device_url, method="POST", form=form))
    except JsonRequestFailed as error:
        raise LoginFailed(str(error)) from None
    body = reply.body
    secret, code = _text(body, "device_code"), _text(body, "user_code")
    url = _text(body, "verification_uri") or _text(body, "verification_url")
    if reply.status != HTTPStatus.OK or not secret or not code or not url:
        message = f"the provider gave no code (status {reply.status}); try again"
        raise LoginFailed(message)
    return DeviceCode(
        url=url,
        code=code,
        secret=secret,
        interval_s=max(_number(body, "interval", USUAL_INTERVAL_S), LEAST_INTERVAL_S),
        lives_s=min(_number(body, "expires_in", USUAL_LIFE_S), LONGEST_LIFE_S),
    )


async def _tokens(
    facts: DeviceFacts, device: DeviceCode, clock: Clock, ask: SendJson
) -> JsonObject:
    form = {"client_id": facts.client_id, "device_code": device.secret, "grant_type": GRANT}
    question = JsonRequest(url=facts.token_url, method="POST", form=form)
    interval_s = device.interval_s
    ends_s = clock.monotonic_s() + device.lives_s
    while clock.monotonic_s() < ends_s:
        await clock.sleep(interval_s)
        try:
            reply = await ask(question)
        except JsonRequestFailed:
            # A network that is gone for a moment is no reason to let the user begin again.
            continue
        if isinstance(reply.body.get("access_token"), str):
            return reply.body
        match reply.body.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                interval_s = max(_number(reply.body, "interval", 0), interval_s + SLOWER_S)
            case "access_denied":
                raise LoginFailed("the login was refused in the browser")
            case "expired_token":
                break
            case other:
                said = reply.body.get("error_description") or other or f"status {reply.status}"
                message = f"the provider refused the login: {said}"
                raise LoginFailed(message)
    raise LoginFailed("the code ended before it was typed in; try again")


def _text(body: JsonObject, key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _number(body: JsonObject, key: str, usual: float) -> float:
    value = body.get(key)
    return float(value) if isinstance(value, int | float) else usual
