"""Logs in with a browser on this machine: a secret that never leaves it, and a port to which the browser comes back."""

import base64
import errno
import hashlib
import html
import secrets
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import ClassVar, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import anyio.abc
from anyio.streams.stapled import MultiListener

from agent_core.kernel import Clock
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.auth.oauth import (
    LoginFailed,
    PkceFacts,
    StoredKey,
    StoredTokens,
    tokens_for_code,
)
from agent_core.providers.http.client import SendJson, request_json

LOGIN_S = 300.0
REQUEST_S = 10.0
REQUEST_BYTES = 16 * 1024
HERE = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
"""Addresses that a browser may resolve `localhost` to; another local user could listen on one that is free."""
PORT_ATTEMPTS = 8
NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})
PAGE = "<!doctype html><meta charset=utf-8><title>Tiller</title><p>{}</p>"
DONE = "You are logged in. This window can be closed."

ShowUrl = Callable[[str], None]


class _Attempt(SecretValue, frozen=True, kw_only=True):
    """State of one login, known to this process only."""

    hidden: ClassVar = frozenset({"state", "verifier"})

    redirect: str
    state: str
    verifier: str


class _Request(Value, frozen=True, kw_only=True):
    """A request of a browser."""

    target: str
    hosts: tuple[str, ...]
    """Each header `Host`, in lower case; an honest request has one."""


async def log_in_with_browser(
    facts: PkceFacts,
    *,
    show: ShowUrl,
    clock: Clock,
    ask: SendJson = request_json,
    limit_s: float = LOGIN_S,
) -> StoredKey | StoredTokens:
    """Wait until the user has logged in, and give what opens the provider.

    Args:
        facts: Where to log in.
        show: Takes the address that the user must open.
        clock: Time, to say when tokens end.
        ask: Sends requests.
        limit_s: How long the user is waited for.

    Raises:
        LoginFailed: The user or the provider refused, nobody came, or the port is taken.
    """
    try:
        port, sockets = _listening(facts.callback_port)
    except OSError as error:
        message = f"port {facts.callback_port} of this machine is taken ({error.strerror}); free it and try again"
        raise LoginFailed(message) from None
    listeners = [await anyio.abc.SocketListener.from_socket(one) for one in sockets]
    async with MultiListener(listeners) as listener:
        attempt = _attempt(facts, port)
        show(authorize_url(facts, attempt))
        code = await _code(listener, facts, attempt, limit_s=limit_s)
    form = {"code": code, "code_verifier": attempt.verifier, "redirect_uri": attempt.redirect}
    return await tokens_for_code(facts, form, clock.now_ms(), ask=ask)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def authorize_url(facts: PkceFacts, attempt: _Attempt) -> str:
    """Return the address at which the user logs in."""
    challenge = {
        "code_challenge": challenge_of(attempt.verifier),
        "code_challenge_method": "S256",
    }
    if facts.style == "key":
        query = {"callback_url": attempt.redirect, **challenge}
    else:
        query = {
            "response_type": "code",
            "client_id": facts.client_id,
            "redirect_uri": attempt.redirect,
            "scope": facts.scope,
            "state": attempt.state,
            **challenge,
        }
    mark = "&" if urlsplit(facts.authorize_url).query else "?"
    return f"{facts.authorize_url}{mark}{urlencode(query)}"


def _attempt(facts: PkceFacts, port: int) -> _Attempt:
    state = secrets.token_urlsafe(24)
    # Where no state comes back in the query, the path is it: nobody else can end this login.
    path = f"/callback/{state}" if facts.style == "key" else "/callback"
    return _Attempt(
        redirect=f"http://localhost:{port}{path}", state=state, verifier=secrets.token_urlsafe(48)
    )


def _listening(wanted: int, attempts: int = PORT_ATTEMPTS) -> tuple[int, list[socket.socket]]:
    """Listen on both loopback addresses, on one port; on 127.0.0.1 alone where there is no `::1`.

    Args:
        wanted: The port; 0 for any that is free on both.
        attempts: How many ports are tried when any will do.

    Raises:
        OSError: The port is taken on one of them.
    """
    port, sockets = wanted, list[socket.socket]()
    try:
        for host, family in HERE:
            if made := _bound(host, family, port):
                sockets.append(made)
                port = cast("tuple[str, int]", made.getsockname())[1]
    except OSError as error:
        for made in sockets:
            made.close()
        # A port that is free on one address may be taken on the other.
        if wanted == 0 and error.errno == errno.EADDRINUSE and attempts > 1:
            return _listening(wanted, attempts - 1)
        raise
    return port, sockets


