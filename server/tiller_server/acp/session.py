"""One session for one ACP client: it is opened, followed, and its events become updates."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Final

import msgspec

from agent_core.events import (
    Event,
    PermissionRequested,
    QuestionRequested,
    SessionConfig,
    SessionConfigured,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from agent_core.kernel.values import Value
from tiller_server import VERSION
from tiller_server.acp.capabilities import ClientCapabilities
from tiller_server.acp.errors import NOT_FOUND, AcpError, of_agent
from tiller_server.acp.options import Model, config_options, models_of, modes
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.projector import Projector
from tiller_server.acp.prompts import PromptTracker
from tiller_server.acp.replay import item_events, stored_events
from tiller_server.agent_client.connection import AgentClient, AgentRefused, RequestHandler
from tiller_server.agent_client.events import event_of, value_of

TOKEN: Final = "acp"  # noqa: S105 - a progress token
MODELS_S: Final = 2.0
"""How long a new session waits for the list of models: it may look for servers on this machine."""
SEQ: Final = "tiller.dev/seq"
EPOCH: Final = "tiller.dev/epoch"
SHOWN: Final = "tiller.dev/shown"
"""Keys of `_meta`: last event that the update includes, epoch of its number, characters of an unfinished text by item."""

OpenAgent = Callable[[Mapping[str, RequestHandler]], AbstractAsyncContextManager[AgentClient]]
"""Connects to the agent, with handlers for its requests."""


class Opening(Value, frozen=True, kw_only=True):
    """What a session is opened with."""

    session: str
    """Its id, or `new`."""
    folders: tuple[Path, ...]
    """The workspace first."""
    meta: JsonObject
    """`_meta` of the request."""


class AcpSession:
    """A session that a client has opened."""

    def __init__(self, peer: JsonRpcPeer, client: ClientCapabilities, opening: Opening) -> None:
        """Prepare it; `run` opens it.

        Args:
            peer: The client.
            client: What it has declared.
            opening: The session and its folders.
        """
        self.id = ""
        self.agent: AgentClient
        self.prompts = PromptTracker()
        self.own: set[str] = set()
        """Ids of the prompts of this client, which it shows itself."""
        self.announced: set[str] = set()
        """Requests for a decision whose events have come."""
        self._peer = peer
        self._client = client
        self._opening = opening
        self._config: SessionConfig
        self._models: Sequence[Model] = ()
        self._projector = self._new_projector({})
        self._snapshot: JsonObject = {}
        self._epoch = ""
        self._seq = 0
        self._has_moved = asyncio.Event()
        self._to_acknowledge = asyncio.Event()
        self._is_begun = asyncio.Event()
        self._is_over = asyncio.Event()

    # ------------------------------------------------------------------ life

    async def run(
        self,
        open_agent: OpenAgent,
        handlers: Mapping[str, RequestHandler],
        ready: "asyncio.Future[None]",
    ) -> None:
        """Open the session and follow it until it is closed; every prompt is answered by then.

        Args:
            open_agent: Connects to the agent.
            handlers: Answers of requests of the agent.
            ready: Gets its result when the session is open, or the AcpError that prevents it.
        """
        why = "the session was closed"
        try:
            async with open_agent(handlers) as agent:
                self.agent = agent
                try:
                    await self._open()
                    ready.set_result(None)
                    await self._follow_until_over()
                except AgentRefused as error:
                    why = str(error)
                    if not ready.done():
                        ready.set_exception(of_agent(error))
        finally:
            data: JsonObject = {"kind": "SessionNotFound", "retryable": True}
            self.prompts.end_all(AcpError(NOT_FOUND, why, data))
            _ = ready.cancel()

    def close(self) -> None:
        """End `run`; the session itself goes on in the daemon."""
        self._is_over.set()

    async def _open(self) -> None:
        root, *_ = self._opening.folders
        folders: list[JsonValue] = [
            {"uri": one.as_uri(), "name": one.name} for one in self._opening.folders
        ]
        agent: JsonObject = {
            "client": {"name": self._client.name, "version": self._client.version, "role": "panel"},
            "session": {"open": "none"},
            "capabilities": {
                "v": 1,
                "permission": {},
                "question": {"form": {}},
                "files": self._client.files,
            },
        }
        params: JsonObject = {
            "processId": None,
            "clientInfo": {"name": self._client.name, "version": VERSION},
            "rootUri": root.as_uri(),
            "workspaceFolders": folders,
            "capabilities": {},
            "initializationOptions": {"agent": agent},
        }
        _ = await self.agent.request("initialize", params)
        self.agent.notify("initialized", {})
        opened = await self.agent.request(
            "agent/session/open", {"session": self._opening.session, "folders": [root.as_uri()]}
        )
        self._take_snapshot(as_object(opened))
        with suppress(TimeoutError, AgentRefused):
            async with asyncio.timeout(MODELS_S):
                listed = await self.agent.request("agent/model/list", {"session": self.id})
                self._models = models_of(listed)
        self._continue_after(self._opening.meta)

    def _continue_after(self, meta: JsonObject) -> None:
        """Go on after the last update that the client has, when it has been here before."""
        seq = meta.get(SEQ)
        if isinstance(seq, int) and meta.get(EPOCH) == self._epoch:
            self._seq = seq
            self._projector = self._new_projector(as_object(meta.get(SHOWN)))
            self._snapshot = {}

    def _take_snapshot(self, snapshot: JsonObject) -> None:
        self._snapshot = snapshot
        self.id = as_text(snapshot.get("session"))
        self._epoch = as_text(snapshot.get("epoch"))
        seq = snapshot.get("seq")
        self._seq = seq if isinstance(seq, int) else 0
        try:
            self._config = value_of(snapshot.get("config"), SessionConfig)
        except (msgspec.ValidationError, ValueError) as error:
            message = f"the snapshot of the session cannot be read: {error}"
            raise AgentRefused(message) from error
        run = as_object(snapshot.get("run")).get("id")
        self.prompts.active_run = run if isinstance(run, str) else None
        pending = snapshot.get("pending")
        self.announced.update(
            as_text(as_object(one).get("request"))
            for one in (pending if isinstance(pending, list) else [])
        )

    def _new_projector(self, shown: JsonObject) -> Projector:
        lengths = {item: length for item, length in shown.items() if isinstance(length, int)}
        root = self._opening.folders[0]
        return Projector(root, self._client.parts, own=self.own, shown=lengths)

    # ------------------------------------------------------------------ what the client is sent

    def described(self) -> JsonObject:
        """Return the part of a response that describes the session."""
        return {"modes": modes(self._config), "configOptions": self.options()}

    def options(self) -> list[JsonValue]:
        """Return the configuration options in force."""
        with_booleans = self._client.has_boolean_options
        return config_options(self._config, self._models, with_booleans=with_booleans)

    async def configure(self, change: JsonObject) -> None:
        """Change the configuration.

        Raises:
            AgentRefused: A value is not allowed.
        """
        params: JsonObject = {"session": self.id, "set": change}
        result = as_object(await self.agent.request("agent/session/configure", params))
        with suppress(msgspec.ValidationError, ValueError):
            self._config = value_of(result.get("config"), SessionConfig)

    async def replay(self) -> None:
        """Send all that is stored of the session as updates.

        Raises:
            AgentRefused: It cannot be read.
        """
        cursor = as_object(self._snapshot.get("history")).get("cursor")
        projector = Projector(self._opening.folders[0], self._client.parts)
        for event in await stored_events(self.agent, self.id, cursor):
            for update in projector.updates(event):
                self._update(update)
            await self._peer.flushed()

    def begin(self) -> None:
        """Begin to send updates; called when the client knows the session."""
        self._is_begun.set()

    async def begun(self) -> None:
        """Wait until updates are sent."""
        _ = await self._is_begun.wait()

    async def seen(self, until: Callable[[], bool], *, within_s: float) -> None:
        """Wait until the events that have come fulfil a condition, or it takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not until():
                    _ = await self._has_moved.wait()

    def has_seen(self, seq: JsonValue) -> bool:
        """Return whether the updates of an event were sent."""
        return not isinstance(seq, int) or self._seq >= seq

    async def _announce(self) -> None:
        """Send the run that is going on and the commands."""
        run = as_object(self._snapshot.get("run"))
        items = run.get("items")
        for item in items if isinstance(items, list) else []:
            for event in item_events({**as_object(item), "run": run.get("id")}):
                self._show(event, self._seq)
        try:
            listed = as_object(await self.agent.request("agent/command/list", {"session": self.id}))
        except AgentRefused:
            return
        rows = listed.get("commands")
        commands: list[JsonValue] = [
            _command(row) for row in (rows if isinstance(rows, list) else []) if is_object(row)
        ]
        self._update({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    def _show(self, event: Event, seq: int) -> None:
        updates = self._projector.updates(event)
        for number, update in enumerate(updates, 1):
            if number == len(updates):
                self._seq = seq  # the client has all of the event with this one
            item = as_text(update.get("messageId"))
            shown = self._projector.shown(item)
            self._update(update, {} if shown is None else {SHOWN: {item: shown}})
        self._seq = seq

    def _update(self, update: JsonObject, more: JsonObject | None = None) -> None:
        meta: JsonObject = {SEQ: self._seq, EPOCH: self._epoch, **(more or {})}
        params: JsonObject = {"sessionId": self.id, "update": update, "_meta": meta}
        self._peer.notify("session/update", params)

    # ------------------------------------------------------------------ events

    async def _follow_until_over(self) -> None:
        _ = await self._is_begun.wait()
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow())
            acknowledging = tasks.create_task(self._acknowledge())
            over = tasks.create_task(self._is_over.wait())
            _ = await asyncio.wait([following, over], return_when=asyncio.FIRST_COMPLETED)
            for task in (following, acknowledging, over):
                _ = task.cancel()

    async def _follow(self) -> None:
        """Take the events in until the session is closed or the agent has gone."""
        with suppress(AgentRefused):
            await self._announce()
            self.agent.on_notification = self._take
            reason = "lagging"
            while reason == "lagging":
                params: JsonObject = {
                    "session": self.id,
                    "partialResultToken": TOKEN,
                    "epoch": self._epoch,
                    "from": self._seq,
                    "ack": True,
                }
                ended = as_object(await self.agent.request("agent/subscribe", params))
                reason = as_text(ended.get("reason"))

    async def _acknowledge(self) -> None:
        """Acknowledge events at the pace at which the client reads."""
        while True:
            _ = await self._to_acknowledge.wait()
            self._to_acknowledge.clear()
            await self._peer.flushed()
            self.agent.notify("agent/ack", {"token": TOKEN, "seq": self._seq})

    def _take(self, method: str, params: JsonObject) -> None:
        if method != "$/progress" or params.get("token") != TOKEN:
            return
        frame = as_object(params.get("value"))
        if frame.get("kind") == "agent/snapshot":
            with suppress(AgentRefused):
                self._take_snapshot(as_object(frame.get("snapshot")))
        events = frame.get("events")
        for wire in events if isinstance(events, list) else []:
            if is_object(wire) and (stamped := event_of(wire)) is not None:
                self._show(stamped.event, stamped.seq)
                self._see(stamped.event)
        if isinstance(last := frame.get("to"), int):
            self._seq = last
        self._to_acknowledge.set()
        self._has_moved.set()
        self._has_moved.clear()

    def _see(self, event: Event) -> None:
        match event:
            case SessionConfigured(config=config):
                self._reconfigured(config)
            case PermissionRequested(request=request) | QuestionRequested(request=request):
                self.announced.add(request.request)
            case _:
                self.prompts.see(event)

    def _reconfigured(self, config: SessionConfig) -> None:
        mode, options = self._config.mode, self.options()
        self._config = config
        if mode != config.mode:
            self._update({"sessionUpdate": "current_mode_update", "currentModeId": config.mode})
        if options != (now := self.options()):
            self._update({"sessionUpdate": "config_option_update", "configOptions": now})


def _command(row: JsonObject) -> JsonObject:
    name, hint = as_text(row.get("name")), as_text(row.get("argumentHint"))
    more: JsonObject = {"input": {"hint": hint}} if hint else {}
    return {"name": name, "description": as_text(row.get("description")) or name, **more}
