"""A scripted ACP client: speaks lines of JSON with `AcpConnection` in this process, or with a process."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec.structs import replace

from agent_core.kernel import SystemClock
from tests.support.clients.server import Ground
from tests.support.harness.sizes import at_size
from tiller_server.acp.connection import AcpConnection
from tiller_server.acp.sessions.session import OpenAgent
from tiller_server.agent_client.in_process import attached
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

Json = dict[str, Any]
WITHIN_S = at_size(ci=15, campaign=90)
LINE_BYTES = 64 * 1024 * 1024


class AcpRefused(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data") or {}


def allow_once(params: Json) -> Json:
    """Answer a permission request with the first option that allows."""
    option = next(one for one in params["options"] if one["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}


class AcpClient:
    """One connection, with a record of all messages in their order."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, version: int = 1
    ) -> None:
        self.writer = writer
        self.version = version
        """Version of the protocol that it offers."""
        self.record: list[tuple[str, Json]] = []
        """Messages as (`>` or `<`, message): `>` from the client."""
        self.answers: dict[str, Callable[[Json], Json | None]] = {}
        """Answers of requests of the agent, by method; None as the answer: none is sent."""
        self._reader = reader
        self.number = 0
        """Id of the next request."""
        self._waiting: dict[int | str, asyncio.Future[Json]] = {}
        self._arrived = asyncio.Event()

    # ------------------------------------------------------------------ to the agent

    def send(self, message: Json) -> None:
        self.record.append((">", message))
        self.writer.write(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def notify(self, method: str, params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Json) -> "asyncio.Future[Json]":
        """Send a request; give the response as it comes."""
        number = self.number
        self.number += 1
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and give its result; raises AcpRefused."""
        return await result(self.begin(method, params))

    async def initialize(self, capabilities: Json | None = None) -> Json:
        info, declared = {"name": "scripted", "version": "1"}, capabilities or {}
        params = {"protocolVersion": 1, "clientCapabilities": declared, "clientInfo": info}
        if self.version > 1:
            params = {"protocolVersion": self.version, "capabilities": declared, "info": info}
        return await self.request("initialize", params)

    async def new(self, cwd: object) -> str:
        opened = await self.request("session/new", {"cwd": str(cwd), "mcpServers": []})
        return opened["sessionId"]

    def prompt(self, session: str, text: str, **more: Any) -> "asyncio.Future[Json]":
        blocks = [{"type": "text", "text": text}]
        return self.begin("session/prompt", {"sessionId": session, "prompt": blocks, **more})

    # ------------------------------------------------------------------ from the agent

    @property
    def updates(self) -> list[Json]:
        """The updates so far."""
        return [
            one["params"]["update"]
            for way, one in self.record
            if way == "<" and one.get("method") == "session/update"
        ]

    def said(self, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of a kind."""
        chunks = [one for one in self.updates if one["sessionUpdate"] == kind]
        return "".join(one["content"].get("text", "") for one in chunks)

    def kinds(self) -> list[str]:
        return [one["sessionUpdate"] for one in self.updates]

    def asked(self, method: str) -> list[Json]:
        """The params of the agent's requests or notifications of a method."""
        return [
            one["params"] for way, one in self.record if way == "<" and one.get("method") == method
        ]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until what has come fulfils a condition."""
        async with asyncio.timeout(WITHIN_S):
            while not condition():
                self._arrived.clear()
                await self._arrived.wait()

    async def read(self) -> None:
        """Read the agent's messages until the connection ends."""
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                self._take(json.loads(line))
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the agent has gone"))
                future.exception()  # nobody has to wait for it
        self._arrived.set()

    def _take(self, message: Json) -> None:
        self.record.append(("<", message))
        if "method" in message and "id" in message:
            self._answer(message)
        elif "method" not in message and message.get("id") in self._waiting:
            future = self._waiting.pop(message["id"])
            if not future.done():
                future.set_result(message)
        self._arrived.set()

    def _answer(self, message: Json) -> None:
        answer = self.answers.get(message["method"])
        head = {"jsonrpc": "2.0", "id": message["id"]}
        if answer is None:
            self.send({**head, "error": {"code": -32601, "message": "Method not found"}})
        elif (value := answer(message["params"])) is not None:
            self.send({**head, "result": value})


async def result(future: "asyncio.Future[Json]") -> Json:
    """Return the result of a response; raises AcpRefused."""
    async with asyncio.timeout(WITHIN_S):
        message = await future
    if "error" in message:
        raise AcpRefused(message["error"])
    return message["result"]


@asynccontextmanager
async def served(
    open_agent: OpenAgent, *, env: Mapping[str, str], client_id: str = "client", version: int = 1
) -> AsyncGenerator[AcpClient]:
    """Serve a scripted client in this process."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES)
    connection = AcpConnection(
        *await asyncio.open_connection(sock=theirs),
        open_agent,
        client_id=client_id,
        env=env,
        clock=SystemClock(),
        newest=version,
    )
    client = AcpClient(reader, writer, version=version)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(connection.serve())
        reading = tasks.create_task(client.read())
        try:
            yield client
        finally:
            writer.close()
            async with asyncio.timeout(WITHIN_S):
                await serving
            reading.cancel()


@asynccontextmanager
async def acp_client(
    ground: Ground, *, client_id: str = "client", version: int = 1
) -> AsyncGenerator[AcpClient]:
    """Serve a scripted client from a runtime of its own."""
    config = ServerConfig(env=dict(ground.env), home=ground.dirs.home)
    async with (
        Runtime(config) as runtime,
        served(opener(runtime), env=ground.env, client_id=client_id, version=version) as client,
    ):
        yield client


def opener(runtime: Runtime) -> OpenAgent:
    """Return what connects to the agent of a runtime."""
    return lambda handlers, servers: attached(
        App(runtime, origin=replace(runtime.origin, mcp_servers=servers)), handlers=handlers
    )


def states_of(client: AcpClient) -> list[str]:
    """Return the states of a session, as version 2 reports them; `idle` with its stop reason."""
    return [
        f"{one['state']} {one.get('stopReason', '')}".strip()
        for one in client.updates
        if one["sessionUpdate"] == "state_update"
    ]


def served_version(client: AcpClient) -> int:
    """Return the version of the protocol that the agent has answered `initialize` with."""
    versions = (one.get("result", {}).get("protocolVersion") for _, one in client.record)
    return next(version for version in versions if version is not None)


def kinds_in(updates: Sequence[Json]) -> list[str]:
    return [one["sessionUpdate"] for one in updates]