def _bound(host: str, family: socket.AddressFamily, port: int) -> socket.socket | None:
    """Return a socket that listens; None where the machine has no such address."""
    made = None
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if sys.platform == "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
        made.settimeout(0)
    except OSError as error:
        if made is not None:
            made.close()
        if family == socket.AF_INET6 and error.errno in NO_IPV6:
            return None
        raise
    return made


async def _code(
    listener: anyio.abc.Listener[anyio.abc.SocketStream],
    facts: PkceFacts,
    attempt: _Attempt,
    *,
    limit_s: float,
) -> str:
    """Wait for the browser to bring the code; whatever else knocks is turned away."""
    found: list[str | LoginFailed] = []
    with anyio.move_on_after(limit_s):
        async with anyio.create_task_group() as group:

            async def serve(stream: anyio.abc.SocketStream) -> None:
                async with stream:
                    outcome = await _answer(stream, facts, attempt)
                if outcome is not None:
                    found.append(outcome)
                    group.cancel_scope.cancel()

            await listener.serve(serve)
    if not found:
        message = f"nobody logged in within {limit_s:g} s"
        raise LoginFailed(message)
    if isinstance(found[0], LoginFailed):
        raise found[0]
    return found[0]


async def _answer(
    stream: anyio.abc.SocketStream, facts: PkceFacts, attempt: _Attempt
) -> str | LoginFailed | None:
    request = None
    with anyio.move_on_after(REQUEST_S):
        request = await _request(stream)
    if request is None:
        return None
    if request.hosts != (urlsplit(attempt.redirect).netloc,):
        # A page elsewhere whose name was made to lead to this machine has another name.
        await _respond(
            stream, HTTPStatus.MISDIRECTED_REQUEST, "This address is not that of the login."
        )
        return None
    outcome = _outcome(request.target, facts, attempt)
    if outcome is None:
        await _respond(stream, HTTPStatus.NOT_FOUND, "There is nothing here.")
    elif isinstance(outcome, LoginFailed):
        await _respond(stream, HTTPStatus.BAD_REQUEST, f"The login failed: {outcome}")
    else:
        await _respond(stream, HTTPStatus.OK, DONE)
    return outcome


def _outcome(target: str, facts: PkceFacts, attempt: _Attempt) -> str | LoginFailed | None:
    """Read what the browser asks for; None: it is not the end of this login."""
    parts = urlsplit(target)
    if parts.path != urlsplit(attempt.redirect).path:
        return None
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if facts.style == "standard" and not secrets.compare_digest(
        query.get("state", "").encode(), attempt.state.encode()
    ):
        return None
    if "error" in query:
        return LoginFailed(query.get("error_description") or query["error"])
    return query.get("code") or LoginFailed("the browser came back without a code")


async def _request(stream: anyio.abc.SocketStream) -> _Request | None:
    """Read the head of a request for a path; None: it is something else."""
    head = bytearray()
    try:
        while b"\r\n\r\n" not in head and len(head) < REQUEST_BYTES:
            head += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return None
    first, *lines = head.partition(b"\r\n\r\n")[0].decode("ascii", "replace").split("\r\n")
    tokens = first.split(" ")
    if len(tokens) != 3 or tokens[0] != "GET" or not tokens[1].startswith("/"):  # noqa: PLR2004 - a request line
        return None
    fields = [line.partition(":") for line in lines]
    hosts = tuple(value.strip(" \t").lower() for name, _, value in fields if name.lower() == "host")
    return _Request(target=tokens[1], hosts=hosts)


async def _respond(stream: anyio.abc.SocketStream, status: HTTPStatus, text: str) -> None:
    body = PAGE.format(html.escape(text)).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    try:
        await stream.send(head.encode("ascii") + body)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
