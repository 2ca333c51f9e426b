"""The session in front of an RPC client: its state and its events."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from typing_extensions import override

from agent_core.events import (
    CompactionEnded,
    CompactionStarted,
    Event,
    EventEnvelope,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    SessionConfig,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, decode, is_object
from tiller_server import VERSION
from tiller_server.agent_client.connection import AgentClient, AgentRefused
from tiller_server.agent_client.events import value_of
from tiller_server.agent_client.followed_session import FollowedSession
from tiller_server.rpc.records import message_of

CLIENT: Final = "rpc"
"""Name of the client, as other clients of the session see it."""
NOT_FOUND: Final = "SessionNotFound"
T = TypeVar("T", bound=Event)


class SessionActivity:
    """Activities of a session, from its snapshot and the events after it."""

    def __init__(self, activity: JsonObject) -> None:
        """Read it from a snapshot."""
        self.is_running = "run" in activity
        self.is_compacting = "compaction" in activity
        self.is_retrying = "retry" in activity
        """Whether the run waits before it repeats a model call."""

    def see(self, event: Event) -> None:
        """Update it from an event."""
        match event:
            case RunStarted():
                self.is_running = True
            case RunEnded():
                self.is_running = self.is_retrying = False
            case CompactionStarted() | CompactionEnded():
                self.is_compacting = isinstance(event, CompactionStarted)
            case RetryStarted() | RetryEnded():
                self.is_retrying = isinstance(event, RetryStarted)
            case _:
                pass


class EventWaiters:
    """Commands that wait for an event of a kind."""

    def __init__(self) -> None:
        self._waiters: list[
            tuple[Callable[[Event], None], Callable[[], bool], Callable[[], object]]
        ] = []

    def expect(self, kind: type[T]) -> "asyncio.Future[T]":
        """Return the next event of a kind; the future is cancelled when the session is left."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def see(event: Event) -> None:
            if isinstance(event, kind) and not future.done():
                future.set_result(event)

        self._waiters.append((see, future.done, future.cancel))
        return future

    def see(self, event: Event) -> None:
        """Settle those that wait for an event."""
        for see, _, _ in self._waiters:
            see(event)
        self._waiters = [one for one in self._waiters if not one[1]()]

    def cancel(self) -> None:
        """Cancel all."""
        for _, _, cancel in self._waiters:
            _ = cancel()


