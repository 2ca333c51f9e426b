"""How a request goes over HTTP/2, seen from a provider behind TLS on the loopback device."""

import gc
import json
from pathlib import Path

import anyio
import pytest

from agent_core.providers import StreamFinished, TextDelta
from tests.providers.conftest import Pools
from tests.providers.http.http2_server import Exchange, Script, http2_server, write_certificate
from tests.providers.loopback import sse
from tests.providers.replay import HELLO, ask, model_at

API = "openai-completions"


def said(text: str) -> bytes:
    return sse({"choices": [{"index": 0, "delta": {"content": text}}]})[0]


END = b"".join(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"))


async def whole(exchange: Exchange) -> None:
    await exchange.start()
    for piece in (said("Hel"), said("lo"), END):
        await exchange.say(piece)
    await exchange.end()


async def half(exchange: Exchange) -> None:
    await exchange.start()
    await exchange.say(said("Hel"))


async def nothing(exchange: Exchange) -> None:
    """Take the request and keep silent."""


def then(first: Script, last: Script) -> Script:
    async def both(exchange: Exchange) -> None:
        await first(exchange)
        await last(exchange)

    return both


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    write_certificate(folder)
    return folder


@pytest.fixture
def trusted(certified: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trust the server's certificate as a user does; gives its folder."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certified / "certificate.pem"))
    return certified


async def test_an_answer_over_http2_is_read_to_its_end(trusted: Path, pools: Pools):
    async with http2_server(trusted, whole) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is None
    assert outcome.message is not None
    assert (outcome.text, outcome.message.text) == ("Hello", "Hello")
    assert server.protocols == ["h2"]
    assert json.loads(server.asked[0].body)["stream"] is True


async def test_an_answer_larger_than_any_window_comes_whole(trusted: Path, pools: Pools):
    piece, count = "x" * 16_000, 1_100  # The window is 16 MiB.

    async def much(exchange: Exchange) -> None:
        await exchange.start()
        for _ in range(count):
            await exchange.say(said(piece))
        await exchange.say(END)
        await exchange.end()

    async with http2_server(trusted, much) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is None
    assert outcome.text == piece * count


async def test_one_connection_serves_one_request_after_another(trusted: Path, pools: Pools):
    async with http2_server(trusted, whole, whole, whole) as server:
        model = model_at(server.url, API, pools())
        for _ in range(3):
            assert (await ask(model)).text == "Hello"
        assert [(asked.connection, asked.stream_id) for asked in server.asked] == [
            (1, 1),
            (1, 3),
            (1, 5),
        ]


async def test_two_requests_at_once_have_their_own_answers(trusted: Path, pools: Pools):
    both = anyio.Event()

    def saying(text: str) -> Script:
        async def answer(exchange: Exchange) -> None:
            await exchange.start()
            await both.wait()
            await exchange.say(said(text) + END)
            await exchange.end()

        return answer

    async with http2_server(trusted, saying("one"), saying("two")) as server:
        model = model_at(server.url, API, pools())
        texts = []
        async with model.stream(HELLO) as first, model.stream(HELLO) as second:
            both.set()
            for parts in (second, first):
                answer = [part async for part in parts][-1]
                assert isinstance(answer, StreamFinished)
                texts.append(answer.message.text)
    assert texts == ["two", "one"]


async def test_leaving_is_told_at_once_and_the_next_request_works(trusted: Path, pools: Pools):
    async with http2_server(trusted, half, whole) as server:
        model = model_at(server.url, API, pools())
        async with model.stream(HELLO) as parts:
            assert await anext(parts) == TextDelta(text="Hel")
            assert not server.left.is_set()
        with anyio.fail_after(1):
            await server.left.wait()
        assert (await ask(model)).text == "Hello"


async def test_leaving_one_answer_harms_no_other(trusted: Path, pools: Pools):
    go_on = anyio.Event()

    async def slow(exchange: Exchange) -> None:
        await half(exchange)
        await go_on.wait()
        await exchange.say(said("lo") + END)
        await exchange.end()

    async with http2_server(trusted, slow, half) as server:
        model = model_at(server.url, API, pools())
        async with model.stream(HELLO) as kept:
            assert await anext(kept) == TextDelta(text="Hel")
            async with model.stream(HELLO) as left:
                await anext(left)
            with anyio.fail_after(1):
                await server.left.wait()
            go_on.set()
            rest = [part async for part in kept]
        assert isinstance(rest[-1], StreamFinished)
        assert rest[-1].message.text == "Hello"


@pytest.mark.parametrize("script", [nothing, half], ids=["before", "amid"])
async def test_cancelling_is_told_at_once_and_the_next_request_works(
    script: Script, trusted: Path, pools: Pools
):
    async with http2_server(trusted, script, whole) as server:
        model = model_at(server.url, API, pools())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, model)
            with anyio.fail_after(5):
                await server.was_asked.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(1):
            await server.left.wait()
        assert (await ask(model)).text == "Hello"
    gc.collect()


async def test_many_left_answers_use_nothing_up(trusted: Path, pools: Pools):
    count = 120  # More than the streams that a connection may have open.
    async with http2_server(trusted, *[half] * count, whole) as server:
        model = model_at(server.url, API, pools())
        for _ in range(count):
            async with model.stream(HELLO) as parts:
                await anext(parts)
        assert (await ask(model)).text == "Hello"
        assert len(server.open) == 1


@pytest.mark.parametrize(
    ("end", "reason", "why"),
    [
        (Exchange.reset, "network", "the provider ended the answer's stream with INTERNAL_ERROR"),
        (Exchange.go_away, "network", "the provider ended the connection with NO_ERROR"),
        (Exchange.break_off, "network", "the connection broke in the middle"),
        (Exchange.break_the_rules, "protocol", "the HTTP/2 connection failed"),
        (Exchange.end, "protocol", "ended its stream before the answer was whole"),
    ],
    ids=["reset", "goaway", "gone", "against-the-rules", "ended-early"],
)
async def test_an_answer_that_breaks_is_an_error_and_never_a_short_answer(
    end: Script, reason: str, why: str, trusted: Path, pools: Pools
):
    async with http2_server(trusted, then(half, end), whole) as server:
        model = model_at(server.url, API, pools())
        outcome = await ask(model)
        assert outcome.message is None
        assert outcome.text == "Hel"
        assert outcome.error is not None
        assert (outcome.error.reason, outcome.error.before_first_byte) == (reason, False)
        assert why in str(outcome.error)
        assert (await ask(model)).text == "Hello"


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (Exchange.reset, "the provider ended the answer's stream with INTERNAL_ERROR"),
        (Exchange.break_off, "gave no answer"),
    ],
    ids=["reset", "gone"],
)
async def test_a_failure_before_the_answer_is_tried_once_more_and_no_more(
    end: Script, why: str, trusted: Path, pools: Pools
):
    async with http2_server(trusted, end, whole, end, end) as server:
        connections = pools()
        assert (await ask(model_at(server.url, API, connections))).text == "Hello"
        outcome = await ask(model_at(server.url, API, connections))
        assert len(server.asked) == 4
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.before_first_byte) == ("network", True)
    assert why in str(outcome.error)


