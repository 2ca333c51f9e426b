"""Logins with a browser, here or elsewhere, give what opens a provider, and nobody else can end them."""

import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from agent_core.kernel import Clock
from agent_core.providers.auth.oauth import (
    DeviceFacts,
    LoginFailed,
    PkceFacts,
    StoredKey,
    StoredTokens,
    refreshed,
)
from agent_core.providers.auth.oauth_browser import challenge_of, log_in_with_browser
from agent_core.providers.auth.oauth_device import DeviceCode, log_in_with_code
from agent_core.providers.http.client import (
    JsonRequest,
    JsonRequestFailed,
    JsonResponse,
    request_json,
)
from tests.providers.auth.auth_server import AuthServer, auth_server
from tests.support.harness.clock import FakeClock

NOW_MS = 1_000_000
TOKENS = {"access_token": "sk-access", "refresh_token": "sk-refresh", "expires_in": 3600}


def browser_facts(server: AuthServer) -> PkceFacts:
    return PkceFacts(
        authorize_url=f"{server.url}/authorize",
        token_url=f"{server.url}/token",
        client_id="tiller",
        scope="models",
    )


def device_facts(server: AuthServer) -> DeviceFacts:
    return DeviceFacts(
        device_url=f"{server.url}/device",
        token_url=f"{server.url}/token",
        client_id="tiller",
        scope="s",
    )


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def visit(url: str, *, address: str = "127.0.0.1", host: str | None = None) -> int:
    """Do what a browser does that is sent back to us, and give the status; 0 for no answer.

    Args:
        url: Where it is sent.
        address: What it takes `localhost` for.
        host: The lines of the head behind the first, where they are not those of a browser.
    """
    parts = urlsplit(url)
    assert parts.port
    lines = f"Host: {parts.netloc}" if host is None else host.format(port=parts.port)
    async with await anyio.connect_tcp(address, parts.port) as stream:
        head = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nAccept: */*\r\n{lines}\r\n\r\n"
        await stream.send(head.encode())
        try:
            return int((await stream.receive()).split()[1])
        except anyio.EndOfStream:
            return 0


Visitor = Callable[[str], Awaitable[int]]


async def browse(
    facts: PkceFacts, *visits: str, clock: Clock, visitor: Visitor = visit
) -> tuple[object, list[int], dict[str, str]]:
    """Log in with a browser that comes back with each query in turn; `{…}` stand for values of the address."""
    shown: list[str] = []
    statuses: list[int] = []
    result: list[object] = []
    was_shown = anyio.Event()

    def show(url: str) -> None:
        shown.append(url)
        was_shown.set()

    async def log_in() -> None:
        try:
            result.append(await log_in_with_browser(facts, show=show, clock=clock, limit_s=5))
        except LoginFailed as error:
            result.append(error)

    query: dict[str, str] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(log_in)
        await was_shown.wait()
        query.update(query_of(shown[0]))
        back = query.get("redirect_uri") or query["callback_url"]
        statuses.extend([await visitor(back + one.format(**query)) for one in visits])
    return result[0], statuses, query


async def test_a_browser_brings_a_code_that_only_we_can_exchange():
    async with auth_server({"/token": [(200, TOKENS)]}) as server:
        facts = browser_facts(server)
        result, statuses, query = await browse(
            facts, "?code=c1&state={state}", clock=FakeClock(NOW_MS)
        )
        assert statuses == [200]
        assert result == StoredTokens(
            access="sk-access", refresh="sk-refresh", expires_ms=NOW_MS + 3_600_000
        )
        (asked,) = server.to("/token")
    assert (query["response_type"], query["client_id"], query["scope"]) == (
        "code",
        "tiller",
        "models",
    )
    assert query["redirect_uri"].startswith("http://localhost:")
    form = asked.form
    assert (form["grant_type"], form["code"], form["redirect_uri"], form["client_id"]) == (
        "authorization_code",
        "c1",
        query["redirect_uri"],
        "tiller",
    )
    assert query["code_challenge"] == challenge_of(form["code_verifier"])
    assert len(form["code_verifier"]) >= 43


def test_the_challenge_is_that_of_the_standard():
    # RFC 7636, appendix B.
    assert (
        challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


async def test_whoever_does_not_know_the_state_is_turned_away_and_the_login_goes_on():
    async with auth_server({"/token": [(200, TOKENS)]}) as server:
        result, statuses, _ = await browse(
            browser_facts(server),
            "?code=evil",
            "?code=evil&state=guessed",
            "?error=access_denied",
            "/other?code=evil&state={state}",
            "?code=good&state={state}",
            clock=FakeClock(NOW_MS),
        )
        assert statuses == [404, 404, 404, 404, 200]
        assert isinstance(result, StoredTokens)
        assert [one.form["code"] for one in server.to("/token")] == ["good"]


async def test_a_provider_that_gives_a_key_knows_the_state_by_the_path():
    async with auth_server({"/token": [(200, {"key": "sk-or-1"})]}) as server:
        facts = replace(browser_facts(server), style="key", client_id="")
        result, statuses, query = await browse(
            facts, "x?code=evil", "?code=c", clock=FakeClock(NOW_MS)
        )
        assert (result, statuses) == (StoredKey(key="sk-or-1"), [404, 200])
        (asked,) = server.to("/token")
        assert asked.json["code"] == "c"
        assert query["code_challenge"] == challenge_of(asked.json["code_verifier"])
        assert len(urlsplit(query["callback_url"]).path) > 30


@pytest.mark.parametrize(
    ("visits", "answer", "why"),
    [
        ("?error=access_denied&state={state}", (200, TOKENS), "access_denied"),
        ("?error=e&error_description=no+money&state={state}", (200, TOKENS), "no money"),
        ("?state={state}", (200, TOKENS), "without a code"),
        ("?code=c&state={state}", (400, {"error": "invalid_grant"}), "answered 400: invalid_grant"),
        ("?code=c&state={state}", (200, {}), "no reason given"),
        ("?code=c&state={state}", (302, {}), "answered 302"),
        ("?code=c&state={state}", (200, b"<html>"), "not JSON"),
    ],
)
async def test_a_login_that_fails_says_why(visits: str, answer: tuple[int, object], why: str):
    async with auth_server({"/token": [answer]}) as server:
        result, _, _ = await browse(browser_facts(server), visits, clock=FakeClock(NOW_MS))
    assert isinstance(result, LoginFailed)
    assert why in str(result)
    assert "sk-" not in str(result)


async def test_nobody_who_comes_ends_the_wait_and_a_taken_port_is_told():
    async with auth_server({}) as server:
        facts = browser_facts(server)
        with pytest.raises(LoginFailed, match=r"nobody logged in within 0\.05 s"):
            _ = await log_in_with_browser(
                facts, show=lambda _: None, clock=FakeClock(NOW_MS), limit_s=0.05
            )
        taken = replace(facts, callback_port=urlsplit(server.url).port or 0)
        with pytest.raises(LoginFailed, match="is taken"):
            _ = await log_in_with_browser(taken, show=lambda _: None, clock=FakeClock(NOW_MS))


HAS_IPV6 = pytest.mark.skipif(
    not Path("/proc/net/if_inet6").exists(), reason="this machine has no loopback address of IPv6"
)


@HAS_IPV6
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_the_browser_finds_us_whichever_address_it_takes_localhost_for(address: str):
    async with auth_server({"/token": [(200, TOKENS)]}) as server:
        result, statuses, _ = await browse(
            browser_facts(server),
            "?code=c1&state={state}",
            clock=FakeClock(NOW_MS),
            visitor=partial(visit, address=address),
        )
    assert statuses == [200]
    assert isinstance(result, StoredTokens)


@HAS_IPV6
@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
async def test_a_port_that_another_holds_on_either_address_is_told_before_the_browser_opens(
    family: socket.AddressFamily, address: str
):
    shown: list[str] = []
    async with auth_server({}) as server:
        with socket.socket(family, socket.SOCK_STREAM) as other:
            other.bind((address, 0))
            other.listen()
            facts = replace(browser_facts(server), callback_port=other.getsockname()[1])
            with pytest.raises(LoginFailed, match="is taken"):
                _ = await log_in_with_browser(facts, show=shown.append, clock=FakeClock(NOW_MS))
    assert shown == []


@HAS_IPV6
async def test_both_addresses_are_free_again_after_a_login():
    ports: list[int] = []

    def show(url: str) -> None:
        ports.append(urlsplit(query_of(url)["redirect_uri"]).port or 0)

    async with auth_server({}) as server:
        with pytest.raises(LoginFailed, match="nobody logged in"):
            _ = await log_in_with_browser(
                browser_facts(server), show=show, clock=FakeClock(NOW_MS), limit_s=0.05
            )
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family, socket.SOCK_STREAM) as other:
            other.bind((address, ports[0]))


@pytest.mark.parametrize(
    "lines",
    [
        "Host: evil.example",
        "Host: evil.example:{port}",
        "Host: localhost",
        "Host: localhost:1",
        "Host: localhost:{port}.evil.example",
        "Host: 127.0.0.1:{port}",
        "Host: localhost:{port}\r\nHost: evil.example",
        "X: y",
        "Host:",
    ],
)
async def test_a_request_for_another_host_brings_no_code_also_with_the_right_state(lines: str):
    async with auth_server({"/token": [(200, TOKENS)]}) as server:
        hosts = iter([lines, None])
        result, statuses, _ = await browse(
            browser_facts(server),
            "?code=evil&state={state}",
            "?code=good&state={state}",
            clock=FakeClock(NOW_MS),
            visitor=lambda url: visit(url, host=next(hosts)),
        )
        assert statuses == [421, 200]
        assert isinstance(result, StoredTokens)
        assert [one.form["code"] for one in server.to("/token")] == ["good"]


DEVICE = {
    "device_code": "sk-device",
    "user_code": "AB-CD",
    "verification_uri": "https://x/device",
    "interval": 2,
    "expires_in": 60,
}


async def test_a_device_asks_as_often_as_it_may_until_the_code_was_typed_in():
    answers = [
        (400, {"error": "authorization_pending"}),
        (200, {"error": "slow_down"}),
        (200, {"error": "authorization_pending"}),
        (200, TOKENS),
    ]
    shown: list[DeviceCode] = []
    clock = FakeClock(NOW_MS)
    async with auth_server({"/device": [(200, DEVICE)], "/token": answers}) as server:
        tokens = await log_in_with_code(device_facts(server), show=shown.append, clock=clock)
        forms = [one.form for one in server.to("/token")]
    assert tokens.access == "sk-access"
    assert [(one.url, one.code) for one in shown] == [("https://x/device", "AB-CD")]
    assert "sk-device" not in repr(shown)
    assert clock.slept == [2, 2, 7, 7]
    assert {form["device_code"] for form in forms} == {"sk-device"}
    assert {form["grant_type"] for form in forms} == {
        "urn:ietf:params:oauth:grant-type:device_code"
    }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": "access_denied"}, "refused in the browser"),
        ({"error": "expired_token"}, "ended before it was typed in"),
        ({"error": "authorization_pending"}, "ended before it was typed in"),
        ({"error": "incorrect_client_credentials"}, "incorrect_client_credentials"),
    ],
)
async def test_a_device_login_that_fails_says_why(answer: dict[str, str], why: str):
    async with auth_server({"/device": [(200, DEVICE)], "/token": [(200, answer)]}) as server:
        with pytest.raises(LoginFailed, match=why):
            _ = await log_in_with_code(
                device_facts(server), show=lambda _: None, clock=FakeClock(NOW_MS)
            )


async def test_a_token_that_must_be_exchanged_is_and_it_refreshes_itself_by_that():
    exchange = [(200, {"token": "sk-short", "expires_at": 5_000}), (403, {"message": "no Copilot"})]
    github = {"access_token": "sk-gh"}
    async with auth_server(
        {"/device": [(200, DEVICE)], "/token": [(200, github)], "/exchange": exchange}
    ) as server:
        facts = replace(
            device_facts(server),
            exchange_url=f"{server.url}/exchange",
            exchange_headers={"editor-version": "t/1"},
        )
        tokens = await log_in_with_code(facts, show=lambda _: None, clock=FakeClock(NOW_MS))
        assert tokens == StoredTokens(access="sk-short", refresh="sk-gh", expires_ms=5_000_000)
        assert server.to("/exchange")[0].headers["editor-version"] == "t/1"
        with pytest.raises(LoginFailed, match="answered 403: no Copilot"):
            _ = await refreshed(facts, tokens, NOW_MS)
        assert [one.headers["authorization"] for one in server.to("/exchange")] == [
            "token sk-gh"
        ] * 2


async def test_refreshing_keeps_the_old_token_when_no_new_one_comes():
    async with auth_server(
        {"/token": [(200, {"access_token": "new", "expires_in": 10})]}
    ) as server:
        old = StoredTokens(access="old", refresh="r", expires_ms=1)
        assert await refreshed(browser_facts(server), old, NOW_MS) == StoredTokens(
            access="new", refresh="r", expires_ms=NOW_MS + 10_000
        )
        (asked,) = server.to("/token")
        assert asked.form == {
            "grant_type": "refresh_token",
            "refresh_token": "r",
            "client_id": "tiller",
        }


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, b"<html>"), "answered 200 with something that is not JSON"),
        ((200, b"[1]"), "not JSON"),
        ((200, b"x" * 2_000_000), "not JSON"),
    ],
    ids=["html", "list", "flood"],
)
async def test_an_answer_that_is_none_is_told_with_the_host(answer: tuple[int, object], why: str):
    async with auth_server({"/x": [answer]}) as server:
        host = urlsplit(server.url).netloc
        with pytest.raises(JsonRequestFailed, match=f"{host} .*{why}"):
            _ = await request_json(JsonRequest(url=f"{server.url}/x"))


async def test_a_redirect_is_not_followed_and_a_silent_server_is_not_waited_for():
    async with auth_server({"/x": [(302, {"a": 1})]}) as server:
        question = JsonRequest(url=f"{server.url}/x", headers={"authorization": "sk-secret"})
        assert await request_json(question) == JsonResponse(status=302, body={"a": 1})
        assert "sk-secret" not in repr(question)
        server.held = anyio.Event()
        with pytest.raises(JsonRequestFailed, match=r"did not answer within 0\.1 s"):
            _ = await request_json(question, limit_s=0.1)
        server.held.set()
    with pytest.raises(JsonRequestFailed, match="cannot be reached"):
        _ = await request_json(JsonRequest(url="http://127.0.0.1:1/x"))
