"""The routes of the web front end."""

import gzip
from collections.abc import Sequence
from functools import partial
from typing import Final

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agent_core.assembly.storage.attachments import UserAttachments
from agent_core.kernel import Clock, JsonObject
from agent_core.kernel.json import as_object, decode, encode
from tiller_server.agent_client.connection import AgentRefused
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.web.access import LOGIN_S, Access
from tiller_server.web.blobs import BlobRoutes
from tiller_server.web.event_stream import FIRST, HEADERS, EventResponse, read_positions
from tiller_server.web.guard import GuardedRoute, RequestRefused, cookies, refused
from tiller_server.web.login_page import login_page
from tiller_server.web.methods import ROLE_HEADER, objection
from tiller_server.web.options import WebOptions
from tiller_server.web.page import asset, page, takes_gzip
from tiller_server.web.session_feed import SessionFeeds
from tiller_server.web.shares.share_routes import ShareRoutes
from tiller_server.web.shares.share_store import ShareStore
from tiller_server.web.tasks.openapi import openapi_route
from tiller_server.web.tasks.task_book import TaskBook
from tiller_server.web.tasks.task_routes import TaskRoutes

MAX_ID: Final = 200
LEAST_ZIPPED: Final = 16 << 10
"""Bytes of an answer that is compressed: the list of all models has 170 KiB, and a phone may be far away."""
SERVER_CANCELLED: Final = -32802


