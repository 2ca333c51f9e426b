"""Shims for tests: `tiller lsp` as an editor spawns it, a stand-in for the daemon, and the daemon that is really there."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.clients.server import Ground
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_profiles import MINIMAL, Profile
from tests.support.workspace.processes import living, processes_with, wait_gone
from tiller_server.daemon import paths
from tiller_server.lsp.transport.framing import FrameReader, frame

Json = dict[str, Any]
SHIM = (sys.executable, "-P", "-m", "tiller_server.cli.entry", "lsp")
TOKEN = "a token of the tests"
LONG_S = 60.0
"""A daemon that starts beside seven other tests takes its time."""


@dataclass(slots=True, kw_only=True)
class Guest:
    """One connection to the stand-in."""

    hello: Json
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    frames: FrameReader = field(default_factory=FrameReader)

    async def read(self) -> bytes | None:
        """Give the next message, None at the end."""
        while (body := self.frames.take()) is None:
            data = await self.reader.read(64 * 1024)
            if not data:
                return None
            self.frames.feed(data)
        return body

    async def hear(self) -> Json:
        """Give the next message, read."""
        body = await asyncio.wait_for(self.read(), 10)
        assert body is not None, "the shim has hung up"
        return json.loads(body)

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.writer.write(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def introduce(self, **capabilities: Any) -> Json:
        """Answer `initialize`; gives it."""
        asked = await self.hear()
        assert asked["method"] == "initialize"
        self.say(id=asked["id"], result={"capabilities": capabilities})
        return asked

    def die(self) -> None:
        """Hang up in the middle of whatever it is."""
        self.writer.transport.abort()


@dataclass(slots=True)
class StandIn:
    """Listens where the daemon would, and does what the test says."""

    guests: asyncio.Queue[Guest] = field(default_factory=asyncio.Queue[Guest])
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def guest(self) -> Guest:
        """Give the next one who comes."""
        return await asyncio.wait_for(self.guests.get(), 10)

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one in."""
        self.writers.append(writer)
        line = await reader.readline()
        await self.guests.put(Guest(hello=json.loads(line), reader=reader, writer=writer))


@asynccontextmanager
async def stand_in(env: Mapping[str, str]) -> AsyncGenerator[StandIn]:
    """Listen in the place of the daemon."""
    _lay_token(env)
    standing = StandIn()
    path = paths.socket_path(env)
    server = await asyncio.start_unix_server(standing.welcome, path, limit=4 * 1024 * 1024)
    try:
        yield standing
    finally:
        server.close()
        for writer in standing.writers:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - nothing that waits


def _lay_token(env: Mapping[str, str]) -> None:
    Path(paths.runtime_folder(env)).mkdir(mode=0o700, parents=True, exist_ok=True)
    Path(paths.token_path(env)).write_text(f"{TOKEN}\n", "ascii")


@asynccontextmanager
async def shim(
    ground: Ground, *arguments: str, env: Mapping[str, str] | None = None
) -> AsyncGenerator[RawClient]:
    """Start a shim; nothing is said yet."""
    client = await RawClient.spawn([*SHIM, *arguments], env=env or ground.env, cwd=ground.root)
    async with client:
        yield client


@asynccontextmanager
async def introduced(
    ground: Ground, caps: Profile | Json = MINIMAL, *, options: Json | None = None
) -> AsyncGenerator[RawClient]:
    """Start a shim, and introduce an editor to the daemon behind it, which ends with the block."""
    try:
        async with shim(ground) as client:
            await client.initialize(caps, root=ground.root, options=options, timeout_s=LONG_S)
            yield client
    finally:
        end_daemon(ground.env)


def daemon_pid(env: Mapping[str, str]) -> int | None:
    """Give the process of the daemon; None when there is none."""
    try:
        told = json.loads(Path(paths.lock_path(env)).read_bytes())
    except (OSError, ValueError):
        return None
    pid = told.get("pid")
    return pid if isinstance(pid, int) and living([pid]) else None


def end_daemon(env: Mapping[str, str], *, by: signal.Signals = signal.SIGTERM) -> int | None:
    """End the daemon, and any that is about to become it, and wait until they have; gives the process that it was."""
    pid = daemon_pid(env)
    # One that starts has not said yet who it is; one that serves shows its environment to root alone.
    found = processes_with("tiller_server.daemon", env["TILLER_RUNTIME_DIR"]) | (
        {pid} if pid else set()
    )
    for one in found:
        with suppress(ProcessLookupError):
            os.kill(one, by)
    assert wait_gone(found) == set()
    return pid
