"""Connections that drop at random points of a long run: whoever comes back misses nothing and sees nothing twice."""

import asyncio
import json
import random
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.clients.daemons import daemon_process, editor
from tests.support.clients.server import Ground, calls, prompt, says
from tests.support.harness.sizes import at_size
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import PANEL
from tests.support.lsp.reducer import Json, Reduced
from tests.support.session.told import chance_of
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

DROPS = at_size(ci=20, campaign=500)
WORDS = 40
Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[RawClient]]
COMMAND = "for n in 1 2 3 4 5 6; do echo $n; done"


@asynccontextmanager
async def _in_process(ground: Ground) -> AsyncGenerator[Connect]:
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with Runtime(config) as runtime:
        yield lambda: _connected(runtime, ground.root)


@asynccontextmanager
async def _at_the_daemon(ground: Ground) -> AsyncGenerator[Connect]:
    env = dict(ground.env)
    async with daemon_process(env):
        yield lambda: _called(env, ground.root)


@pytest.mark.parametrize("served", [_in_process, _at_the_daemon], ids=["in process", "daemon"])
async def test_dropping_at_random_points_loses_nothing_and_doubles_nothing(
    ground: Ground, served: Callable[[Ground], AbstractAsyncContextManager[Connect]]
) -> None:
    chance = chance_of(7)
    turns = [
        turn
        for _ in range(DROPS)
        for turn in (
            {
                **calls(("bash", {"command": COMMAND}), text="word " * WORDS),
                "deltas": WORDS,
                "delta_delay_s": 0.002,
            },
            says("so it is"),
        )
    ]
    ground.provider.script(turns)
    observer, dropper = Reduced(), Reduced()
    async with served(ground) as connect, connect() as client:
        watching = client.subscribe()
        await watching.ready()
        session = watching.snapshot["session"]
        runs = 0
        drops = 0
        while drops < DROPS:
            accepted = await client.request("agent/prompt", prompt("go"))
            runs += 1
            while drops < DROPS and not _has_ended(watching.events, accepted["run"]):
                await _drop(connect, session, dropper, chance)
                drops += 1
            await watching.wait(type="run.ended", run=accepted["run"], timeout_s=30)
        ended = watching.of("run.ended")[-1]
        idle = await watching.wait(type="session.state", state="idle", after=ended["seq"])
        last = idle["seq"]
        await _drop(connect, session, dropper, chance, until=last)
        await watching.reached(dropper.last or 0)
    for value in watching.frames:
        observer.take(value)
    print(f"{drops} drops in {runs} runs, {last} events; {dropper.snapshots} snapshot")
    assert dropper.snapshots == 1
    assert observer.gaps == dropper.gaps == 0
    shared = range(min(dropper.durable), last + 1)
    assert _of(dropper.durable, shared) == _of(observer.durable, shared)
    assert dropper.now() == observer.now()
    whole = {name: one for name, one in dropper.items.items() if one.get("ended")}
    assert whole == {name: observer.items[name] for name in whole}
    assert whole


def _of(events: dict[int, Json], numbers: range) -> dict[int, str]:
    """Give the events with their fields in the order in which they came."""
    return {seq: json.dumps(event) for seq, event in events.items() if seq in numbers}


def _has_ended(events: list[dict[str, object]], run: str) -> bool:
    return any(one["type"] == "run.ended" and one["run"] == run for one in events)


async def _drop(
    connect: Connect,
    session: str,
    dropper: Reduced,
    chance: random.Random,
    *,
    until: int | None = None,
) -> None:
    """Come back with what is known, listen for a moment, and break off in the middle."""
    async with connect() as client:
        named = {} if dropper.epoch is None else {"epoch": dropper.epoch}
        stream = client.subscribe(session, since=dropper.last, **named)
        if until is not None:
            await stream.reached(until)
        else:
            await stream.ready()
            await asyncio.sleep(chance.uniform(0, 0.05))  # a moment of the run, not a wait
    for value in stream.frames:
        dropper.take(value)


@asynccontextmanager
async def _connected(runtime: Runtime, root: Path) -> AsyncGenerator[RawClient]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    app = App(runtime)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app.connection.serve(reader, writer))
        client = await RawClient.over_socket(theirs)
        async with client:
            await client.initialize(PANEL, root=root)
            yield client
        app.connection.close()


@asynccontextmanager
async def _called(env: Mapping[str, str], root: Path) -> AsyncGenerator[RawClient]:
    async with await editor(env) as client:
        await client.initialize(PANEL, root=root)
        yield client


@pytest.mark.parametrize("ends", ["well", "killed"])
async def test_another_process_goes_on_in_the_same_epoch(ground: Ground, ends: str) -> None:
    half = {"text": "a b c d ", "deltas": 4, "stall_forever_after_deltas": 3}
    ground.provider.script([says("one"), *([half] if ends == "killed" else []), says("two")])
    known = Reduced()
    async with ground.client(PANEL) as client:
        stream = client.subscribe()
        await stream.ready()
        await client.request("agent/prompt", prompt("first", wait=True))
        if ends == "killed":
            await client.request("agent/prompt", prompt("second"))
            await stream.wait(type="message.delta", after=stream.of("run.ended")[0]["seq"])
            await client.kill()
        else:
            await stream.wait(type="session.state", state="idle")
            client.link.close_input()
            await client.exit_code()
    for value in stream.frames:
        known.take(value)
    assert (known.run is None) == (ends == "well")
    async with ground.client(PANEL) as client:
        opened = await client.request("agent/session/open", {"session": "latest"})
        again = client.subscribe(opened["session"], epoch=known.epoch, since=known.last)
        await again.ready()
        result = await client.request("agent/prompt", prompt("third", wait=True))
        assert result["status"] == "completed"
        await client.request("agent/status", {})
        await again.reached(again.of("run.ended")[-1]["seq"])
    for value in again.frames:
        known.take(value)
    assert known.snapshots == 1
    assert known.gaps == 0
    assert known.run is None
    started = [one["run"] for one in known.durable.values() if one["type"] == "run.started"]
    ended = [one["run"] for one in known.durable.values() if one["type"] == "run.ended"]
    assert sorted(started) == sorted(ended)
