"""Streams: what a browser that is cut off at any place has in the end, and what a stopped one costs the others."""

import asyncio
import contextlib
import json
import random
import select
import socket

import httpx
import pytest

from tests.support.clients.browsers import (
    Following,
    Heard,
    Site,
    ask,
    events_of,
    following,
    opened,
    served,
)
from tests.support.clients.server import Ground, Json, calls, prompt, says
from tests.support.harness.sizes import at_size
from tiller_server.web.event_stream import _FrameQueue, read_positions, write_positions
from tiller_server.web.options import WebLimits
from tiller_server.web.session_feed import Position, SessionFrame

pytestmark = [pytest.mark.timeout(240)]

CUTS = at_size(ci=20, campaign=500)


def joined(frames: list[Heard]) -> list[int]:
    """Return the numbers that frames cover, as their reader has to apply them: each follows the one before."""
    covered: list[int] = []
    for one in frames:
        if one.event == "snapshot":
            covered = covered or [one.frame["seq"]]
            assert covered[-1] == one.frame["seq"], "a snapshot in between would hide events"
        else:
            assert one.frame["from"] == covered[-1] + 1
            covered.extend(range(one.frame["from"], one.frame["to"] + 1))
    return covered


async def read_to_the_end(site: Site, session: str, *, first: str) -> list[Heard]:
    """Read all events after a place in one go."""
    heard: list[Heard] = []
    async with site.script() as script, following(script, [session], last=first) as stream:
        while not any(event["type"] == "run.ended" for event in events_of(heard[-1:])):
            one = await stream.next()
            assert one is not None
            heard.append(one)
    return heard


def stable(events: list[Json]) -> list[Json]:
    """Return the events that a replay does not merge; an end may stand for its deltas too (`from`)."""
    return [
        {name: value for name, value in one.items() if name != "from"}
        for one in events
        if not one["type"].endswith(".delta")
    ]