class WebApp:
    """The routes and their shared state."""

    def __init__(
        self, link: DaemonLink, access: Access, options: WebOptions, *, clock: Clock
    ) -> None:
        """Prepare it.

        Args:
            link: The daemon.
            access: Tokens and logins.
            options: How the server is started.
            clock: Time.
        """
        self._link = link
        self._access = access
        self._options = options
        self._limits = options.limits
        attachments = UserAttachments(options.paths, options.env)
        self._blobs = BlobRoutes(attachments, role=options.role, limits=options.limits)
        self._streams: set[EventResponse] = set()
        self.feeds: Final = SessionFeeds(link)
        """The subscriptions that streams share; its `run` has to run."""
        self._is_closed = False
        book = TaskBook(link, options.paths, role=options.role, clock=clock)
        self._api: Sequence[GuardedRoute] = (
            *TaskRoutes(book, self._stream, limits=options.limits).routes(),
            *ShareRoutes(
                link,
                ShareStore(options.paths.web / "shares", clock=clock),
                role=options.role,
                limits=options.limits,
                clock=clock,
            ).routes(),
        )

    def routes(self) -> Sequence[GuardedRoute]:
        """Return all routes."""
        return (
            GuardedRoute("/", self._page, method="GET", is_public=True),
            *self._login_page(),
            GuardedRoute("/assets/{name}", self._asset, method="GET", is_public=True),
            GuardedRoute("/healthz", self._health, method="GET", is_public=True),
            GuardedRoute(
                "/v1/login",
                self._log_in,
                method="POST",
                is_public=True,
                max_bytes=self._limits.max_login_bytes,
            ),
            GuardedRoute(
                "/v1/logout", self._log_out, method="POST", max_bytes=self._limits.max_login_bytes
            ),
            GuardedRoute(
                "/v1/rpc", self._call, method="POST", max_bytes=self._limits.max_request_bytes
            ),
            GuardedRoute("/v1/events", self._events, method="GET"),
            *self._blobs.routes(),
            *self._api,
            openapi_route(self._api, cookie=self._access.cookie),
        )

    def close(self) -> None:
        """End all streams, and each that comes later; runs go on."""
        self._is_closed = True
        for stream in self._streams:
            stream.close()

    def _login_page(self) -> Sequence[GuardedRoute]:
        codes = self._access.codes
        if codes is None:
            return ()

        async def page(_request: Request) -> Response:
            codes.offer()
            return login_page()

        return (GuardedRoute("/login", page, method="GET", is_public=True),)

    async def _page(self, request: Request) -> Response:
        is_logged_in = self._access.is_logged_in(cookies(request, self._access.cookie))
        if self._access.codes is not None and not is_logged_in:
            return RedirectResponse("/login", 303)
        return await to_thread.run_sync(page, self._options.page)

    async def _asset(self, request: Request) -> Response:
        name = str(request.path_params["name"])
        zipped = takes_gzip(request)
        return await to_thread.run_sync(partial(asset, self._options.page, name, zipped=zipped))

    async def _health(self, _request: Request) -> Response:
        return Response(status_code=204)

    async def _log_in(self, request: Request) -> Response:
        if wait_s := self._access.wait_s():
            return refused(429, "too many logins; wait", wait_s=wait_s)
        has_codes = self._access.codes is not None
        field = "code" if has_codes else "token"
        typed = (await _body(request)).get(field)
        if not isinstance(typed, str):
            return refused(400, f'the body must be {{"{field}": "…"}}')
        self._access.count_try()
        log_in = self._access.log_in_by_code if has_codes else self._access.log_in
        value = log_in(typed)
        if value is None:
            why = (
                "the code is wrong or no longer valid; open the page again for a new one"
                if has_codes
                else "the token is wrong or was used before; start tiller web again"
            )
            return refused(401, why)
        answer = Response(status_code=204)
        answer.set_cookie(
            self._access.cookie,
            value,
            max_age=int(LOGIN_S),
            httponly=True,
            samesite="strict",
            secure=self._access.is_secure,
        )
        return answer

    async def _log_out(self, request: Request) -> Response:
        _ = await request.body()
        self._access.log_out(cookies(request, self._access.cookie))
        answer = Response(status_code=204)
        answer.delete_cookie(
            self._access.cookie,
            httponly=True,
            samesite="strict",
            secure=self._access.is_secure,
        )
        return answer

    async def _call(self, request: Request) -> Response:
        body = await _body(request)
        method, given = body.get("method"), body.get("params")
        if not isinstance(method, str) or not (given is None or isinstance(given, dict)):
            return refused(400, 'the body must be {"method": "agent/…", "params": {…}}')
        params = as_object(given)
        refusal = objection(method, params, role=self._options.role, asked=self._link.asked)
        if refusal is not None:
            return await self._answer(request, {"error": refusal.wire()})
        try:
            result = await self._link.request(method, params)
        except AgentRefused as error:
            return await self._answer(request, {"error": _wire(error)})
        return await self._answer(request, {"result": result})

    async def _answer(self, request: Request, answer: JsonObject) -> Response:
        """Return an answer that names the role, so that a page offers nothing that would be refused."""
        headers = {ROLE_HEADER: self._options.role, "vary": "accept-encoding"}
        data = encode(answer)
        if len(data) >= LEAST_ZIPPED and takes_gzip(request):
            data = await to_thread.run_sync(partial(gzip.compress, data, 1, mtime=0))
            headers["content-encoding"] = "gzip"
        return Response(data, media_type="application/json", headers=headers)

    async def _events(self, request: Request) -> Response:
        sessions = [*dict.fromkeys(request.query_params.get("sessions", "").split(","))]
        if len(sessions) > self._limits.max_sessions or not all(_is_id(one) for one in sessions):
            return refused(
                400, f"sessions must be 1 to {self._limits.max_sessions} ids with commas between"
            )
        return await self._stream(request, sessions)

    async def _stream(self, request: Request, sessions: Sequence[str]) -> Response:
        """Answer with the events of sessions, after the last one that the browser has."""
        if len(self._streams) >= self._limits.max_streams:
            return refused(
                503, f"{self._limits.max_streams} streams are open; close a tab", wait_s=5
            )
        try:
            found = [one for one in sessions if await self._exists(one)]
        except AgentRefused as error:
            # Any other status than 200 would end the attempts of an EventSource for good.
            return Response(FIRST + f": {_line(error)}\n\n".encode(), headers={**HEADERS})
        if not found:
            return Response(status_code=204)
        last = request.headers.get("last-event-id") or request.query_params.get("after")
        positions = read_positions(last, sessions)
        stream = EventResponse(
            self._link,
            self.feeds,
            found,
            positions,
            has_plain_ids=len(sessions) == 1,
            streams=self._streams,
            limits=self._limits,
        )
        if self._is_closed:
            stream.close()
        return stream

    async def _exists(self, session: str) -> bool:
        """Return whether a session can be followed; it is loaded."""
        try:
            _ = await self._link.request("agent/session/stats", {"session": session})
        except AgentRefused as error:
            if error.data.get("kind") == "SessionNotFound":
                return False
            raise
        return True


async def _body(request: Request) -> JsonObject:
    try:
        body = decode(await request.body())
    except (ValueError, RecursionError) as error:
        raise RequestRefused(refused(400, "the body is not JSON")) from error
    return as_object(body)


def _wire(error: AgentRefused) -> JsonObject:
    """Return the error of the agent; a daemon that was lost in between is one that may be asked again."""
    if error.code is None:
        data: JsonObject = {"retryable": True, "retriggerRequest": True}
        return {"code": SERVER_CANCELLED, "message": _line(error), "data": data}
    return {"code": error.code, "message": str(error), "data": error.data}


def _line(error: AgentRefused) -> str:
    return " ".join(str(error).split())


def _is_id(text: str) -> bool:
    return 0 < len(text) <= MAX_ID and text.isprintable() and not {*text} & {" ", ":", ","}
