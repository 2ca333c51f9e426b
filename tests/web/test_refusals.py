"""Every refusal on every route: a route that is added has to say here what it refuses."""

import logging
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import httpx
import pytest

from agent_core.kernel import Clock
from tests.support.clients.browsers import Site, ask, opened, served
from tests.support.clients.server import Ground
from tests.support.harness.clock import FakeClock
from tiller_server.web.guard import GuardedRoute
from tiller_server.web.listen_address import ListenAddress
from tiller_server.web.options import WebLimits

pytestmark = [pytest.mark.timeout(60)]

SMALL = WebLimits(max_login_bytes=1000, max_request_bytes=10_000, max_blob_bytes=10_000)
LOGIN = {"token": "x", "code": "x"}
CALL = {"method": "agent/session/list", "params": {}}
BODIES: Mapping[str, Any] = {
    "/v1/login": LOGIN,
    "/v1/logout": {},
    "/v1/rpc": CALL,
    "/api/tasks": {"prompt": "hi"},
    "/api/tasks/{id}/cancel": {},
    "/api/shares": {"session": "s-none", "confirm": "x"},
    "/api/shares/preview": {"session": "s-none"},
    "/api/shares/{id}/revoke": {},
}
"""A body that is right, by route; any other route has none."""
BLOB = sha256(b"hello").hexdigest()
PUBLIC = {"/", "/login", "/assets/{name}", "/healthz", "/v1/login", "/s/{token}"}
PRIVATE = {
    "/v1/logout",
    "/v1/rpc",
    "/v1/events",
    "/v1/blobs/{blob}",
    "/v1/blobs/{blob}/link",
    "/api/tasks",
    "/api/tasks/{id}",
    "/api/tasks/{id}/cancel",
    "/api/sse",
    "/api/openapi.json",
    "/api/shares",
    "/api/shares/preview",
    "/api/shares/{id}/revoke",
}
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def method_of(route: GuardedRoute) -> str:
    """Return the method of a route."""
    methods = route.methods or ()
    return next((one for one in ("POST", "PUT") if one in methods), "GET")


def path_of(route: GuardedRoute) -> str:
    """Return a path that exists."""
    path = route.path.replace("{name}", "app.js").replace("{blob}", BLOB)
    path = path.replace("{id}", "none").replace("{token}", "none")
    return f"{path}?sessions=a" if "events" in path else path


def secured(answer: httpx.Response) -> None:
    """Check the headers that every answer has."""
    for name, value in HEADERS.items():
        assert answer.headers[name] == value, name
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "server" not in answer.headers


@asynccontextmanager
async def logged_in(
    ground: Ground,
    listen_address: ListenAddress,
    *,
    limits: WebLimits = SMALL,
    clock: Clock | None = None,
) -> AsyncGenerator[tuple[Site, httpx.AsyncClient]]:
    async with (
        served(ground, limits=limits, clock=clock, listen_address=listen_address) as site,
        site.page() as page,
    ):
        answer = await page.post("/v1/login", json=site.login)
        assert answer.status_code == 204
        secured(answer)
        yield site, page


async def send(
    page: httpx.AsyncClient, route: GuardedRoute, *, method: str | None = None, **more: Any
) -> httpx.Response:
    """Send the right request for a route, with something exchanged; its answer has every header."""
    chosen = method or method_of(route)
    given: dict[str, Any] = {}
    if chosen == "POST" and route.path in BODIES:
        given = {"json": BODIES[route.path]}
    elif chosen == "PUT":
        more["headers"] = {"content-type": route.content_type, **more.get("headers", {})}
        given = {"content": b"hello"}
    # The login is not what these tests use up.
    answer = await page.request(chosen, path_of(route), **{**given, **more})
    secured(answer)
    return answer