async def test_a_reader_that_is_cut_off_again_and_again_misses_nothing(ground: Ground) -> None:
    chance = random.Random(28)  # noqa: S311 - where to cut
    turns = [
        calls(
            ("bash", {"command": f"echo {turn}"}),
            text=" ".join(f"word{turn}-{place}" for place in range(20)),
        )
        for turn in range(max(6, CUTS // 8))
    ]
    ground.provider.script([*turns, says("done")])
    async with served(ground) as site, site.script() as script:
        session = (await opened(script))["session"]
        heard: list[Heard] = []
        last: str | None = None
        is_over = False
        cuts = cuts_in_run = 0
        async with following(script, [session]) as stream:
            one = await stream.next()
            assert one is not None
            heard.append(one)
            last = one.id
        await ask(script, "agent/prompt", session=session, **prompt("go"))
        while not is_over or cuts < CUTS:
            cuts += 1
            cuts_in_run += not is_over
            async with site.script() as other, following(other, [session], last=last) as stream:
                for _ in range(chance.randrange(4)):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.05 if is_over else 5):
                            one = await stream.next()
                            assert one is not None
                            heard.append(one)
                            last = one.id
                            is_over |= any(e["type"] == "run.ended" for e in events_of([one]))
                            continue
                    break
        whole = await read_to_the_end(site, session, first=heard[0].id)
    assert joined(heard) == joined([heard[0], *whole])
    assert stable(events_of(heard)) == stable(events_of(whole))
    assert cuts_in_run > min(CUTS, 40) // 4


async def test_one_stream_carries_several_sessions_and_resumes_each(ground: Ground) -> None:
    ground.provider.script([says("one"), says("two"), says("three")])
    async with served(ground) as site, site.script() as script:
        first = (await opened(script))["session"]
        second = (await opened(script))["session"]
        async with following(script, [first, second]) as stream:
            snapshots = [await stream.next(), await stream.next()]
            assert {one.session for one in snapshots if one} == {first, second}
            for session in (first, second):
                await ask(script, "agent/prompt", session=session, **prompt("go"))
            ended: set[str] = set()
            last = ""
            while ended != {first, second}:
                one = await stream.next()
                assert one is not None
                last = one.id
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    ended.add(one.session)
        await ask(script, "agent/prompt", session=second, **prompt("again"))
        async with following(script, [first, second], last=last) as stream:
            while True:
                one = await stream.next()
                assert one is not None
                assert (one.session, one.event) == (second, "message")
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    break
        # The same place in the query, where no header can be set.
        path = f"/v1/events?sessions={first},{second}&after={last.replace(' ', '%20')}"
        async with script.stream("GET", path) as answer:
            lines = answer.aiter_lines()
            async for line in lines:
                if line.startswith("data: "):
                    assert f'"session":"{second}"' in line
                    assert '"kind":"agent/events"' in line
                    break


async def read_all(stopped: socket.socket) -> bytes:
    """Read to the end, or to a reset; return the last bytes."""
    last = b""
    with contextlib.suppress(ConnectionResetError):
        while data := await asyncio.get_running_loop().sock_recv(stopped, 1 << 16):
            last = data
    return last


async def test_a_reader_that_has_stopped_is_dropped_and_moves_nobody(ground: Ground) -> None:
    text = "x" * 200_000
    ground.provider.script([says(text) for _ in range(12)])
    async with served(ground, limits=WebLimits(send_s=0.5)) as site, site.script() as script:
        session = (await opened(script))["session"]
        stopped = socket.socket()
        stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stopped.settimeout(0)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(stopped, ("127.0.0.1", site.server.port))
        head = (
            f"GET /v1/events?sessions={session} HTTP/1.1\r\nhost: 127.0.0.1:{site.server.port}\r\n"
            f"authorization: Bearer {site.bearer}\r\n\r\n"
        )
        await loop.sock_sendall(stopped, head.encode())
        async with following(script, [session]) as stream:
            for _ in range(12):
                await ask(script, "agent/prompt", session=session, **prompt("go"))
                is_over = False
                while not is_over:
                    one = await stream.next()
                    assert one is not None
                    assert one.event != "gap"
                    is_over = any(event["type"] == "run.ended" for event in events_of([one]))
        # It is dropped with a reset, although it reads nothing, and never sees the end of an answer.
        reset = select.poll()
        reset.register(stopped, 0)
        assert await asyncio.to_thread(reset.poll, 20_000)
        async with asyncio.timeout(20):
            assert not (await read_all(stopped)).endswith(b"0\r\n\r\n")
        stopped.close()


def subscriptions(site: Site) -> int:
    """Return how many subscriptions the front end has in the daemon."""
    return len(site.server.link._readers)


async def read_until(stream: Following, heard: list[Heard], *, kind: str) -> None:
    """Read until an event of a kind has come."""
    while not any(event["type"] == kind for event in events_of(heard[-1:])):
        one = await stream.next()
        assert one is not None
        heard.append(one)


async def test_tabs_share_one_subscription_also_those_that_come_in_the_middle_of_an_answer(
    ground: Ground,
) -> None:
    ground.provider.script([{"deltas": 200, "delta_delay_s": 0.003}])
    async with (
        served(ground) as site,
        site.script() as script,
        contextlib.AsyncExitStack() as open_,
    ):
        session = (await opened(script))["session"]

        async def tab(last: str | None = None) -> Following:
            return await open_.enter_async_context(following(script, [session], last=last))

        tabs = [(await tab(), list[Heard]()) for _ in range(3)]
        await ask(script, "agent/prompt", session=session, **prompt("go"))
        for stream, heard in tabs:
            await read_until(stream, heard, kind="message.delta")
        assert subscriptions(site) == 1
        for last in (None, None, tabs[0][1][-1].id):
            stream = await tab(last)
            first = await stream.next()
            assert first is not None
            assert first.event == ("message" if last else "snapshot")
            tabs.append((stream, [first]))
        assert subscriptions(site) == 1
        for stream, heard in tabs:
            await read_until(stream, heard, kind="run.ended")
        assert subscriptions(site) == 1
        whole = tabs[0][1]
        for _, heard in tabs[1:]:
            begins_anew = heard[0].event == "snapshot"
            frames = heard[1:] if begins_anew else heard
            assert [one.frame for one in frames] == [one.frame for one in whole[-len(frames) :]]
            assert not begins_anew or heard[0].frame["seq"] == frames[0].frame["from"] - 1
        for stream, _ in tabs:
            await stream.answer.aclose()
        async with asyncio.timeout(5):
            await site.server.link.request("agent/session/close", {"session": session})
        assert subscriptions(site) == 0


async def test_a_slow_tab_falls_behind_alone_and_has_the_whole_log_in_the_end(
    ground: Ground,
) -> None:
    runs = 4
    models = ground.dirs.config / "models.json"
    written = json.loads(models.read_text("utf-8"))
    written["providers"]["lab"]["models"][0]["contextWindow"] = 10_000_000
    models.write_text(json.dumps(written), "utf-8")
    ground.provider.script([says("x" * 200_000) for _ in range(runs)])
    small = httpx.AsyncHTTPTransport(
        socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)]
    )
    limits = WebLimits(max_ahead=64 << 10)
    async with served(ground, limits=limits) as site, site.script() as script:
        session = (await opened(script))["session"]
        quickly: list[Heard] = []
        slowly: list[Heard] = []
        async with (
            httpx.AsyncClient(
                transport=small, base_url=site.origin, headers=script.headers
            ) as other,
            following(other, [session]) as slow,
            following(script, [session]) as quick,
        ):
            for _ in range(runs):
                await ask(script, "agent/prompt", session=session, **prompt("go"))
                run: list[Heard] = []
                await read_until(quick, run, kind="run.ended")
                quickly += run
            assert subscriptions(site) == 1
            end = joined(quickly)[-1]
            while not slowly or joined(slowly)[-1] < end:
                await read_until(slow, run := [], kind="run.ended")
                slowly += run
            assert subscriptions(site) == 1
        assert joined(slowly) == joined(quickly)
        assert stable(events_of(slowly)) == stable(events_of(quickly))
        assert len(slowly) < len(quickly), "it was never behind"


