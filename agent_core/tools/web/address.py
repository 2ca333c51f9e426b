"""The addresses of web pages: their form, and the check that they are public."""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from agent_core.kernel.errors import ToolError

MOST_URL_CHARS: Final = 4_000
SCHEMES: Final = frozenset({"http", "https"})
PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_PLACE = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host; raises OSError when it has none."""


def clean_url(text: str) -> str:
    """Return an address in the one form in which it is judged, shown and requested: with a scheme, without a fragment.

    Raises:
        ValueError: It is not the address of a web page; the text says why.
    """
    url = text.strip()
    if len(url) > MOST_URL_CHARS:
        message = f"the URL has {len(url)} characters, at most {MOST_URL_CHARS} are sent"
        raise ValueError(message)
    if not url.isprintable() or " " in url or "\\" in url:
        message = (
            "the URL contains a blank, a backslash or an invisible character: encode it as %XX"
        )
        raise ValueError(message)
    if _SCHEME.match(url) is None:
        url = f"https://{url.removeprefix('//')}"
    parts = urlsplit(url)
    if parts.scheme.lower() not in SCHEMES:
        message = f"only http and https are fetched, not {parts.scheme!r}"
        raise ValueError(message)
    # Only what every reader of URLs understands alike: the host that is judged must be the one that is reached.
    place = _PLACE.fullmatch(parts.netloc)
    if place is None or int(place[2] or 1) not in range(1, 65_536):
        message = (
            f"{parts.netloc!r} is not a host that can be fetched: write host or host:port without a user and a "
            "password, and names of other alphabets in their xn-- form"
        )
        raise ValueError(message)
    return urlunsplit(
        (parts.scheme.lower(), parts.netloc.lower(), parts.path or "/", parts.query, "")
    )


def host_of(url: str) -> str:
    """Return the host of a clean URL, without port, brackets and final dot."""
    return (urlsplit(url).hostname or "").removesuffix(".")


def port_of(url: str) -> int:
    """Return the port of a clean URL."""
    parts = urlsplit(url)
    return parts.port or PORTS[parts.scheme]


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the internet, also where one form holds another."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.teredo is not None:
            return False
    return ip.is_global and not ip.is_multicast


class PublicHosts:
    """Resolver of hosts that returns only addresses that may be reached."""

    def __init__(self, resolve: Resolve, *, private: Sequence[str] = ()) -> None:
        """Create the resolver.

        Args:
            resolve: Looks a host up.
            private: Hosts whose private addresses may be reached.
        """
        self._resolve = resolve
        self._private = frozenset(one.lower().removesuffix(".") for one in private)

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, in the order in which they are tried.

        Raises:
            ToolError: It has none, or one that is not public.
        """
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            message = f"The host {host} has no address ({_reason(error)}): check the URL."
            raise ToolError(message) from None
        if host.lower().removesuffix(".") in self._private:
            return found
        for address in found:
            if not is_public(address):
                shown = host if host == address else f"{host} has the address {address}, which"
                message = (
                    f"{shown} is private to this machine or its network, and is not fetched. "
                    "The user can allow the host in their settings.json: web.privateHosts."
                )
                raise ToolError(message)
        return found


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