async def test_every_route_is_known_here(ground: Ground, listen_address: ListenAddress) -> None:
    async with served(ground, listen_address=listen_address) as site:
        public = PUBLIC if listen_address.needs_code else PUBLIC - {"/login"}
        assert {one.path for one in site.server.guard.routes} == public | PRIVATE
        assert {one.path for one in site.server.guard.routes if one.is_public} == public
        posts = {one.path for one in site.server.guard.routes if method_of(one) == "POST"}
        assert posts == {*BODIES}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", "127.0.0.1:{port}.evil.example", "0.0.0.0:{port}"],
)  # fmt: skip
async def test_another_host_is_refused_as_after_dns_rebinding(
    ground: Ground, listen_address: ListenAddress, host: str
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        for route in site.server.guard.routes:
            wrong = {"host": host.format(port=site.server.port)}
            assert (await send(page, route, headers=wrong)).status_code == 421, route.path


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example", ""],
)  # fmt: skip
async def test_a_foreign_origin_is_refused(
    ground: Ground, listen_address: ListenAddress, origin: str
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        for route in site.server.guard.routes:
            wrong = {"origin": origin.format(port=site.server.port)}
            assert (await send(page, route, headers=wrong)).status_code == 403, route.path


@pytest.mark.parametrize("fetched", ["cross-site", "same-site", "nonsense"])
async def test_a_request_of_another_site_is_refused(
    ground: Ground, listen_address: ListenAddress, fetched: str
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        del page.headers["origin"]
        for route in site.server.guard.routes:
            answer = await send(page, route, headers={"sec-fetch-site": fetched})
            assert answer.status_code == 403, route.path


async def test_without_a_sign_of_the_page_only_what_is_public_is_served(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        del page.headers["origin"], page.headers["sec-fetch-site"]
        for route in site.server.guard.routes:
            is_open = route.path in PUBLIC and method_of(route) == "GET"
            answer = await send(page, route)
            assert (answer.status_code != 403) == is_open, route.path


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "application/jsonp", ""],
)  # fmt: skip
async def test_a_form_is_refused(ground: Ground, listen_address: ListenAddress, kind: str) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        for route in site.server.guard.routes:
            method = "PUT" if method_of(route) == "PUT" else "POST"
            answer = await send(
                page, route, method=method, content=b"{}", headers={"content-type": kind}, json=None
            )
            assert answer.status_code == 415, route.path


async def test_without_a_login_only_what_is_public_is_served(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        value = page.cookies[site.cookie]
        for cookies in (
            {},
            {site.cookie.replace(str(site.server.port), str(site.server.port + 1)): value},
            {"tiller": value},
            {site.cookie: f"{value}x"},
            {site.cookie: ""},
        ):
            page.cookies = httpx.Cookies(cookies)
            for route in site.server.guard.routes:
                answer = await send(page, route)
                expected_refusal = route.path in PRIVATE or route.path == "/v1/login"
                assert (answer.status_code == 401) == expected_refusal, route.path


async def test_a_cookie_of_another_server_does_not_hide_ours(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        name = site.cookie
        value = page.cookies[name]
        page.cookies = httpx.Cookies()
        page.headers["cookie"] = f"{name}=theirs; {name}={value}"
        assert "result" in await ask(page, "agent/session/list")


@pytest.mark.parametrize("given", ["Bearer wrong", "Bearer", "Basic dGlsbGVyOng=", "wrong"])
async def test_a_wrong_token_of_scripts_is_refused_also_with_a_cookie(
    ground: Ground, listen_address: ListenAddress, given: str
) -> None:
    clock = FakeClock()
    async with logged_in(ground, listen_address, clock=clock) as (site, page):
        for route in site.server.guard.routes:
            clock.advance(61)  # ten tries a minute are another test
            answer = await send(page, route, headers={"authorization": given})
            assert answer.status_code == 401, route.path


async def test_a_method_that_a_route_does_not_have_is_refused(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        served_ = {(method_of(one), one.path) for one in site.server.guard.routes}
        for route in site.server.guard.routes:
            other = "GET" if method_of(route) == "POST" else "POST"
            if (other, route.path) in served_:
                continue
            body = {"json": {}, "content": None} if other == "POST" else {}
            assert (await send(page, route, method=other, **body)).status_code in {405, 413}
            served = {method_of(one) for one in site.server.guard.routes if one.path == route.path}
            for method in {"PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"} - served:
                assert (await send(page, route, method=method)).status_code == 405, route.path
        assert (await page.get("/v1/nothing")).status_code == 404


async def test_the_byte_above_the_limit_is_refused(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with (
        served(ground, limits=SMALL, listen_address=listen_address) as site,
        site.script() as page,
    ):

        async def chunks(size: int) -> AsyncGenerator[bytes]:
            yield b'{"a": "'
            yield b"x" * (size - 9)
            yield b'"}'

        for route in site.server.guard.routes:
            kind = {"content-type": route.content_type}
            size = route.max_bytes + 1
            declared = await page.request(
                method_of(route), path_of(route), content=b"x" * size, headers=kind
            )
            assert declared.status_code == 413, route.path
            secured(declared)
            if route.max_bytes:
                method, path = method_of(route), path_of(route)
                counted = await page.request(method, path, content=chunks(size), headers=kind)
                assert counted.status_code == 413, route.path
                secured(counted)
                fits = await page.request(method, path, content=chunks(size - 1), headers=kind)
                assert fits.status_code != 413, route.path
            for length in ("-1", "1e9", "9" * 30):
                wrong = await raw(site, route, length)
                assert wrong.split()[1] in {b"400", b"413"}, (route.path, wrong)


async def raw(site: Site, route: GuardedRoute, length: str) -> bytes:
    """Send a head with a length that no client library writes, and no body; return the first line of the answer."""
    reader, writer = await site.connect()
    token = "" if route.is_public else f"authorization: Bearer {site.bearer}\r\n"
    head = (
        f"{method_of(route)} {path_of(route)} HTTP/1.1\r\nhost: {site.host}\r\n"
        f"origin: {site.origin}\r\n{token}content-type: {route.content_type}\r\ncontent-length: {length}\r\n\r\n"
    )
    writer.write(head.encode())
    line = await reader.readline()
    writer.close()
    return line


async def test_a_one_off_token_is_valid_once(ground: Ground, listen_address: ListenAddress) -> None:
    async with logged_in(ground, listen_address) as (site, page):
        page.cookies = httpx.Cookies()
        again = await page.post("/v1/login", json=site.login)
        assert again.status_code == 401
        assert "set-cookie" not in again.headers


async def test_the_cookie_is_for_this_server_and_for_no_script(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with served(ground, listen_address=listen_address) as site, site.page() as page:
        answer = await page.post("/v1/login", json=site.login)
        cookie = answer.headers["set-cookie"]
        name, _, rest = cookie.partition("=")
        assert name == site.cookie
        words = {one.strip().lower() for one in rest.split(";")[1:]}
        assert {"httponly", "path=/", "samesite=strict"} <= words
        assert ("secure" in words) == name.startswith("__Host-") == listen_address.is_secure
        assert not any(word.startswith("domain") for word in words)
        assert (await page.post("/v1/logout", json={})).status_code == 204
        page.cookies = httpx.Cookies({name: rest.partition(";")[0]})
        assert (await page.post("/v1/rpc", json=CALL)).status_code == 401


async def test_ten_tries_a_minute(ground: Ground, listen_address: ListenAddress) -> None:
    clock = FakeClock()
    async with (
        served(ground, clock=clock, listen_address=listen_address) as site,
        site.page() as page,
    ):
        for _ in range(10):
            assert (await page.post("/v1/login", json=LOGIN)).status_code == 401
        late = await page.post("/v1/login", json=site.login)
        assert late.status_code == 429
        assert int(late.headers["retry-after"]) >= 1
        secured(late)
        wrong = await page.post("/v1/rpc", json=CALL, headers={"authorization": "Bearer guess"})
        assert wrong.status_code == 429
        async with site.script() as script:
            assert (await script.post("/v1/rpc", json=CALL)).status_code == 200
        clock.advance(61)
        assert (await page.post("/v1/login", json=site.login)).status_code == 204


async def test_a_head_that_does_not_end_is_cut_off(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with served(ground, limits=WebLimits(head_s=0.2), listen_address=listen_address) as site:
        for first in (b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nhost: x\r\n"):
            reader, writer = await site.connect()
            writer.write(first)
            assert await reader.read() == b""
            writer.close()
        async with site.script() as script:
            assert (await script.get("/healthz")).status_code == 204


async def test_a_body_that_does_not_end_is_refused(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with served(
        ground, limits=WebLimits(body_s=0.2, blob_s=0.2), listen_address=listen_address
    ) as site:
        for route in site.server.guard.routes:
            if route.max_bytes:
                line = await raw(site, route, "100")
                assert line.split()[1] == b"408", route.path


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"[" * 900, b'{"method": 1}', b'{"method": "a", "params": []}', b"\xff\xfe"])  # fmt: skip
async def test_a_body_that_is_no_request_is_refused(
    ground: Ground, listen_address: ListenAddress, body: bytes
) -> None:
    async with logged_in(ground, listen_address) as (_, page):
        for path in ("/v1/rpc", "/v1/login", "/api/tasks", "/api/shares", "/api/shares/preview"):
            answer = await page.post(
                path, content=body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 400, path
            secured(answer)


@pytest.mark.parametrize("named", ["", "?sessions=", "?sessions=a,,b", "?sessions=a%20b", "?sessions=a:b", "?sessions=a%0Ab", f"?sessions={'x' * 201}", f"?sessions={','.join(map(str, range(33)))}"])  # fmt: skip
async def test_ids_that_are_none_are_refused(
    ground: Ground, listen_address: ListenAddress, named: str
) -> None:
    async with logged_in(ground, listen_address) as (_, page):
        answer = await page.get(f"/v1/events{named}")
        assert answer.status_code == 400
        secured(answer)


async def test_a_session_that_is_unknown_has_no_stream(
    ground: Ground, listen_address: ListenAddress
) -> None:
    async with logged_in(ground, listen_address) as (_, page):
        answer = await page.get("/v1/events?sessions=s-unknown,s-other")
        assert (answer.status_code, answer.content) == (204, b"")
        error = (await ask(page, "agent/prompt", session="s-unknown", content="hi"))["error"]
        assert error["data"]["kind"] == "SessionNotFound"


async def test_the_log_and_the_token_file_reveal_nothing(
    ground: Ground, listen_address: ListenAddress, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with served(ground, listen_address=listen_address) as site, site.page() as page:
        assert stat.S_IMODE(site.token_file.stat().st_mode) == 0o600
        typed = next(iter(site.login.values()))
        at_first = 303 if listen_address.needs_code else 503
        assert (await page.get(f"/?token={typed}")).status_code == at_first
        assert (await page.post("/v1/login", json=site.login)).status_code == 204
        session = (await opened(page))["session"]
        secrets = (typed, site.bearer, page.cookies[site.cookie])
        assert session
    lines = [one.getMessage() for one in caplog.records if one.name.startswith("tiller_server.web")]
    assert any("'/'" in line and str(at_first) in line for line in lines)
    assert not [line for line in lines for secret in secrets if secret in line]
    assert not site.token_file.exists()
