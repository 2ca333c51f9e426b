"""An error names the provider, what was found and what to do; and it shows no secret."""

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Listener, SocketAttribute, SocketStream
from anyio.streams.tls import TLSListener

from agent_core.kernel.errors import ProviderError
from agent_core.providers.adapters.openai_completions import OpenAICompletions
from agent_core.providers.auth.credentials import RequestCredentials
from agent_core.providers.http.client import HttpPool
from agent_core.providers.http.errors import origin_of, redirected, unreachable
from tests.providers.conftest import Pools
from tests.providers.loopback import Reply, loopback
from tests.providers.replay import LAB, ask

SECRET = "sk-test-very-secret"
PAGE = b"<!doctype html><title>Welcome</title>"
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class NamedDoor:
    """Lets every request in, and says where its key comes from."""

    def __init__(self, source: str | None) -> None:
        self._source = source

    async def credentials(self) -> RequestCredentials:
        return RequestCredentials(key=SECRET, source=self._source)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def failure(url: str, connections: HttpPool, *, source: str | None = None) -> ProviderError:
    """Ask in vain."""
    facts = replace(LAB, base_url=url)
    model = OpenAICompletions(facts, access=NamedDoor(source), pool=connections)
    told = (await ask(model)).error
    assert told is not None
    assert SECRET not in str(told)
    assert told.provider == "lab"
    return told


def refusal(message: str) -> bytes:
    return b'{"error":{"message":"%s"}}' % message.encode()


ANSWERS: Mapping[str, tuple[Reply, str, str]] = {
    "a page": (
        Reply([PAGE]),
        "protocol",
        "lab answered with a web page; check its base URL (baseUrl in models.json)",
    ),
    "a redirect elsewhere": (
        Reply(status=307, headers={"location": f"https://me:pw@other.example/v2/x?key={SECRET}#y"}),
        "not_found",
        (
            "lab answered 307 and points to another address (https://other.example/v2/x), to which nothing was "
            "sent; if you trust it, set baseUrl of 'lab' in models.json to it"
        ),
    ),
    "a redirect to nowhere": (
        Reply(status=301),
        "not_found",
        "lab answered 301 and points nowhere; check its baseUrl in models.json",
    ),
    "a wrong key": (
        Reply([refusal(f"Wrong key {SECRET}.")], status=401),
        "auth",
        "lab answered 401: Wrong key [redacted:secret] (key: environment (LAB_API_KEY)); check the key, or sign in again (tiller auth status)",
    ),
    "a key that may not": (
        Reply([refusal("Not for you")], status=403),
        "auth",
        "lab answered 403: Not for you (key: environment (LAB_API_KEY)); check the key, or sign in again (tiller auth status)",
    ),
    "no money": (
        Reply([refusal("No balance")], status=402),
        "quota",
        "lab answered 402: No balance; check the account's plan and balance, or choose another model",
    ),
    "an unknown model": (
        Reply([refusal("No model 'm'")], status=404),
        "not_found",
        "lab answered 404: No model 'm'; check the model's name (tiller models list) and its baseUrl",
    ),
    "a missing page": (
        Reply([PAGE], status=404),
        "not_found",
        (
            "lab answered 404: a web page instead of an answer; check the model's name (tiller models list) and "
            "its baseUrl"
        ),
    ),
    "a proxy that asks": (
        Reply([PAGE], status=407),
        "invalid_request",
        (
            "lab answered 407: a web page instead of an answer; that is a proxy: put its name and password into "
            "HTTP_PROXY or HTTPS_PROXY"
        ),
    ),
}


@pytest.mark.parametrize(("reply", "reason", "text"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_that_is_none_tells_what_to_do(
    reply: Reply, reason: str, text: str, pools: Pools
) -> None:
    async with loopback(replace(reply)) as server:
        told = await failure(server.url, pools(), source="environment (LAB_API_KEY)")
        assert len(server.asked) == 1
    assert (told.reason, str(told)) == (reason, text)


async def test_a_refused_key_of_unknown_origin_is_told_without_one(pools: Pools) -> None:
    async with loopback(Reply([refusal("no")], status=401)) as server:
        told = await failure(server.url, pools())
    assert str(told) == "lab answered 401: no; check the key, or sign in again (tiller auth status)"


async def test_a_redirect_within_the_server_is_told_with_its_path(pools: Pools) -> None:
    async with loopback(Reply(status=308, headers={"location": "/v1/chat"})) as server:
        told = await failure(server.url, pools())
        assert f"points to another address ({server.url}/v1/chat)" in str(told)


async def test_nobody_listening_is_told_with_the_address(pools: Pools) -> None:
    async with loopback() as server:
        url = server.url
    told = await failure(f"{url}/v1?key={SECRET}", pools())
    assert (told.reason, str(told)) == (
        "network",
        f"cannot reach lab: {url} refuses connections; start the server, or check baseUrl",
    )


async def test_a_server_that_hangs_up_is_told(pools: Pools) -> None:
    async with loopback(Reply(silent=True), Reply(silent=True)) as server:
        told = await failure(server.url, pools())
        assert str(told).startswith(f"cannot reach lab: {server.url} gave no answer (")
    assert told.reason == "network"


async def test_https_to_a_server_without_tls_is_told(pools: Pools) -> None:
    async def plain(stream: SocketStream) -> None:
        async with stream:
            _ = await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

    async with listening(plain) as port:
        told = await failure(f"https://127.0.0.1:{port}/v1", pools())
    assert told.reason == "network"
    assert f"https://127.0.0.1:{port} speaks no TLS that we understand (" in str(told)
    assert str(told).endswith("; check baseUrl: is it https or http?")


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("no certificate", "")])
async def test_certificates_that_cannot_be_read_are_named_with_their_variables(
    tmp_path: Path,
    pools: Pools,
    monkeypatch: pytest.MonkeyPatch,
    content: str | None,
    why: str,
) -> None:
    file = tmp_path / "missing.pem"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    error = await failure("https://127.0.0.1:1/v1", pools())
    assert error.reason == "invalid_request"
    assert f"the trusted certificates cannot be read ({why}" in str(error)
    assert "check the paths in SSL_CERT_FILE and SSL_CERT_DIR" in str(error)


