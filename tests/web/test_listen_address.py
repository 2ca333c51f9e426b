"""Listening beyond this machine: what is refused, who logs in with a code of the terminal, and what a proxy may say."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_core.kernel.errors import UsageError
from tests.support.clients.browsers import ask, events_of, following, opened, served
from tests.support.clients.certificates import write_certificate
from tests.support.clients.server import Ground, prompt, says
from tests.support.harness.clock import FakeClock
from tests.web.conftest import ANYWHERE, PUBLIC_NAME
from tiller_server.web.access import CODE_S
from tiller_server.web.listen_address import ListenAddress, listen, read_listen_address

pytestmark = [pytest.mark.timeout(60)]

LAN = "192.168.1.7"
PROXIED = ListenAddress(port=0, proxy="tiller.example.com")


def test_small_answers_are_sent_at_once() -> None:
    with listen(ListenAddress(port=0)) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize("address", [ANYWHERE, "::", LAN, "[::]:7500", "10.0.0.1:80"])
def test_without_protection_only_this_machine_is_listened_on(address: str) -> None:
    with pytest.raises(UsageError, match="which other machines reach: add --tls-cert"):
        read_listen_address(address)


@pytest.mark.parametrize(
    ("given", "more", "said"),
    [
        ("example.com", {}, "name an address of this machine"),
        ("127.0.0.1:x", {}, "name an address of this machine"),
        ("127.0.0.1:999999", {}, "name an address of this machine"),
        ("127.0.0.1:70000", {}, "name one from 1 to 65535"),
        ("127.0.0.1:7500", {"port": 7501}, "name one port"),
        (LAN, {"cert": Path("c.pem")}, "belong together"),
        (LAN, {"key": Path("k.pem")}, "belong together"),
        (LAN, {"proxy": "https://x.example"}, "name the public host"),
        (LAN, {"proxy": "*.example"}, "name the public host"),
        (LAN, {"proxy": "x.example/path"}, "name the public host"),
        (LAN, {"proxy": ""}, "name the public host"),
        (LAN, {"proxy": "x.example", "cert": Path("c"), "key": Path("k")}, "exclude"),
        (LAN, {"cert": Path("none.pem"), "key": Path("none.pem")}, "No such file"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused_in_one_sentence(
    given: str, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        read_listen_address(given, **more)
    assert "\n" not in str(refused.value)


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    ours, theirs, nobody = tmp_path / "ours", tmp_path / "theirs", tmp_path / "nobody"
    for folder in (ours, theirs, nobody):
        folder.mkdir()
    cert, _ = write_certificate(ours, PUBLIC_NAME)
    _, key = write_certificate(theirs, PUBLIC_NAME)
    with pytest.raises(UsageError, match="do not belong together"):
        read_listen_address(LAN, cert=cert, key=key)
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\n", "utf-8")
    with pytest.raises(UsageError, match="cannot be used"):
        read_listen_address(LAN, cert=broken, key=broken)
    expired, key = write_certificate(nobody, PUBLIC_NAME, until=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(UsageError, match="certificate has expired"):
        read_listen_address(LAN, cert=expired, key=key)
    wild, key = write_certificate(nobody, "*.example.com")
    with pytest.raises(UsageError, match="names no host"):
        read_listen_address(LAN, cert=wild, key=key)


@pytest.mark.parametrize(
    ("listen_address", "port", "hosts"),
    [
        (ListenAddress(), 7433, {"127.0.0.1:7433", "localhost:7433", "[::1]:7433"}),
        (ListenAddress(address="::1"), 1, {"[::1]:1", "127.0.0.1:1", "localhost:1"}),
        (PROXIED, 7433, {"tiller.example.com", "127.0.0.1:7433", "localhost:7433", "[::1]:7433"}),
        (ListenAddress(proxy="x.example:8443"), 1, {"x.example:8443", "127.0.0.1:1", "localhost:1", "[::1]:1"}),
    ],
)  # fmt: skip
def test_the_hosts_that_are_answered(
    listen_address: ListenAddress, port: int, hosts: set[str]
) -> None:
    assert {*listen_address.origins(port)} == hosts


def test_a_certificate_names_the_hosts_that_are_answered(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    listen_address = read_listen_address(f"{ANYWHERE}:443", cert=cert, key=key)
    assert {*listen_address.origins(443)} == {PUBLIC_NAME, "127.0.0.1", f"{PUBLIC_NAME}:443", "127.0.0.1:443"}  # fmt: skip
    assert {*listen_address.origins(7433)} == {f"{PUBLIC_NAME}:7433", "127.0.0.1:7433"}
    local = read_listen_address("127.0.0.1", cert=cert, key=key)
    assert next(iter(local.origins(1))) == "127.0.0.1:1"
    assert not local.needs_code


async def test_a_code_is_valid_once_and_for_ten_minutes(
    ground: Ground, certificate: tuple[Path, Path]
) -> None:
    clock = FakeClock()
    cert, key = certificate
    listen_address = read_listen_address(f"{ANYWHERE}:0", cert=cert, key=key)
    async with (
        served(ground, clock=clock, listen_address=listen_address) as site,
        site.page() as page,
    ):
        assert site.server.url == f"https://{PUBLIC_NAME}:{site.server.port}/login"
        assert len(site.codes) == 1
        login = await page.get("/login")
        assert login.status_code == 200
        assert "script-src 'nonce-" in login.headers["content-security-policy"]
        assert len(site.codes) == 1, "one that is valid is not replaced"
        clock.advance(CODE_S)
        assert (await page.post("/v1/login", json=site.login)).status_code == 401
        assert (await page.get("/login")).status_code == 200
        old, code = site.codes
        assert (await page.post("/v1/login", json={"code": old})).status_code == 401
        assert (await page.post("/v1/login", json={"token": code})).status_code == 400
        typed = {"code": f" {code.lower().replace('-', ' ')}"}
        assert (await page.get("/")).headers["location"] == "/login"
        assert (await page.post("/v1/login", json=typed)).status_code == 204
        assert (await page.get("/")).status_code == 503, "the page itself, which is not built here"
        assert "result" in await ask(page, "agent/session/list")
        assert (await page.post("/v1/login", json=typed)).status_code == 401
        assert len(site.codes) == 2
        assert (await page.get("/login")).status_code == 200
        assert len({*site.codes}) == 3


async def test_plain_http_is_not_spoken_on_a_port_of_https(
    ground: Ground, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    listen_address = read_listen_address(f"{ANYWHERE}:0", cert=cert, key=key)
    async with served(ground, listen_address=listen_address) as site, httpx.AsyncClient() as plain:
        with pytest.raises(httpx.TransportError):
            await plain.get(f"http://127.0.0.1:{site.server.port}/healthz")
        async with site.script() as script:
            assert (await script.get("/healthz")).status_code == 204


FORWARDED = {
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-proto": "http",
    "x-forwarded-host": "127.0.0.1",
    "forwarded": "for=127.0.0.1;host=127.0.0.1;proto=http",
}


async def test_behind_a_proxy_only_its_host_counts(ground: Ground) -> None:
    ground.provider.script([says("hello")])
    async with served(ground, listen_address=PROXIED) as site, site.page() as page:
        assert site.server.url == "https://tiller.example.com/login"
        page.headers.update(FORWARDED)
        assert (await page.get("/healthz", headers={"host": "evil.example"})).status_code == 421
        plain = {"origin": "http://tiller.example.com"}
        assert (await page.post("/v1/login", json=site.login, headers=plain)).status_code == 403
        answer = await page.post("/v1/login", json=site.login)
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-tiller-")
        assert "secure" in cookie.lower()
        page.headers["cookie"] = cookie.partition(";")[0]
        session = (await opened(page))["session"]
        async with site.script() as script, following(script, [session]) as stream:
            await ask(page, "agent/prompt", session=session, **prompt("go"))
            while (one := await stream.next()) is not None:
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    break
            # A script of this machine reaches the port without the proxy; the link is that of the proxy.
            local = {"host": f"127.0.0.1:{site.server.port}"}
            for client, headers in ((page, {}), (script, local)):
                asked = {"session": session}
                preview = await client.post("/api/shares/preview", json=asked, headers=headers)
                body = {**asked, "confirm": preview.json()["confirm"]}
                created = await client.post("/api/shares", json=body, headers=headers)
                assert created.json()["url"].startswith("https://tiller.example.com/s/")