class RpcSession(FollowedSession):
    """The session that the commands are about; another one can take its place."""

    def __init__(
        self,
        client: AgentClient,
        *,
        folders: Sequence[Path],
        on_event: Callable[[EventEnvelope], None],
    ) -> None:
        """Prepare it; `connect` and `open` come first.

        Args:
            client: The connection; this object is its only user.
            folders: Folders of the workspace, the primary one first.
            on_event: Called with each event, in order.
        """
        super().__init__(client)
        self._folders = folders
        self.activity = SessionActivity({})
        self.waiters = EventWaiters()
        self._on_event = on_event
        self._following: asyncio.Task[None] | None = None
        self._entries: Sequence[JsonObject] | None = None
        """Lines of the session file; None: they may have changed since they were read."""
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when nothing more will come; the reason, for the user."""

    @property
    def root(self) -> Path:
        """The workspace."""
        return self._folders[0]

    async def connect(self, options: JsonObject) -> None:
        """Introduce this client.

        Args:
            options: More of `initializationOptions.agent`.

        Raises:
            AgentRefused: The server does not accept it.
        """
        client: JsonObject = {"name": CLIENT, "version": VERSION, "role": "panel"}
        more: JsonObject = {
            # As in pi, what the client has started ends with it, unless another client looks on.
            "session": {"open": "none", "lifetime": "connection"},
            "capabilities": {"v": 1, "permission": {}, "question": {"form": {}}},
            **options,
        }
        self.client.fills_images = True
        await self.client.introduce(client, self._folders, **more)

    async def open(self, session: str, **more: JsonValue) -> None:
        """Open a session in place of the one in front, and follow its events.

        Args:
            session: Its id, `latest` or `new`.
            more: More of the params of `agent/session/open`.

        Raises:
            AgentRefused: It cannot be opened; the session before stays in front.
        """
        await self.load(session, **more)
        if self._following is not None:
            _ = self._following.cancel()
        self._entries = None
        self.activity = SessionActivity(as_object(self.snapshot.get("activity")))
        self.waiters.cancel()
        self._following = asyncio.get_running_loop().create_task(self._follow(uuid4().hex))

    def close(self) -> None:
        """Stop following the session."""
        if self._following is not None:
            _ = self._following.cancel()
        self.waiters.cancel()

    def show_current(self, at_ms: int) -> None:
        """Publish events for what goes on in the session already, and for what waits for an answer."""
        for event in self.state.events_since_stored(self.snapshot):
            self._on_event(EventEnvelope(seq=0, first=0, at_ms=at_ms, event=event))

    async def request(self, method: str, **params: JsonValue) -> JsonObject:
        """Send a request about the session and return its result.

        Raises:
            AgentRefused: The server answered with an error, or has gone.
        """
        return as_object(await self.client.request(method, {"session": self.id, **params}))

    async def configure(self, **changes: JsonValue) -> None:
        """Change the configuration.

        Raises:
            AgentRefused: A value is not allowed.
        """
        result = await self.request("agent/session/configure", set=changes)
        # The event may come after the response: what is read next must not be older.
        self.state.config = value_of(result.get("config"), SessionConfig)

    async def entries(self) -> Sequence[JsonObject]:
        """Return the lines of the session file after its header, of all branches.

        Raises:
            AgentRefused: They cannot be read.
        """
        if self._entries is None:
            lines = (await self.export("jsonl")).split("\n")[1:]
            self._entries = [one for line in lines if line and is_object(one := decode(line))]
        return self._entries

    async def export(self, form: str) -> str:
        """Return the session as a document; empty where nothing was said, as it has no file yet.

        Raises:
            AgentRefused: It cannot be read.
        """
        try:
            exported = await self.request("agent/session/export", format=form)
        except AgentRefused as error:
            if error.data.get("kind") != NOT_FOUND:
                raise
            return ""
        return as_text(exported.get("content"))

    async def delete(self) -> None:
        """Delete the session.

        Raises:
            AgentRefused: It cannot be deleted.
        """
        try:
            _ = await self.request("agent/session/delete")
        except AgentRefused as error:
            if error.data.get("kind") != NOT_FOUND:
                raise

    async def leaf(self) -> str | None:
        """Return the entry that the next message follows; None: there is none.

        Raises:
            AgentRefused: The server has gone.
        """
        leaf = (await self.request("agent/session/tree")).get("leaf")
        return leaf if isinstance(leaf, str) else None

    async def messages(self) -> Sequence[JsonObject]:
        """Return the messages that the model is shown.

        Raises:
            AgentRefused: They cannot be read.
        """
        path = path_to(await self.leaf(), await self.entries())
        return [one for one in map(message_of, since_compaction(path)) if one is not None]

    async def _follow(self, token: str) -> None:
        try:
            await self.receive(token)
        except AgentRefused as error:
            self._end(f"{error}; start `tiller rpc --continue` to go on with the session")
        else:
            self._end("another client has closed the session")

    def _end(self, why: str) -> None:
        if not self.over.done():
            self.over.set_result(why)

    @override
    def see(self, stamped: EventEnvelope) -> None:
        """Update state and activity, and pass the event on."""
        super().see(stamped)
        self._entries = None
        self.activity.see(stamped.event)
        self._on_event(stamped)
        self.waiters.see(stamped.event)


def path_to(leaf: str | None, entries: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the entries from the root to a leaf."""
    by_id = {one.get("id"): one for one in entries}
    path: list[JsonObject] = []
    at: JsonValue = leaf
    while isinstance(at, str) and (entry := by_id.pop(at, None)) is not None:
        path.append(entry)
        at = entry.get("parentId")
    return path[::-1]


def since_compaction(path: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the latest compaction with what it kept and what followed; without a compaction the whole path."""
    places = [place for place, one in enumerate(path) if one.get("type") == "compaction"]
    if not places:
        return path
    place = places[-1]
    first = path[place].get("firstKeptEntryId")
    kept = next((at for at in range(place) if path[at].get("id") == first), place)
    rest = [*path[kept:place], *path[place + 1 :]]
    return [path[place], *(one for one in rest if one.get("type") != "compaction")]
