"""Hooks around a request: they see and change it in the provider's own format, just before it is sent."""

from collections.abc import Mapping

from msgspec.structs import replace

from agent_core.hooks import (
    GoOn,
    HeadersBuilt,
    HeadersChanged,
    Hooks,
    PayloadBuilt,
    PayloadReplaced,
    ResponseArrived,
)
from agent_core.kernel import json
from agent_core.providers.http.request import HttpRequest

HIDDEN = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})  # fmt: skip
"""Headers that hold keys, whatever they hold."""


async def changed_by_hooks(post: HttpRequest, hooks: Hooks) -> HttpRequest:
    """Return the request as hooks want it; one that is signed stays as it is."""
    if post.signed:
        return post
    if hooks.listens(PayloadBuilt):
        payload = json.as_object(json.decode(post.body))
        match await hooks.ask(PayloadBuilt(provider=post.provider, url=post.url, payload=payload)):
            case PayloadReplaced(payload=other):
                post = replace(post, body=json.encode(other))
            case GoOn():
                pass
    if hooks.listens(HeadersBuilt):
        shown = {
            name: text for name, text in post.headers.items() if not _is_secret(name, text, post)
        }
        match await hooks.ask(HeadersBuilt(provider=post.provider, url=post.url, headers=shown)):
            case HeadersChanged(headers=changes):
                post = replace(post, headers=_changed(post.headers, changes))
            case GoOn():
                pass
    return post


async def tell_response(
    post: HttpRequest, status: int, headers: Mapping[str, str], hooks: Hooks
) -> None:
    """Notify hooks that a response has begun; `set-cookie` headers are not shown."""
    if hooks.listens(ResponseArrived):
        shown = {name: text for name, text in headers.items() if name.lower() != "set-cookie"}
        _ = await hooks.ask(ResponseArrived(provider=post.provider, status=status, headers=shown))


def _is_secret(name: str, text: str, post: HttpRequest) -> bool:
    return name.lower() in HIDDEN or any(secret in text for secret in post.secrets)


def _changed(headers: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Lay changes over headers; names count without their case."""
    named = {name.lower() for name in changes}
    kept = {name: text for name, text in headers.items() if name.lower() not in named}
    return kept | {name: text for name, text in changes.items() if text is not None}
