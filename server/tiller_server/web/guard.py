"""The checks of every request, in one place: their origin, their login and their size."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route, Router
from starlette.types import Message, Receive, Scope, Send

from agent_core.kernel import Clock
from tiller_server.web.access import Access
from tiller_server.web.options import WebLimits
from tiller_server.web.tasks.models import Contract

NOTHING: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADERS: Final[Sequence[tuple[str, str]]] = (
    ("content-security-policy", NOTHING),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
"""Headers of every answer, where it has none of that name."""
_log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


class GuardedRoute(Route):
    """A route, and what a request for it has to show."""

    def __init__(
        self,
        path: str,
        endpoint: Endpoint,
        *,
        method: str,
        is_public: bool = False,
        is_linked: bool = False,
        max_bytes: int = 0,
        content_type: str = "application/json",
        body_s: float | None = None,
        contract: Contract | None = None,
    ) -> None:
        """Declare it.

        Args:
            path: Path, as Starlette writes it.
            endpoint: Function that answers.
            method: Its HTTP method.
            is_public: Whether it is answered without a login.
            is_linked: Whether links of other sites may lead to it, and its path is a secret.
            max_bytes: Largest body.
            content_type: Type of the body.
            body_s: Time for the body to arrive; None: the usual one.
            contract: Its part of the OpenAPI document; None: it is in none.
        """
        super().__init__(path, endpoint, methods=[method])
        self.is_linked = is_linked
        self.contract = contract
        self.is_public = is_public
        self.max_bytes = max_bytes
        self.content_type = content_type
        self.body_s = body_s


class RequestRefused(Exception):
    """A request is refused while it is handled; `answer` says why."""

    def __init__(self, answer: Response) -> None:
        super().__init__()
        self.answer = answer


def refused(status: int, why: str, *, wait_s: int = 0) -> Response:
    """Return the answer to a request that is refused."""
    headers = {"retry-after": str(wait_s)} if wait_s else {}
    return JSONResponse({"error": {"message": why}}, status_code=status, headers=headers)


class Guard:
    """An ASGI application that checks requests, then passes them on to the routes."""

    def __init__(
        self,
        routes: Sequence[GuardedRoute],
        *,
        origins: Mapping[str, str],
        public: str | None,
        access: Access,
        limits: WebLimits,
        clock: Clock,
    ) -> None:
        """Serve the routes.

        Args:
            routes: All of them.
            origins: Origin of the page for each value of the header Host that is answered.
            public: Origin that links of answers have; None: that of the request.
            access: Tokens and logins.
            limits: Limits of one browser.
            clock: Time.
        """
        self.routes = routes
        self._router = Router(routes)
        self._origins = origins
        self._public = public
        self._access = access
        self._limits = limits
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        began_s = self._clock.monotonic_s()
        status = 0

        async def out(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                message = {**message, "headers": _with_headers(message["headers"])}
            with anyio.move_on_after(self._limits.send_s) as sending:
                await send(message)
            if sending.cancelled_caught:
                _abort(scope)
                raise anyio.ClosedResourceError

        route = self._route(scope)
        path = route.path if route is not None and route.is_linked else request.url.path[:200]
        try:
            await self._answer(request, route, receive, out)
        except anyio.ClosedResourceError:
            _log.info("%s was closed: its reader has stopped", path)
        except Exception:  # noqa: BLE001 - every request is answered
            _log.exception("A request failed")
            if status == 0:
                failed = refused(500, "the server failed; its log has the details")
                await failed(scope, receive, out)
        finally:
            took_ms = (self._clock.monotonic_s() - began_s) * 1000
            _log.info("%s %r %d %.0f ms", request.method, path, status, took_ms)

    async def _answer(
        self, request: Request, route: GuardedRoute | None, receive: Receive, out: Send
    ) -> None:
        answer = self._objection(request, route)
        if answer is None:
            max_bytes = 0 if route is None else route.max_bytes
            body_s = self._limits.body_s if route is None else route.body_s or self._limits.body_s
            limited = _limited(request, receive, max_bytes=max_bytes, body_s=body_s)
            try:
                await self._router(request.scope, limited, out)
            except RequestRefused as error:
                answer = error.answer
        if answer is not None:
            await answer(request.scope, receive, out)

    def _route(self, scope: Scope) -> GuardedRoute | None:
        return next((one for one in self.routes if one.matches(scope)[0] is Match.FULL), None)

    def _objection(self, request: Request, route: GuardedRoute | None) -> Response | None:
        hosts = request.headers.getlist("host")
        own = self._origins.get(hosts[0].lower()) if len(hosts) == 1 else None
        if own is None:
            return refused(421, "this server does not answer to that Host")
        request.state.origin = self._public or own
        bearer = _bearer(request)
        return (
            _malformed(request, route)
            or _foreign(request, route, own=own, has_bearer=bearer is not None)
            or self._stranger(request, route, bearer=bearer)
            or _oversized(request, route)
        )

    def _stranger(
        self, request: Request, route: GuardedRoute | None, *, bearer: str | None
    ) -> Response | None:
        if bearer is not None:
            if self._access.is_bearer(bearer):
                return None
            if wait_s := self._access.wait_s():
                return refused(429, "too many wrong tokens; wait", wait_s=wait_s)
            self._access.count_try()
            return refused(401, "the token is wrong")
        if route is not None and route.is_public:
            return None
        if self._access.is_logged_in(cookies(request, self._access.cookie)):
            return None
        return refused(401, "log in first: open the URL that tiller web has printed")


def origin_of(request: Request) -> str:
    """Return the origin that links of the answer have."""
    return str(request.state.origin)


def cookies(request: Request, name: str) -> Sequence[str]:
    """Return all values of a cookie: another server of this machine may have set one of the same name."""
    pairs = (
        pair.strip().partition("=")
        for line in request.headers.getlist("cookie")
        for pair in line.split(";")
    )
    return [value for key, _, value in pairs if key == name]


def _foreign(
    request: Request, route: GuardedRoute | None, *, own: str, has_bearer: bool
) -> Response | None:
    """Refuse what another page sends; where there is no sign of the page it needs the token of scripts."""
    origins = request.headers.getlist("origin")
    sites = request.headers.getlist("sec-fetch-site")
    if any(one != own for one in origins) or len(origins) > 1:
        return refused(403, "the request comes from another origin")
    is_open = route is not None and route.is_public and request.method == "GET"
    allowed = {"same-origin", "none"} if is_open else {"same-origin"}
    is_followed = route is not None and route.is_linked and _is_navigation(request)
    if not is_followed and any(one not in allowed for one in sites):
        return refused(403, "the request comes from another site")
    if is_open or origins or has_bearer:
        return None
    if request.method == "GET" and sites:
        return None
    return refused(403, "the request has no Origin; scripts send Authorization: Bearer TOKEN")


def _is_navigation(request: Request) -> bool:
    """Return whether a person follows a link, which shows another site nothing of the answer."""
    modes = request.headers.getlist("sec-fetch-mode")
    targets = request.headers.getlist("sec-fetch-dest")
    return modes == ["navigate"] and targets == ["document"]


def _bearer(request: Request) -> str | None:
    given = request.headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _has_type(request: Request, expected: str) -> bool:
    types = request.headers.getlist("content-type")
    kind = types[0].partition(";")[0].strip().lower() if len(types) == 1 else ""
    return kind == expected


def _malformed(request: Request, route: GuardedRoute | None) -> Response | None:
    is_served = request.method in {"GET", "POST"} or (request.method == "PUT" and route is not None)
    if not is_served:
        return refused(405, f"the method {request.method[:20]} is not served")
    # A form cannot send either type: another page would have to ask for permission first.
    expected = "application/json" if route is None else route.content_type
    if request.method != "GET" and not _has_type(request, expected):
        return refused(415, f"the content type must be {expected}")
    return None


def _oversized(request: Request, route: GuardedRoute | None) -> Response | None:
    max_bytes = 0 if route is None else route.max_bytes
    declared = request.headers.get("content-length", "0")
    is_number = declared.isascii() and declared.isdigit()
    return None if is_number and int(declared) <= max_bytes else _too_large(max_bytes)


def _too_large(max_bytes: int) -> Response:
    return refused(413, f"the body is larger than {max_bytes} bytes")


def _limited(request: Request, receive: Receive, *, max_bytes: int, body_s: float) -> Receive:
    """Return a function that reads the body and counts it; GET has none, and a stream waits in it for its end."""
    got = 0
    is_whole = request.method == "GET"
    deadline_s = anyio.current_time() + body_s

    async def read() -> Message:
        nonlocal got, is_whole
        if is_whole:
            return await receive()
        message: Message | None = None
        with anyio.CancelScope(deadline=deadline_s):
            message = await receive()
        if message is None:
            raise RequestRefused(refused(408, "the body did not arrive in time"))
        got += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if got > max_bytes:
            raise RequestRefused(_too_large(max_bytes))
        return message

    return read


def _with_headers(given: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    names = {name.lower() for name, _ in given}
    more = [
        (name.encode(), value.encode()) for name, value in HEADERS if name.encode() not in names
    ]
    return [*given, *more]


def _abort(scope: Scope) -> None:
    """Drop the connection at once; unsent data would keep it open."""
    abort = scope.get("state", {}).get("abort")
    if abort is not None:
        abort()