async def test_a_certificate_of_ones_own_is_told(tmp_path: Path, pools: Pools) -> None:
    async with tls_server(tmp_path) as port:
        told = await failure(f"https://127.0.0.1:{port}/v1", pools())
    assert told.reason == "network"
    assert (
        f"cannot reach lab: the certificate of https://127.0.0.1:{port} is not trusted (self-signed "
        "certificate); if it is your company's own, set SSL_CERT_FILE to its certificates"
    ) == str(told)


async def test_a_proxy_that_is_not_there_is_named_without_what_opens_it(
    monkeypatch: pytest.MonkeyPatch, pools: Pools
) -> None:
    async with loopback() as server:
        port = server.url.rpartition(":")[2]
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{SECRET}@127.0.0.1:{port}")
    told = await failure("https://models.invalid/v1", pools())
    assert (told.reason, str(told)) == (
        "network",
        (
            f"cannot reach lab: the proxy http://127.0.0.1:{port} (HTTPS_PROXY) on the way to "
            "https://models.invalid refuses connections; check the proxy, or name the host in NO_PROXY"
        ),
    )


async def test_a_proxy_that_lets_nobody_through_is_named(
    monkeypatch: pytest.MonkeyPatch, pools: Pools
) -> None:
    async def closed(stream: SocketStream) -> None:
        async with stream:
            _ = await stream.receive()
            await stream.send(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n")

    async with listening(closed) as port:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
        told = await failure("https://models.invalid/v1", pools())
    assert told.reason == "network"
    assert f"the proxy http://127.0.0.1:{port} (ALL_PROXY)" in str(told)
    assert "407 Who are you" in str(told)
    assert "NO_PROXY" in str(told)


@pytest.mark.parametrize(
    ("causes", "text"),
    [
        (
            [socket.gaierror(-2, "Name or service not known")],
            (
                "the name of https://lab.example is not known (Name or service not known); check baseUrl and the "
                "network connection"
            ),
        ),
        (
            [ExceptionGroup("all", [OSError(101, "no way"), ConnectionRefusedError(111, "no")])],
            "https://lab.example refuses connections; start the server, or check baseUrl",
        ),
        (
            [OSError(113, "No route to host")],
            "https://lab.example gave no answer (all failed); try again, or check baseUrl",
        ),
    ],
    ids=["DNS", "many addresses", "anything else"],
)
def test_the_cause_behind_the_error_is_told(causes: list[BaseException], text: str) -> None:
    error = OSError("all failed")
    error.__cause__ = causes[0]
    told = unreachable(error, provider="lab", url="https://me:pw@lab.example/v1?k=1", proxy=None)
    assert told == f"cannot reach lab: {text}"


def test_an_error_that_leads_back_to_itself_ends() -> None:
    one, two = OSError("one"), OSError("two")
    one.__context__, two.__context__ = two, one
    assert "(one)" in unreachable(one, provider="lab", url="nonsense", proxy=None)


@pytest.mark.parametrize("location", ["http://[oops", "http://h:port/", "mailto:me@example.org"])
def test_a_redirect_to_nonsense_is_told(location: str) -> None:
    told = redirected("lab", 308, url="http://lab.example/v1", location=location)
    assert told == "lab answered 308 and points nowhere; check its baseUrl in models.json"


def test_a_redirect_shows_no_control_signs() -> None:
    told = redirected(
        "lab", 302, url="http://lab.example", location="http://x.example/\x1b[31m\x07"
    )
    assert "(http://x.example/[31m)" in told


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://me:pw@h.example:8443/p?q#f", "https://h.example:8443"),
        ("http://[::1]:80/v1", "http://[::1]:80"),
        ("http://h:99999999/", ""),
        ("nonsense", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


@asynccontextmanager
async def listening(
    serve: Callable[[Any], Awaitable[None]], context: ssl.SSLContext | None = None
) -> AsyncGenerator[int]:
    """Serve on a port of this machine."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as plain:
        port = plain.extra(SocketAttribute.local_port)  # noqa: S610 - not Django
        listener: Listener[Any] = plain if context is None else TLSListener(plain, context)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            yield port
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def tls_server(folder: Path) -> AsyncGenerator[int]:
    """Serve TLS with a certificate that nobody has signed but itself."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - comes with an extra
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - see above

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lab")])
    now = datetime.now(tz=UTC)  # noqa: TID251 - a certificate is checked against the machine's clock
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    file = anyio.Path(folder / "lab.pem")
    await file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    await anyio.to_thread.run_sync(context.load_cert_chain, file)

    async def serve(stream: SocketStream) -> None:
        await stream.aclose()

    async with listening(serve, context) as port:
        yield port
