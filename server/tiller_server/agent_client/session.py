"""A session of a server of the methods `agent/*`, as a front end uses it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, get_args
from uuid import uuid4

import msgspec

from agent_core.assembly.library import open_library
from agent_core.events import (
    Event,
    EventFeed,
    EventSubscription,
    PermissionMode,
)
from agent_core.events.codec import block
from agent_core.kernel import JsonObject, JsonValue, SessionId, SystemClock
from agent_core.kernel.json import as_object, is_object
from agent_core.messages import Text, UserContent
from agent_core.resources.paths import AppPaths
from agent_core.transcript import AnyEntry, Transcript
from tiller_server import VERSION
from tiller_server.agent_client.connection import AgentClient, AgentRefused
from tiller_server.agent_client.events import event_of
from tiller_server.agent_client.state import SharedState

TRIES: Final = 5
"""How often the file is read until no event lies between it and the state."""
TOKEN: Final = "session"  # noqa: S105 - a progress token
MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)


class SharedSession:
    """A session of the daemon."""

    def __init__(self, connection: AgentClient, paths: AppPaths, *, name: str) -> None:
        """Prepare it; `open` comes first.

        Args:
            connection: The connection; this session is its only user.
            paths: Where sessions are stored.
            name: Name of the client, as in `initialize`.
        """
        self.id = ""
        self.root = Path()
        """Folder of the session."""
        self.state: SharedState
        self.offered: Mapping[str, str] = {}
        """Descriptions of the skills, templates and commands of extensions, by name."""
        self._connection = connection
        self._paths = paths
        self._name = name
        self._feed = EventFeed(SystemClock())
        self._posted: set[asyncio.Task[JsonValue]] = set()
        self._snapshot: JsonObject = {}

    @property
    def is_busy(self) -> bool:
        """Whether a run, a compaction or a command of the user is active."""
        return self.state.is_busy

    async def open(self, session: str, root: Path) -> None:
        """Attach to a session.

        Args:
            session: Its id.
            root: The workspace.

        Raises:
            AgentRefused: The daemon does not have it and cannot load it, as when another process has.
        """
        agent: JsonObject = {
            "client": {"name": self._name, "version": VERSION, "role": "panel"},
            "session": {"open": "none"},
            "capabilities": {
                "v": 1,
                "events": {"channel": "progress"},
                "permission": {},
                "question": {"form": {}},
            },
        }
        folder: JsonObject = {"uri": root.as_uri(), "name": root.name}
        params: JsonObject = {
            "processId": None,
            "clientInfo": {"name": self._name, "version": VERSION},
            "rootUri": root.as_uri(),
            "workspaceFolders": [folder],
            "capabilities": {},
            "initializationOptions": {"agent": agent},
        }
        _ = await self.request("initialize", params)
        self._connection.notify("initialized", {})
        self.id = session
        self.root = root
        await self._look()
        listed = as_object(await self.request("agent/command/list", {})).get("commands")
        rows = listed if isinstance(listed, list) else []
        self.offered = {
            str(one.get("name")): str(one.get("description") or "")
            for one in rows
            if is_object(one)
        }

    async def stored_entries(self) -> Sequence[AnyEntry]:
        """Read the present branch from the file of the session, at the moment of the state.

        Raises:
            StorageError: The file cannot be read.
            AgentRefused: The daemon has gone.
        """
        async with open_library(self._paths, clock=SystemClock()) as library:
            path: Sequence[AnyEntry] = ()
            for _ in range(TRIES):
                before = self._snapshot.get("seq")
                path = Transcript((await library.read(SessionId(self.id))).entries).path()
                # Events between the two would be shown twice.
                await self._look()
                if self._snapshot.get("seq") == before:
                    break
        return path

    async def _look(self) -> None:
        """Fetch the state of this moment.

        Raises:
            AgentRefused: The session cannot be opened.
        """
        opened = await self.request("agent/session/open", {"session": self.id})
        self._snapshot = as_object(opened)
        try:
            self.state = SharedState.of(self._snapshot)
        except (msgspec.ValidationError, ValueError) as error:
            message = f"the snapshot of the daemon cannot be read: {error}"
            raise AgentRefused(message) from error

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request about the session and wait for its result.

        Raises:
            AgentRefused: The daemon answered with an error, or has gone.
        """
        return await self._connection.request(method, params)

    def post(self, method: str, params: JsonObject) -> None:
        """Send a request whose result nobody waits for; a refusal is dropped."""
        task = asyncio.get_running_loop().create_task(self.request(method, params))
        self._posted.add(task)

        def done(one: "asyncio.Task[JsonValue]") -> None:
            self._posted.discard(one)
            if not one.cancelled():
                _ = one.exception()

        task.add_done_callback(done)

    def subscribe(self, *, partials: bool = False) -> EventSubscription:
        """Open a reader of its events; with `partials` it shows arguments as they grow."""
        return self._feed.subscribe(partials=partials)

    async def follow(self) -> str:
        """Publish the events of the session for as long as it lasts; return why it is gone, for the user."""
        for event in self.state.events_since_stored(self._snapshot):
            self._publish(event)
        self._connection.on_notification = self._take
        reason = "lagging"
        while reason == "lagging":
            params: JsonObject = {
                "partialResultToken": TOKEN,
                "epoch": self._snapshot.get("epoch"),
                "from": self._snapshot.get("seq"),
            }
            try:
                ended = as_object(await self.request("agent/subscribe", params))
            except AgentRefused:
                return "The connection to the daemon has ended. The session is stored."
            reason = str(ended.get("reason"))
            self._snapshot = {**self._snapshot, "seq": ended.get("last")}
        return "The session was closed by another client."

    async def stop(self) -> None:
        """Stop what is active."""
        _ = await self.request("agent/run/cancel", {"scope": "session"})

    async def prompt(self, content: Sequence[UserContent]) -> None:
        """Send a prompt; during a run it steers the run."""
        blocks: list[JsonValue] = [block(part) for part in content]
        params: JsonObject = {"messageId": uuid4().hex, "content": blocks, "delivery": "auto"}
        _ = await self.request("agent/prompt", params)

    async def run_shell(self, command: str, *, exclude_from_context: bool) -> None:
        """Run a command of the user."""
        params: JsonObject = {"command": command, "excludeFromContext": exclude_from_context}
        _ = await self.request("agent/bash", params)

    async def next_mode(self) -> PermissionMode:
        """Set the next permission mode that the user's settings allow, and return it."""
        place = MODES.index(self.state.config.mode) + 1
        for mode in (*MODES[place:], *MODES[: place - 1]):
            try:
                await self.configure({"mode": mode})
            except AgentRefused:
                continue  # looser than the settings allow
            return mode
        return self.state.config.mode

    async def follow_up(self, text: str) -> None:
        """Send a prompt that starts a run when this one has ended."""
        params: JsonObject = {"messageId": uuid4().hex, "content": [block(Text(text=text))]}
        _ = await self.request("agent/followUp", params)

    async def configure(self, changes: JsonObject) -> None:
        """Change the configuration.

        Raises:
            AgentRefused: A value is not allowed.
        """
        _ = await self.request("agent/session/configure", {"set": changes})

    def _take(self, method: str, params: JsonObject) -> None:
        if method != "$/progress" or params.get("token") != TOKEN:
            return
        frame = as_object(params.get("value"))
        if frame.get("kind") == "agent/snapshot":
            with suppress(msgspec.ValidationError, ValueError):
                self.state = SharedState.of(as_object(frame.get("snapshot")))
        events = frame.get("events")
        for one in events if isinstance(events, list) else []:
            if is_object(one) and (stamped := event_of(one)) is not None:
                self._publish(stamped.event)

    def _publish(self, event: Event) -> None:
        self.state.see(event)
        _ = self._feed.publish(event)
