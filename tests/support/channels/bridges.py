"""A bridge in this process, between the memory platform and an agent with a scripted provider."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from agent_core.assembly.storage.attachments import UserAttachments
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.kernel import Clock, SystemClock
from agent_core.kernel.errors import StorageUnavailable
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.resources.paths import app_paths
from tests.support.channels.memory_platform import MemoryChannel, MemoryPlatform
from tests.support.clients.server import Ground
from tiller_server.agent_client.connection import AgentClient, AgentRefused, RequestHandler
from tiller_server.agent_client.in_process import attached
from tiller_server.channels.bridge.bridge import ChatBridge
from tiller_server.channels.bridge.config import BridgeConfig, ChatWorkspace
from tiller_server.lsp.app import App
from tiller_server.lsp.runtime import Runtime
from tiller_server.process.config import ServerConfig

T = TypeVar("T")
CLIENT = "Memory chat"
WITHIN_S = 45.0
"""Longer than a start takes on a machine with twenty processes that compute: what it finds is a wait without end."""


class Killed(BaseException):
    """The process of a bridge was killed."""


class KillableDatabase(MessagingDatabase):
    """A database that ends its process before or after a transaction, as `kill -9` does: nothing is written after it."""

    def __init__(self, path: Path, *, cut: int | None = None, is_written: bool = False) -> None:
        super().__init__(path, channel="memory", account="app")
        self.count = 0
        """Transactions so far."""
        self._cut = cut
        self._is_written = is_written
        self.is_dead = False

    @override
    async def run(self, work: Callable[[Transaction], T]) -> T:
        if self.is_dead:
            raise Killed
        self.count += 1
        if self.count != self._cut:
            return await super().run(work)
        if self._is_written:
            await super().run(work)
        self.is_dead = True
        raise Killed


@dataclass(slots=True)
class Daemon:
    """The daemon of a bridge, which may be away and come again."""

    ground: Ground
    runtime: Runtime | None = None
    apps: set[App] = field(default_factory=set)
    """Its ends of the connections."""

    async def start(self) -> None:
        """Start it."""
        config = ServerConfig(env=dict(self.ground.env), home=self.ground.dirs.home)
        self.runtime = await Runtime(config).__aenter__()

    async def stop(self) -> None:
        """End it, with its runs."""
        runtime, self.runtime = self.runtime, None
        for app in tuple(self.apps):
            app.connection.close()
        if runtime is not None:
            await runtime.__aexit__(None, None, None)

    @asynccontextmanager
    async def connect(self, handlers: Mapping[str, RequestHandler]) -> AsyncGenerator[AgentClient]:
        """Connect to it."""
        if self.runtime is None:
            message = "the daemon is away"
            raise AgentRefused(message)
        app = App(self.runtime)
        self.apps.add(app)
        try:
            async with attached(app, handlers=handlers) as client:
                yield client
        finally:
            self.apps.discard(app)


@dataclass(slots=True, kw_only=True)
class Chat:
    """A platform with a bridge that can be killed and started again."""

    ground: Ground
    platform: MemoryPlatform
    daemon: Daemon
    config: BridgeConfig
    clock: Clock
    path: Path
    bridge: ChatBridge | None = None
    database: KillableDatabase | None = None
    task: asyncio.Task[None] | None = None

    def start(self, *, cut: int | None = None, is_written: bool = False) -> None:
        """Start a process of the bridge, which may be killed at a transaction."""
        self.database = KillableDatabase(self.path, cut=cut, is_written=is_written)
        self.bridge = ChatBridge(
            MemoryChannel(self.platform),
            self.daemon.connect,
            self.config,
            database=self.database,
            open_attachments=UserAttachments(app_paths(self.ground.env), self.ground.env).now,
            cleaner=Redactor(),
            clock=self.clock,
        )
        self.task = asyncio.get_running_loop().create_task(self._run(self.bridge))

    async def _run(self, bridge: ChatBridge) -> None:
        with suppress(Killed, BaseExceptionGroup):
            await bridge.run()

    async def kill(self) -> None:
        """End the process; nothing is written from now on."""
        assert self.task is not None
        assert self.database is not None
        self.database.is_dead = True
        self.task.cancel()
        await asyncio.wait([self.task])
        self.database.close()

    async def until(self, condition: Callable[[], object], *, within_s: float = WITHIN_S) -> None:
        """Wait until something is shown on the platform."""
        async with asyncio.timeout(within_s):
            while not condition():
                assert self.task is not None
                assert not self.task.done(), "the bridge has ended"
                await asyncio.sleep(0.01)

    async def until_over_or_killed(
        self,
        condition: Callable[[], object],
        act: "Callable[[Chat], Awaitable[None]] | None" = None,
    ) -> None:
        """Wait until something is shown, or the process is killed at its write; `act` is called meanwhile."""
        assert self.database is not None
        async with asyncio.timeout(WITHIN_S):
            while not (condition() or self.database.is_dead):
                if act is not None:
                    await act(self)
                await asyncio.sleep(0.01)

    async def until_settled(self) -> None:
        """Wait until nothing waits in the inbox and the outbox."""
        async with asyncio.timeout(WITHIN_S):
            while not await self._is_settled():  # noqa: ASYNC110 - as of `until`
                await asyncio.sleep(0.01)

    async def until_row(self, table: str, **values: Any) -> None:
        """Wait until a table has a row with these values."""
        async with asyncio.timeout(WITHIN_S):
            while not any(  # noqa: ASYNC110 - as of `until`
                values.items() <= row.items() for row in await self.rows(table)
            ):
                await asyncio.sleep(0.01)

    async def _is_settled(self) -> bool:
        inbox, outbox = await self.rows("inbox"), await self.rows("outbox")
        if len([row for row in inbox if row["kind"] == "message"]) < len(self.platform.inbound):
            return False
        is_taken = all(row["state"] in {"done", "ignored"} for row in inbox)
        return is_taken and all(row["state"] == "sent" for row in outbox)

    async def stored(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table while no process runs."""
        database = MessagingDatabase(self.path, channel="memory", account="app")
        await database.open()
        try:
            return await _rows(database, table)
        finally:
            database.close()

    async def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table; none before the file is open."""
        assert self.database is not None
        try:
            return await _rows(self.database, table)
        except StorageUnavailable:
            return []


async def answered(chat: Chat, key: str, outcome: str = "completed") -> None:
    """Wait until a message has its last reaction."""
    await chat.until(lambda: chat.platform.messages[key].reactions[-1:] == [outcome])


async def _rows(database: MessagingDatabase, table: str) -> list[dict[str, Any]]:
    def read(tx: Transaction) -> list[dict[str, Any]]:
        cursor = tx.execute(f"SELECT * FROM {table} ORDER BY 1")  # noqa: S608 - a name in the test
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return await MessagingDatabase.run(database, read)


def config_of(ground: Ground, **more: Any) -> BridgeConfig:
    """Return a configuration with one workspace, in which everybody may talk and `boss` may approve."""
    given: dict[str, Any] = {
        "client": CLIENT,
        "workspaces": (ChatWorkspace(name="shop", folder=ground.root),),
        "talkers": frozenset({"*"}),
        "approvers": frozenset({"boss"}),
        "admins": frozenset({"boss"}),
        "merge_s": 0.02,
        **more,
    }
    return BridgeConfig(**given)


@asynccontextmanager
async def bridged(
    ground: Ground,
    *,
    clock: Clock | None = None,
    platform: MemoryPlatform | None = None,
    is_started: bool = True,
    **config: Any,
) -> AsyncGenerator[Chat]:
    """Run a daemon and a bridge for as long as the block."""
    used = clock or SystemClock()
    daemon = Daemon(ground)
    await daemon.start()
    chat = Chat(
        ground=ground,
        platform=platform or MemoryPlatform(used),
        daemon=daemon,
        config=config_of(ground, **config),
        clock=used,
        path=ground.root.parent / "chat.sqlite3",
    )
    try:
        if is_started:
            chat.start()
        yield chat
    finally:
        if chat.task is not None:
            await chat.kill()
        await daemon.stop()
