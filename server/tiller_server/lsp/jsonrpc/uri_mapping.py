"""URIs of a client that sees the same files under other names: into a container, over WSL; stdlib only, needed at once."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from tiller_server.lsp.jsonrpc.messages import as_array, as_object

URIS: Final = frozenset(
    {"uri", "oldUri", "newUri", "targetUri", "rootUri", "scopeUri", "baseUri", "folder", "workspace", "cwd"}
    | {"folders", "uris", "open", "dirty"}
)  # fmt: skip
"""Members that hold a URI, or a list of them."""
BY_URI: Final = frozenset({"changes", "atLeast"})
"""Members whose own members are named by URIs."""
OPAQUE: Final = frozenset({"input", "text", "newText", "oldText"})
"""Members that are somebody's words, whatever is in them."""
REMEMBERED: Final = 4_096
"""Spellings of a client that are given back as they came."""
INITIALIZE: Final = b'"initialize"'

UriRewrite = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    client: str
    server: str


@dataclass(slots=True, kw_only=True)
class UriMap:
    """Turns what a client sends and is sent."""

    pairs: tuple[_Pair, ...]
    _spelt: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])

    @classmethod
    def of(cls, params: Mapping[str, object]) -> "UriMap | None":
        """Read it from the params of `initialize`; None: the client has none that makes sense."""
        options = as_object(params.get("initializationOptions")) or {}
        agent = as_object(options.get("agent")) or {}
        pairs: list[_Pair] = []
        for one in as_array(agent.get("uriMap")) or ():
            match as_object(one):
                case {"client": str(client), "server": str(server)} if client and server:
                    pairs.append(_Pair(client=client, server=server))
                case _:
                    continue
        # The longest prefix says most.
        pairs.sort(key=lambda one: len(one.client), reverse=True)
        return cls(pairs=tuple(pairs)) if pairs else None

    def inward(self, body: bytes) -> bytes:
        """Turn a message of the client; one that cannot be read is left to who refuses it."""
        return _turned(body, self._to_server)

    def outward(self, body: bytes) -> bytes:
        """Turn a message for the client."""
        return _turned(body, self._to_client)

    def _to_server(self, uri: str) -> str:
        for pair in self.pairs:
            rest = rest_of(uri, prefix=pair.client)
            if rest is None:
                continue
            turned = pair.server + rest
            self._spelt[turned] = uri
            self._spelt.move_to_end(turned)
            if len(self._spelt) > REMEMBERED:
                _ = self._spelt.popitem(last=False)
            return turned
        return uri

    def _to_client(self, uri: str) -> str:
        if uri in self._spelt:
            return self._spelt[uri]
        for pair in sorted(self.pairs, key=lambda one: len(one.server), reverse=True):
            rest = rest_of(uri, prefix=pair.server)
            if rest is not None:
                return pair.client + rest
        return uri


class Translation:
    """The map of one connection, from the moment at which its client has told it."""

    def __init__(self) -> None:
        self._map: UriMap | None = None
        self._is_introduced = False

    def inward(self, body: bytes) -> bytes:
        """Turn a message of the client; `initialize` brings the map, and is turned by it."""
        if not self._is_introduced and INITIALIZE in body:
            self._introduce(body)
        return body if self._map is None else self._map.inward(body)

    def outward(self, body: bytes) -> bytes:
        """Turn a message for the client."""
        return body if self._map is None else self._map.outward(body)

    def _introduce(self, body: bytes) -> None:
        message = as_object(_read(body)) or {}
        if message.get("method") == "initialize":
            self._is_introduced = True
            self._map = UriMap.of(as_object(message.get("params")) or {})


def rest_of(uri: str, *, prefix: str) -> str | None:
    """Return what follows a prefix, as it is spelt; None: the URI is another's. Pure.

    Schemes and hosts are compared as such: `wsl%2BUbuntu` is `wsl+ubuntu`. A prefix ends where a name ends.
    """
    if uri.startswith(prefix):
        rest = uri[len(prefix) :]
        return rest if prefix.endswith("/") or not rest or rest[0] in "/?#" else None
    try:
        one, other = urlsplit(uri), urlsplit(prefix)
    except ValueError:
        return None
    same = one.scheme == other.scheme and _host(one.netloc) == _host(other.netloc)
    if not same or not one.path.startswith(other.path):
        return None
    at = uri.find(one.path, uri.find("//") + 2 + len(one.netloc)) + len(other.path)
    rest = uri[at:]
    return rest if other.path.endswith("/") or not rest or rest[0] in "/?#" else None


def _host(netloc: str) -> str:
    return unquote(netloc).casefold()


def _turned(body: bytes, turn: UriRewrite) -> bytes:
    message = _read(body)
    if not isinstance(message, dict):
        return body
    turned = _walked(cast("object", message), turn)
    return (
        body
        if turned == message
        else json.dumps(turned, ensure_ascii=False).encode("utf-8", "surrogatepass")
    )


def _read(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _walked(value: object, turn: UriRewrite) -> object:
    if isinstance(value, list):
        return [_walked(one, turn) for one in cast("Sequence[object]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("Mapping[str, object]", value)
    return {key: _member(key, one, turn) for key, one in members.items()}


def _member(key: str, value: object, turn: UriRewrite) -> object:
    if key in OPAQUE:
        return value
    if key in URIS:
        if isinstance(value, str):
            return turn(value)
        if isinstance(value, list):
            return [
                turn(one) if isinstance(one, str) else _walked(one, turn)
                for one in cast("Sequence[object]", value)
            ]
    walked = _walked(value, turn)
    if key in BY_URI and isinstance(walked, dict):
        return {turn(name): one for name, one in cast("Mapping[str, object]", walked).items()}
    return walked
