"""The connection of a front end with many users to the daemon: made when it is needed, and made anew when the daemon was lost."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from itertools import count
from pathlib import Path
from typing import Final, Literal

import anyio

from agent_core.kernel import Clock, JsonObject, JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.kernel.json import as_object
from tiller_server import VERSION
from tiller_server.agent_client.connection import AgentClient, AgentRefused, RequestHandler

IDLE_S: Final = 600.0
"""How long a connection is kept that nobody uses: its sessions stay loaded for as long."""

Connect = Callable[[Mapping[str, RequestHandler]], AbstractAsyncContextManager[AgentClient]]
"""Connects to the daemon, which is started when there is none; raises a TillerError when there will be none."""
OnFrame = Callable[[str, JsonObject], None]
_log = logging.getLogger(__name__)


class DaemonLink:
    """One connection for all users of a front end. `run` has to run; every other method may be called at any time."""

    def __init__(
        self,
        connect: Connect,
        *,
        name: str,
        root: Path,
        role: Literal["observer", "panel"],
        clock: Clock,
    ) -> None:
        """Prepare it; the first request connects.

        Args:
            connect: Creates a connection.
            name: Name of the client in the events of a session.
            root: The workspace.
            role: Role of the client; an observer may not decide.
            clock: Time.
        """
        self.asked: dict[str, JsonObject] = {}
        """Permission requests that wait for an answer, by id."""
        self._connect = connect
        self._root = root
        self._client_info: JsonObject = {"name": name, "version": VERSION, "role": role}
        self._clock = clock
        self._used_s = clock.monotonic_s()
        self._wanted = asyncio.Event()
        self._current: asyncio.Future[AgentClient] | None = None
        self._readers: dict[str, Callable[[JsonObject], None]] = {}
        self._numbers = count(1)

    async def run(self) -> None:
        """Keep the connection, for as long as it is not cancelled."""
        while True:
            _ = await self._wanted.wait()
            self._wanted.clear()
            ready = self._current
            if ready is None:
                continue
            try:
                async with self._connect({"agent/permission": self._hold}) as client:
                    await self._introduce(client)
                    ready.set_result(client)
                    await self._until_over(client)
            except (TillerError, OSError) as error:
                _log.warning("The daemon cannot be used: %s", error)
                if not ready.done():
                    ready.set_exception(AgentRefused(str(error)))
            finally:
                if not ready.done():
                    _ = ready.cancel()
                self.asked.clear()

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request and wait for its result.

        Raises:
            AgentRefused: The daemon answered with an error (`code`), or cannot be reached (`code` is None).
        """
        client = await self._client()
        try:
            return await client.request(method, params)
        finally:
            self._used_s = self._clock.monotonic_s()

    async def follow(
        self,
        session: str,
        *,
        epoch: str | None,
        after: int | None,
        on_frame: OnFrame,
        has_window: bool = False,
    ) -> str:
        """Pass on the frames of a session until that ends; return the reason.

        Args:
            session: Its id.
            epoch: Epoch that the reader knows; None: it knows nothing.
            after: Last event that the reader has.
            on_frame: Function that is called with a token and each frame; it must not raise.
            has_window: Whether deltas wait for `acknowledge` when much was not acknowledged yet.

        Raises:
            AgentRefused: As of `request`.
        """
        token = f"link-{next(self._numbers)}"
        params: JsonObject = {"session": session, "partialResultToken": token, "ack": has_window}
        if epoch is not None and after is not None:
            params = {**params, "epoch": epoch, "from": after}
        client = await self._client()

        def take(frame: JsonObject) -> None:
            on_frame(token, frame)

        self._readers[token] = take
        try:
            ended = as_object(await client.request("agent/subscribe", params))
        finally:
            del self._readers[token]
            self._used_s = self._clock.monotonic_s()
        return str(ended.get("reason"))

    async def snapshot(self, session: str) -> JsonObject:
        """Return the state of a session, which is loaded.

        Raises:
            AgentRefused: As of `request`.
        """
        first: JsonObject = {}
        enough = anyio.CancelScope()

        def take(_token: str, frame: JsonObject) -> None:
            nonlocal first
            first = first or as_object(frame.get("snapshot"))
            enough.cancel()

        with enough:
            _ = await self.follow(session, epoch=None, after=None, on_frame=take)
        return first

    def acknowledge(self, token: str, seq: int) -> None:
        """Report that a reader has been sent the events up to a number."""
        current = self._current
        if current is None or not current.done() or current.cancelled() or current.exception():
            return
        current.result().notify("agent/ack", {"token": token, "seq": seq})

    async def _client(self) -> AgentClient:
        current = self._current
        if current is None or _is_over(current):
            current = self._current = asyncio.get_running_loop().create_future()
            self._wanted.set()
        # Shielded: one request that is given up does not take the connection from the others.
        return await asyncio.shield(current)

    async def _introduce(self, client: AgentClient) -> None:
        client.on_notification = self._take
        capabilities: JsonObject = {
            "v": 1,
            "events": {"channel": "progress"},
            "permission": {},
            "question": {"form": {}},
        }
        # The sessions of all folders are offered: each goes on in its own.
        opened: JsonObject = {"open": "none", "folder": "own"}
        await client.introduce(
            self._client_info, (self._root,), session=opened, capabilities=capabilities
        )

    async def _until_over(self, client: AgentClient) -> None:
        self._used_s = self._clock.monotonic_s()
        while not client.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    _ = await client.ended.wait()
            if not self._readers and self._clock.monotonic_s() - self._used_s >= IDLE_S:
                return

    async def _hold(self, params: JsonObject) -> JsonValue:
        """Keep a permission request until it is withdrawn: it is answered by a request of the front end."""
        request = str(params.get("request"))
        self.asked[request] = params
        try:
            _ = await asyncio.Event().wait()
        finally:
            _ = self.asked.pop(request, None)

    def _take(self, method: str, params: JsonObject) -> None:
        if method == "$/progress" and (take := self._readers.get(str(params.get("token")))):
            take(as_object(params.get("value")))


def _is_over(current: asyncio.Future[AgentClient]) -> bool:
    if not current.done():
        return False
    return current.cancelled() or current.exception() is not None or current.result().ended.is_set()
