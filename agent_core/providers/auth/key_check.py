"""Tests an API key at its provider before it is stored, with a request that costs nothing."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Literal

from agent_core.kernel import JsonObject, json
from agent_core.kernel.text import one_line
from agent_core.kernel.values import Value
from agent_core.providers.catalog.catalogue import ProviderInfo
from agent_core.providers.http.client import JsonRequest, JsonRequestFailed, request_json
from agent_core.providers.wire.anthropic.request import VERSION

KEY_HEADERS: Final[Mapping[str, str]] = {
    "anthropic-messages": "x-api-key",
    "google-generative-ai": "x-goog-api-key",
}
"""APIs whose keys do not go into `Authorization`."""
LIMIT_S: Final = 10.0
MOST_CHARS: Final = 200


class KeyCheck(Value, frozen=True, kw_only=True):
    """Result of a test of a key."""

    status: Literal["accepted", "refused", "unknown"]
    """`unknown`: the provider offers no test, could not be reached, or answered something else."""
    detail: str = ""
    """Reason, as a clause; empty: accepted, or no test is known."""


async def check_key(provider: ProviderInfo, key: str) -> KeyCheck:
    """Ask the provider whether it takes a key. Nothing is raised: a key that cannot be tested can still be right."""
    if not provider.key_check or not provider.base_url:
        return KeyCheck(status="unknown")
    name = KEY_HEADERS.get(provider.api or "")
    headers = {"authorization": f"Bearer {key}"} if name is None else {name: key}
    if provider.api == "anthropic-messages":
        headers["anthropic-version"] = VERSION
    base_url = provider.base_url.rstrip("/")
    if provider.key_check.startswith("/v1/"):
        # People write the address of such a server with and without its version.
        base_url = base_url.removesuffix("/v1")
    request = JsonRequest(
        url=f"{base_url}{provider.key_check}", headers={**provider.headers, **headers}
    )
    try:
        reply = await request_json(request, limit_s=LIMIT_S)
    except JsonRequestFailed as error:
        return KeyCheck(status="unknown", detail=str(error))
    if reply.status == HTTPStatus.OK:
        return KeyCheck(status="accepted")
    message = _message(reply.body, key)
    detail = f"status {reply.status}{f': {message}' if message else ''}"
    return KeyCheck(
        status="refused" if _is_wrong(reply.status, message.lower()) else "unknown", detail=detail
    )


def _is_wrong(status: int, message: str) -> bool:
    """Return whether an answer means a wrong key. A key whose rights are limited is not wrong: it may not list models."""
    if "scope" in message or "permission" in message:
        return False
    # Google and xAI answer 400 to a wrong key.
    return status == HTTPStatus.UNAUTHORIZED or (
        status == HTTPStatus.BAD_REQUEST and "api key" in message
    )


def _message(body: JsonObject, key: str) -> str:
    """Return the message of an error without the key, which some providers repeat; empty: it has none."""
    error = body.get("error")
    text = error if isinstance(error, str) else json.as_object(error).get("message")
    if not isinstance(text, str):
        text = body.get("message")
    return one_line(text.replace(key, "…"))[:MOST_CHARS] if isinstance(text, str) else ""
