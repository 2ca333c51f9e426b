"""A session of a server of the methods `agent/*`, as a front end uses it."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args
from uuid import uuid4

from typing_extensions import override

from agent_core.assembly.library import open_library
from agent_core.events import (
    Event,
    EventEnvelope,
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
from tiller_server.agent_client.followed_session import FollowedSession

TRIES: Final = 5
"""How often the file is read until no event lies between it and the state."""
TOKEN: Final = "session"  # noqa: S105 - a progress token
MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)


class SharedSession(FollowedSession):
    """A session of the daemon, as a conversation uses it."""

    def __init__(self, connection: AgentClient, paths: AppPaths, *, name: str) -> None:
        """Prepare it; `open` comes first.

        Args:
            connection: The connection; this session is its only user.
            paths: Where sessions are stored.
            name: Name of the client, as in `initialize`.
        """
        super().__init__(connection)
        self.root = Path()
        """Folder of the session."""
        self.offered: Mapping[str, str] = {}
        """Descriptions of the skills, templates and commands of extensions, by name."""
        self._paths = paths
        self._name = name
        self._feed = EventFeed(SystemClock())
        self._posted: set[asyncio.Task[JsonValue]] = set()

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
        client: JsonObject = {"name": self._name, "version": VERSION, "role": "panel"}
        capabilities: JsonObject = {
            "v": 1,
            "events": {"channel": "progress"},
            "permission": {},
            "question": {"form": {}},
        }
        await self.client.introduce(client, (root,), capabilities=capabilities)
        self.root = root
        await self.load(session)
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
                before = self.snapshot.get("seq")
                path = Transcript((await library.read(SessionId(self.id))).entries).path()
                # Events between the two would be shown twice.
                await self.load(self.id)
                if self.snapshot.get("seq") == before:
                    break
        return path

    async def request(self, method: str, params: JsonObject) -> JsonValue:
        """Send a request about the session and wait for its result.

        Raises:
            AgentRefused: The daemon answered with an error, or has gone.
        """
        return await self.client.request(method, params)

    def post(self, method: str, params: JsonObject) -> None:
        """Send a request whose result nobody waits for; a refusal is dropped."""
        task = asyncio.get_running_loop().create_task(self.request(method, params))
        self._posted.add(task)

        def done(one: "asyncio.Task[JsonValue]") -> None:
            self._posted.discard(one)
            if not one.cancelled():
                _ = one.exception()

        task.add_done_callback(done)

    def subscribe(
        self, *, only: tuple[type[Event], ...] = (), partials: bool = False
    ) -> EventSubscription:
        """Open a reader of its events, or `only` of some types; with `partials` it shows arguments as they grow."""
        return self._feed.subscribe(only=only, partials=partials)

    async def follow(self) -> str:
        """Publish the events of the session for as long as it lasts; return why it is gone, for the user."""
        for event in self.state.events_since_stored(self.snapshot):
            self._publish(event)
        try:
            await self.receive(TOKEN)
        except AgentRefused:
            return "The connection to the daemon has ended. The session is stored."
        return "The session was closed by another client."

    async def stop(self) -> str:
        """Stop what is active; return an empty text: the queue stays, since other clients see it too."""
        _ = await self.request("agent/run/cancel", {"scope": "session"})
        return ""

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

    @override
    def see(self, stamped: EventEnvelope) -> None:
        """Publish an event."""
        self._publish(stamped.event)

    def _publish(self, event: Event) -> None:
        self.state.see(event)
        _ = self._feed.publish(event)
