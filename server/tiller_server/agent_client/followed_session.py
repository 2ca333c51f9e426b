"""A session of a server of the methods `agent/*`, whose state follows its events."""

from contextlib import suppress

import msgspec

from agent_core.events import EventEnvelope
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, as_text, is_object
from tiller_server.agent_client.connection import AgentClient, AgentRefused
from tiller_server.agent_client.events import event_of
from tiller_server.agent_client.state import SharedState


class FollowedSession:
    """State and events of one session."""

    def __init__(self, client: AgentClient) -> None:
        """Prepare it; `load` comes first.

        Args:
            client: The connection, after its handshake; this object is its only user.
        """
        self.client = client
        self.id = ""
        self.state: SharedState
        self.snapshot: JsonObject = {}
        """The source of the state; its `seq` is the last event that has been received."""
        self._token = ""

    async def load(self, session: str, **more: JsonValue) -> None:
        """Open a session and fetch its state; on an error the session before stays.

        Args:
            session: Its id, `latest` or `new`.
            more: More of the params of `agent/session/open`.

        Raises:
            AgentRefused: It cannot be opened.
        """
        params: JsonObject = {"session": session, **more}
        snapshot = as_object(await self.client.request("agent/session/open", params))
        try:
            state = SharedState.of(snapshot)
        except (msgspec.ValidationError, ValueError) as error:
            message = f"the snapshot of the daemon cannot be read: {error}"
            raise AgentRefused(message) from error
        self.id, self.state, self.snapshot = as_text(snapshot.get("session")), state, snapshot

    async def receive(self, token: str) -> None:
        """Receive the events after the snapshot until the session is closed; `see` is called with each.

        Args:
            token: Progress token of the stream. Frames of a former one are ignored.

        Raises:
            AgentRefused: The server has gone.
        """
        self._token = token
        self.client.on_notification = self._take
        reason = "lagging"
        while reason == "lagging":
            params: JsonObject = {
                "session": self.id,
                "partialResultToken": token,
                "epoch": self.snapshot.get("epoch"),
                "from": self.snapshot.get("seq"),
            }
            ended = as_object(await self.client.request("agent/subscribe", params))
            reason = as_text(ended.get("reason"))
            self.snapshot = {**self.snapshot, "seq": ended.get("last")}

    def see(self, stamped: EventEnvelope) -> None:
        """Update the state from an event."""
        self.state.see(stamped.event)

    def _take(self, method: str, params: JsonObject) -> None:
        if method != "$/progress" or params.get("token") != self._token:
            return
        frame = as_object(params.get("value"))
        if frame.get("kind") == "agent/snapshot":
            with suppress(msgspec.ValidationError, ValueError):
                self.state = SharedState.of(as_object(frame.get("snapshot")))
        events = frame.get("events")
        for one in events if isinstance(events, list) else []:
            if is_object(one) and (stamped := event_of(one)) is not None:
                self.see(stamped)
