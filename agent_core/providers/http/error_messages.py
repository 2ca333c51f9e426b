"""Error messages of failed requests: the provider, the cause, and the next step. Pure; they contain no secrets."""

import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import SplitResult, urljoin, urlsplit

from agent_core.kernel.errors import ProviderErrorKind

PAGE_HEAD = b"<"
"""No dialect's answer begins like this."""
SHOWN = 200
REDIRECTS = range(300, 400)


def web_page(provider: str) -> str:
    """Report that an address leads to something that people read."""
    return f"{provider} answered with a web page; check its base URL (baseUrl in models.json)"


def redirected(provider: str, status: int, *, url: str, location: str) -> str:
    """Return where an answer points to, without what may be secret in an address."""
    target = _split(url, location) if location else None
    if target is None or not target.hostname:
        return f"{provider} answered {status} and points nowhere; check its baseUrl in models.json"
    place = _shown(f"{origin_of(target.geturl())}{target.path}")
    return (
        f"{provider} answered {status} and points to another address ({place}), to which nothing was sent; "
        f"if you trust it, set baseUrl of {provider!r} in models.json to it"
    )


def with_advice(
    text: str, reason: ProviderErrorKind, *, status: int | None, key_source: str | None
) -> str:
    """Add to a provider's own words what the user can do, where waiting or compacting does not help."""
    said = text.rstrip(" .;")
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return f"{said}; that is a proxy: put its name and password into HTTP_PROXY or HTTPS_PROXY"
    match reason:
        case "auth":
            place = f" (key: {key_source})" if key_source else ""
            return f"{said}{place}; check the key, or sign in again (tiller auth status)"
        case "quota":
            return f"{said}; check the account's plan and balance, or choose another model"
        case "not_found" if status == HTTPStatus.NOT_FOUND:
            return f"{said}; check the model's name (tiller models list) and its baseUrl"
        case _:
            return text


def unreachable(error: BaseException, *, provider: str, url: str, proxy: str | None) -> str:
    """Return why a request could not be sent.

    Args:
        error: The exception of the connection; its causes are examined.
        provider: The provider of the request.
        url: The address of the request; only its origin is shown.
        proxy: The address of the proxy in between, with its variable; None: there is none.
    """
    place = origin_of(url) or "its address"
    if proxy is not None:
        place = f"the proxy {proxy} on the way to {place}"
    for cause in _causes(error):
        explanation = _explain(cause, place)
        if explanation is not None:
            advice = "check the proxy, or name the host in NO_PROXY" if proxy else explanation[1]
            # A certificate is checked behind the proxy too: there its own advice is the right one.
            advice = explanation[1] if isinstance(cause, ssl.SSLError) else advice
            return f"cannot reach {provider}: {explanation[0]}; {advice}"
    said = _shown(str(error) or type(error).__name__)
    if proxy is not None:
        return f"cannot reach {provider}: {place} failed ({said}); check the proxy, or name the host in NO_PROXY"
    return f"cannot reach {provider}: {place} gave no answer ({said}); try again, or check baseUrl"


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address; never user, path or query. Empty when it is none."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _explain(cause: BaseException, place: str) -> tuple[str, str] | None:
    """Return what is wrong and what to do."""
    match cause:
        case ssl.SSLCertVerificationError():
            why = _shown(cause.verify_message)
            return (
                f"the certificate of {place} is not trusted ({why})",
                "if it is your company's own, set SSL_CERT_FILE to its certificates",
            )
        case ssl.SSLError():
            why = _shown(cause.reason or "")
            return (
                f"{place} speaks no TLS that we understand ({why})",
                "check baseUrl: is it https or http?",
            )
        case socket.gaierror():
            why = _shown(cause.strerror or "")
            return (
                f"the name of {place} is not known ({why})",
                "check baseUrl and the network connection",
            )
        case ConnectionRefusedError():
            return f"{place} refuses connections", "start the server, or check baseUrl"
        case _:
            return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and all that led to it; a host with many addresses fails with one for each."""
    seen: list[BaseException] = [error]
    for each in seen:
        yield each
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        behind = (each.__cause__ or each.__context__, *inner)
        seen.extend(one for one in behind if one is not None and one not in seen)


def _split(url: str, reference: str = "") -> SplitResult | None:
    try:
        parts = urlsplit(urljoin(url, reference))
        _ = parts.port
    except ValueError:
        return None
    return parts


def _shown(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable())[:SHOWN]