async def test_idle_connections_that_the_provider_closed_cost_no_request(
    trusted: Path, pools: Pools
):
    go_on = anyio.Event()

    async def slow(exchange: Exchange) -> None:
        await exchange.start()
        await go_on.wait()
        await exchange.say(said("Hello") + END)
        await exchange.end()

    async with http2_server(trusted, *[slow] * 3, whole) as server:
        model = model_at(server.url, API, pools())
        async with model.stream(HELLO) as a, model.stream(HELLO) as b, model.stream(HELLO) as c:
            go_on.set()
            for parts in (a, b, c):
                assert [part async for part in parts]
        assert len(server.open) == 3
        await server.drop_all()
        outcome = await ask(model)
    assert outcome.error is None
    assert outcome.text == "Hello"


async def test_an_error_status_over_http2_is_told(trusted: Path, pools: Pools):
    async def busy(exchange: Exchange) -> None:
        await exchange.start(status=529)
        await exchange.say(b'{"error":{"message":"overloaded","type":"overloaded_error"}}')
        await exchange.end()

    async with http2_server(trusted, busy) as server:
        outcome = await ask(model_at(server.url, API, pools()))
    assert outcome.error is not None
    assert (outcome.error.reason, outcome.error.status) == ("server", 529)


@pytest.mark.parametrize("offers", [("http/1.1",), ()], ids=["http/1.1", "no-alpn"])
async def test_a_server_without_http2_is_spoken_to_in_http1(
    offers: tuple[str, ...], trusted: Path, pools: Pools
):
    async with http2_server(trusted, offers=offers) as server:
        model = model_at(server.url, API, pools())
        for _ in range(2):
            assert (await ask(model)).text == "Hello"
    assert server.protocols == ["http/1.1" if offers else None]
    assert server.asked == []


async def test_a_certificate_that_nobody_vouches_for_is_refused(certified: Path, pools: Pools):
    async with http2_server(certified, whole) as server:
        outcome = await ask(model_at(server.url, API, pools()))
        assert server.asked == []
    assert outcome.error is not None
    assert "is not trusted" in str(outcome.error)
    assert "SSL_CERT_FILE" in str(outcome.error)
