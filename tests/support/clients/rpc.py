"""A client of `tiller rpc`: in this process, or of a process that was started."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from socket import socketpair
from typing import Any

from agent_core.kernel import SystemClock
from agent_core.resources.paths import app_paths
from tests.support.clients.server import TILLER, Ground
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig
from tiller_server.rpc.server import RpcOptions, RpcServer

Json = dict[str, Any]
LINE_BYTES = 1 << 26


class RpcPeer:
    """The client's half: sends commands, and keeps every record in the order of its arrival."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.records: list[Json] = []
        self._reader = reader
        self._writer = writer
        self._numbers = 0

    def send(self, kind: str, **fields: Any) -> str:
        """Send a command and give its id."""
        self._numbers += 1
        name = f"c{self._numbers}"
        self.write(json.dumps({"id": name, "type": kind, **fields}).encode() + b"\n")
        return name

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    async def ask(self, kind: str, **fields: Any) -> Json:
        """Send a command and give its response."""
        return await self.response(self.send(kind, **fields))

    async def data(self, kind: str, **fields: Any) -> Any:
        """Send a command that must succeed, and give the data of its response."""
        answer = await self.ask(kind, **fields)
        assert answer["success"], answer
        return answer.get("data")

    async def error(self, kind: str, **fields: Any) -> str:
        """Send a command that must fail, and give the error."""
        answer = await self.ask(kind, **fields)
        assert not answer["success"], answer
        return answer["error"]

    async def response(self, name: str) -> Json:
        """Read up to the response to a command."""
        return await self.until(lambda one: one["type"] == "response" and one.get("id") == name)

    async def event(self, kind: str) -> Json:
        """Read up to the next record of a type."""
        return await self.until(lambda one: one["type"] == kind)

    async def until(self, fits: Callable[[Json], bool]) -> Json:
        """Read up to a record that fits, and give it."""
        while (record := await self.next()) is not None:
            if fits(record):
                return record
        message = f"the server ended; the last records: {self.records[-5:]}"
        raise AssertionError(message)

    async def next(self) -> Json | None:
        """Read one record; None: the server has ended."""
        line = await self._reader.readline()
        if not line:
            return None
        record = json.loads(line)
        self.records.append(record)
        return record

    def of(self, *kinds: str) -> Sequence[Json]:
        """Return the records so far of some types."""
        return [one for one in self.records if one["type"] in kinds]

    @property
    def types(self) -> Sequence[str]:
        """Return the types of all records so far."""
        return [one["type"] for one in self.records]

    def close(self) -> None:
        """Leave, as a client whose process ends."""
        self._writer.close()


@asynccontextmanager
async def rpc_client(
    ground: Ground, *, runtime: Runtime | None = None, **options: Any
) -> AsyncGenerator[RpcPeer]:
    """Serve a client in this process; with a runtime, before the sessions of that one."""
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    sessions = app_paths(ground.env).sessions
    chosen = RpcOptions(root=ground.root, sessions=sessions, **options)
    ours, theirs = socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES)
    input_stream, sink = await asyncio.open_connection(sock=theirs)
    failure: Exception | None = None
    async with (
        nullcontext(runtime) if runtime else Runtime(config) as of,
        attached(App(of)) as client,
    ):
        server = RpcServer(client, sink, chosen, clock=SystemClock())
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(server.serve(input_stream))
            try:
                yield RpcPeer(reader, writer)
            except Exception as error:  # noqa: BLE001 - raised below, outside of the groups that would wrap it
                failure = error
            finally:
                server.stop()
                await asyncio.wait([serving])
                sink.close()
                writer.close()
    if failure is not None:
        raise failure


@asynccontextmanager
async def rpc_process(
    command: Sequence[str], *, cwd: Path, env: Json
) -> AsyncGenerator[tuple[RpcPeer, asyncio.subprocess.Process]]:
    """Start a process that speaks the protocol; it is killed in the end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield RpcPeer(process.stdout, process.stdin), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def tiller_rpc(*arguments: str) -> Sequence[str]:
    """Return the command line of `tiller rpc`."""
    return (*TILLER, "rpc", *arguments)
