"""One session for one ACP client: it is opened, followed, and its events become updates."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from agent_core.events import (
    Event,
    MessageEnded,
    PermissionRequested,
    QuestionRequested,
    SessionConfig,
    SessionConfigured,
)
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text
from agent_core.kernel.values import SecretValue
from agent_core.messages import text_of
from tiller_server.acp.capabilities import NEWEST, ClientCapabilities
from tiller_server.acp.errors import NOT_FOUND, AcpError, of_agent
from tiller_server.acp.peer import JsonRpcPeer
from tiller_server.acp.sessions.commands import available_commands
from tiller_server.acp.sessions.options import ModelOption, config_options, model_options, modes
from tiller_server.acp.sessions.prompts import PromptTracker
from tiller_server.acp.updates.stored_items import run_events, stored_events
from tiller_server.acp.updates.stream import UpdateForm, UpdateStream
from tiller_server.agent_client.connection import AgentClient, AgentRefused, RequestHandler
from tiller_server.agent_client.events import value_of

TOKEN: Final = "acp"  # noqa: S105 - a progress token
MODELS_S: Final = 2.0
"""How long a new session waits for the list of models: it may look for servers on this machine."""

OpenAgent = Callable[
    [Mapping[str, RequestHandler], JsonObject], AbstractAsyncContextManager[AgentClient]
]
"""Connects to the agent, with handlers for its requests and the MCP servers of the client, as in `mcp.json`."""


class Opening(SecretValue, frozen=True, kw_only=True):
    """Parameters with which a session is opened."""

    hidden: ClassVar = frozenset({"mcp_servers"})

    session: str
    """Its id, or `new`."""
    named: str = ""
    """Id by which the client knows it; empty: its own."""
    folders: tuple[Path, ...]
    """The workspace first."""
    mcp_servers: JsonObject
    """MCP servers of the client, as in `mcp.json`."""
    meta: JsonObject
    """`_meta` of the request."""
    client_id: str
    """Id of the client process, with which the ids of its prompts begin."""


class AcpSession:
    """A session that a client has opened."""

    def __init__(self, peer: JsonRpcPeer, client: ClientCapabilities, opening: Opening) -> None:
        """Prepare it; `run` opens it.

        Args:
            peer: The client.
            client: Its capabilities.
            opening: The session and its folders.
        """
        self.id = ""
        self.agent: AgentClient
        self.prompts = PromptTracker()
        form = _form(client, opening.client_id)
        self.stream = UpdateStream(peer, opening.folders[0], client.parts, form)
        self.announced: set[str] = set()
        """Requests for a decision whose events have come."""
        self._client = client
        self._opening = opening
        self._config: SessionConfig
        self._models: Sequence[ModelOption] = ()
        self._snapshot: JsonObject = {}
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
            async with open_agent(handlers, self._opening.mcp_servers) as agent:
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
        client: JsonObject = {
            "name": self._client.name,
            "version": self._client.version,
            "role": "panel",
        }
        capabilities: JsonObject = {
            "v": 1,
            "permission": {},
            "question": {"form": {}},
            "files": self._client.files,
        }
        self.agent.fills_images = True
        await self.agent.introduce(client, self._opening.folders, capabilities=capabilities)
        opened = await self.agent.request(
            "agent/session/open", {"session": self._opening.session, "folders": [root.as_uri()]}
        )
        self._take_snapshot(as_object(opened))
        with suppress(TimeoutError, AgentRefused):
            async with asyncio.timeout(MODELS_S):
                listed = await self.agent.request("agent/model/list", {"session": self.id})
                self._models = model_options(listed)
        if self.stream.continue_after(self._opening.meta):
            self._snapshot = {}  # the client has been here before, and gets what came since

    def _take_snapshot(self, snapshot: JsonObject) -> None:
        self._snapshot = snapshot
        self.id = as_text(snapshot.get("session"))
        self.stream.restart(snapshot, named=self._opening.named)
        try:
            self._config = value_of(snapshot.get("config"), SessionConfig)
        except (msgspec.ValidationError, ValueError) as error:
            message = f"the snapshot of the session cannot be read: {error}"
            raise AgentRefused(message) from error
        pending = snapshot.get("pending")
        self.announced.update(
            as_text(as_object(one).get("request"))
            for one in (pending if isinstance(pending, list) else [])
        )

    # ------------------------------------------------------------------ for the client

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
            self._reconfigured(value_of(result.get("config"), SessionConfig))

    async def replay(self) -> None:
        """Send all that is stored of the session as updates.

        Raises:
            AgentRefused: It cannot be read.
        """
        snapshot = self._snapshot
        if self._is_begun.is_set():
            # The run that goes on was shown to this client, which asks for it again.
            snapshot = as_object(
                await self.agent.request("agent/session/open", {"session": self.id})
            )
        cursor = as_object(snapshot.get("history")).get("cursor")
        events = await stored_events(self.agent, self.id, cursor)
        if self._is_begun.is_set():
            events.extend(run_events(snapshot))
        await self.stream.replay(iter(events))
        if not self._is_begun.is_set():
            self._show_run()

    async def message_of(self, text: str) -> str | None:
        """Return the id of the newest message of the user with a text, or of the newest one; None: there is none.

        Raises:
            AgentRefused: The session cannot be read.
        """
        messages = await self._user_messages()
        return next((message for shown, message in messages if shown == text), None) or next(
            (message for _, message in messages), None
        )

    async def exact_message_of(self, text: str) -> str | None:
        """Return the id of the newest message of the user with a text; None: there is none.

        Raises:
            AgentRefused: The session cannot be read.
        """
        messages = await self._user_messages()
        return next((message for shown, message in messages if shown == text), None)

    async def _user_messages(self) -> Sequence[tuple[str, str]]:
        """Return text and id of each message of the user, newest first."""
        params: JsonObject = {"session": self.id}
        snapshot = as_object(await self.agent.request("agent/session/open", params))
        cursor = as_object(snapshot.get("history")).get("cursor")
        events = [*await stored_events(self.agent, self.id, cursor), *run_events(snapshot)]
        # Stored messages do not have the ids of their prompts.
        return [
            (text_of(one.content), one.entry or one.item)
            for one in reversed(events)
            if isinstance(one, MessageEnded) and one.role == "user"
        ]

    def begin(self) -> None:
        """Begin to send updates; called when the client knows the session."""
        self._is_begun.set()

    async def begun(self) -> None:
        """Wait until updates are sent."""
        _ = await self._is_begun.wait()

    def _show_run(self) -> None:
        for event in run_events(self._snapshot):
            self.stream.show(event, self.stream.seq)
        self._snapshot = {}

    async def _announce(self) -> None:
        """Send the run that is going on, unless it was replayed, and the commands."""
        self._show_run()
        try:
            listed = await self.agent.request("agent/command/list", {"session": self.id})
        except AgentRefused:
            return
        commands = available_commands(listed)
        self.stream.send(
            {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        )

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
        """Send updates until the session is closed or the agent has gone."""
        with suppress(AgentRefused):
            await self._announce()
            self.agent.on_notification = self._take
            reason = "lagging"
            while reason == "lagging":
                params: JsonObject = {
                    "session": self.id,
                    "partialResultToken": TOKEN,
                    "epoch": self.stream.epoch,
                    "from": self.stream.seq,
                    "ack": True,
                }
                ended = as_object(await self.agent.request("agent/subscribe", params))
                reason = as_text(ended.get("reason"))

    async def _acknowledge(self) -> None:
        """Acknowledge events at the pace at which the client reads."""
        while True:
            last = await self.stream.reached()
            self.agent.notify("agent/ack", {"token": TOKEN, "seq": last})

    def _take(self, method: str, params: JsonObject) -> None:
        if method != "$/progress" or params.get("token") != TOKEN:
            return
        frame = as_object(params.get("value"))
        if frame.get("kind") == "agent/snapshot":
            with suppress(AgentRefused):
                snapshot = as_object(frame.get("snapshot"))
                self._take_snapshot(snapshot)
                self.stream.report_state()
                self.prompts.miss(is_compacting=snapshot.get("state") == "compacting")
        for stamped in self.stream.events(frame):
            self._see(stamped.event)

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
            self.stream.send({"sessionUpdate": "current_mode_update", "currentModeId": config.mode})
        if options != (now := self.options()):
            self.stream.send({"sessionUpdate": "config_option_update", "configOptions": now})


def _form(client: ClientCapabilities, client_id: str) -> UpdateForm | None:
    """Return the form of updates for a client; None: that of the projector."""
    if client.protocol == NEWEST:
        return None
    from tiller_server.acp.version2 import Version2Updates  # noqa: PLC0415 - a draft that few clients speak

    return Version2Updates(client_id)
