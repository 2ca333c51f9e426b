"""How one logs in to a provider without a key, as data."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from agent_core.kernel import JsonObject, json
from agent_core.kernel.values import Value

OAuthStyle = Literal["standard", "key"]


class PkceFacts(Value, frozen=True, kw_only=True):
    """Log in with a browser on this machine, which comes back to a port of ours."""

    authorize_url: str
    token_url: str
    client_id: str = ""
    scope: str = ""
    callback_port: int = 0
    """0: any that is free; otherwise the provider takes no other."""
    style: OAuthStyle = "standard"
    """`key`: the answer is not a token but a key that does not expire."""


class DeviceFacts(Value, frozen=True, kw_only=True):
    """Log in with a browser anywhere, by typing in a code."""

    device_url: str
    token_url: str
    client_id: str
    scope: str = ""
    exchange_url: str = ""
    """Where the token is exchanged for the short-lived one that the API takes; empty: it takes the token itself."""
    exchange_headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Headers that identify the program to that address; no secrets."""


OAuthFacts = PkceFacts | DeviceFacts


def way_of(facts: OAuthFacts) -> Literal["browser", "code"]:
    """Return what the user needs: a browser on this machine, or one anywhere and a code."""
    return "browser" if isinstance(facts, PkceFacts) else "code"


def read_oauth(given: JsonObject) -> OAuthFacts:
    """Read an entry of the catalogue.

    Raises:
        ValueError: It is of no known kind.
    """

    def text(key: str) -> str:
        value = given.get(key)
        return value if isinstance(value, str) else ""

    port = given.get("callbackPort")
    match given.get("kind"):
        case "pkce":
            return PkceFacts(
                authorize_url=text("authorizeUrl"),
                token_url=text("tokenUrl"),
                client_id=text("clientId"),
                scope=text("scope"),
                callback_port=port if isinstance(port, int) else 0,
                style="key" if given.get("style") == "key" else "standard",
            )
        case "device":
            return DeviceFacts(
                device_url=text("deviceUrl"),
                token_url=text("tokenUrl"),
                client_id=text("clientId"),
                scope=text("scope"),
                exchange_url=text("exchangeUrl"),
                exchange_headers={
                    name: value
                    for name, value in json.as_object(given.get("exchangeHeaders")).items()
                    if isinstance(value, str)
                },
            )
        case other:
            message = f"{other!r} is no way to log in"
            raise ValueError(message)