async def test_all_sessions_of_a_slow_stream_continue_when_it_has_caught_up() -> None:
    queue = _FrameQueue()
    place = Position("e", 1)
    for session in ("a", "b"):
        queue.put(SessionFrame(session=session, event=None, first=1, position=place, data=b"x"))
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(queue.wait_until_empty())
        await asyncio.sleep(0)
        while queue.take() is not None:
            pass
    assert queue.size == 0


async def test_a_silent_stream_shows_that_it_is_alive(ground: Ground) -> None:
    async with served(ground, limits=WebLimits(heartbeat_s=0.1)) as site, site.script() as script:
        session = (await opened(script))["session"]
        async with script.stream("GET", f"/v1/events?sessions={session}") as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "retry: 1000"
            async for line in lines:
                if line == ": alive":
                    break


async def test_a_session_that_is_deleted_ends_its_stream_for_good(ground: Ground) -> None:
    async with served(ground) as site, site.script() as script:
        session = (await opened(script))["session"]
        async with following(script, [session]) as stream:
            assert await stream.next() is not None
            await site.server.link.request("agent/session/close", {"session": session})
            assert await stream.next() is None
        # Nothing was said in it, so that it is stored nowhere.
        answer = await script.get(f"/v1/events?sessions={session}")
        assert answer.status_code == 204


@pytest.mark.parametrize(
    ("text", "sessions", "found"),
    [
        (None, ["a"], {}),
        ("e-1.7", ["a"], {"a": Position("e-1", 7)}),
        ("e.1.7", ["a"], {"a": Position("e.1", 7)}),
        ("a:e-1.7 b:e-2.9", ["a", "b"], {"a": Position("e-1", 7), "b": Position("e-2", 9)}),
        ("a:e-1.7 c:e-2.9", ["a", "b"], {"a": Position("e-1", 7)}),
        ("e-1.7", ["a", "b"], {}),
        ("e-1.", ["a"], {}),
        (".7", ["a"], {}),
        ("e-1.-7", ["a"], {}),
        ("e-1.٧", ["a"], {}),
        ("e-1." + "9" * 40, ["a"], {}),
        ("nonsense", ["a"], {}),
    ],
)
def test_a_place_is_read_or_left_out(
    text: str | None, sessions: list[str], found: dict[str, Position]
) -> None:
    read = read_positions(text, sessions)
    assert read == found
    assert read_positions(write_positions(read, are_plain=len(sessions) == 1), sessions) == read
