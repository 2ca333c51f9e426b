"""The conversations of chats: which session a place is bound to, made when it is needed."""

from typing import Final

import msgspec

from agent_core.channels.messaging.port import InboundMessage
from agent_core.channels.messaging.store import bindings
from agent_core.channels.messaging.store.bindings import Binding
from agent_core.channels.messaging.store.database import Transaction
from agent_core.kernel import JsonObject
from agent_core.kernel.json import as_object, as_text
from agent_core.kernel.values import Value
from tiller_server.agent_client.daemon_link import DaemonLink
from tiller_server.channels.bridge.admission import place_of
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.config import BridgeConfig, ChatWorkspace

WORKSPACE_OF_CHAT: Final = "chat:"
"""Place of the binding that has only the workspace of a group, for its new threads."""


class _Opened(Value, frozen=True, kw_only=True):
    session: str
    epoch: str
    seq: int


class Conversations:
    """Bindings of places to sessions."""

    def __init__(self, link: DaemonLink, store: ChatStore, config: BridgeConfig) -> None:
        self._link = link
        self._store = store
        self._config = config

    async def find(self, message: InboundMessage) -> Binding | None:
        """Return the conversation that a message belongs to; None: it would begin one."""
        place = place_of(message, has_threads=self._store.limits.has_threads)
        chat = message.target.chat

        def find(tx: Transaction) -> Binding | None:
            bound = bindings.at_place(tx, chat, place)
            if bound is None and message.reply_to is not None:
                bound = bindings.with_root(tx, chat, message.reply_to)
            if bound is None and message.target.thread is not None:
                # The thread of an answer whose confirmation is not stored yet has the message that it answers.
                bound = bindings.with_root(tx, chat, message.target.thread)
            return bound

        return await self._store.run(find)

    async def open(self, message: InboundMessage) -> Binding:
        """Return the conversation of a message, with a new session where it begins one.

        Raises:
            AgentRefused: The daemon cannot be reached, or refuses a new session.
        """
        bound = await self.find(message)
        if bound is not None and bound.session:
            return bound
        workspace = await self._workspace_of(message.target.chat)
        opened = await self._open_session(workspace)
        place = place_of(message, has_threads=self._store.limits.has_threads)
        now_ms = self._store.clock.now_ms()

        def bind(tx: Transaction) -> Binding:
            made = bindings.bind(
                tx,
                chat=message.target.chat,
                place=place,
                kind=message.chat_kind,
                root=message.key if message.chat_kind == "group" else None,
                session=opened.session,
                workspace=workspace.name,
                created_by=message.sender.id,
                now_ms=now_ms,
            )
            if made.session == opened.session:
                self._set_begin(tx, opened, now_ms)
            return made

        return await self._store.run(bind)

    async def renew(
        self, message: InboundMessage, workspace: ChatWorkspace | None = None
    ) -> Binding:
        """Bind the place of a message to a new session, and return the binding.

        Args:
            message: The message.
            workspace: Another workspace; None: it stays.

        Raises:
            AgentRefused: As of `open`.
        """
        bound = await self.find(message)
        if bound is None:
            if workspace is not None:
                await self.set_workspace(message, workspace)
            return await self.open(message)
        chosen = workspace or self._config.workspace(bound.workspace) or self._config.workspaces[0]
        opened = await self._open_session(chosen)

        def rebind(tx: Transaction) -> Binding:
            bindings.rebind(tx, bound.id, session=opened.session, workspace=chosen.name)
            self._set_begin(tx, opened, self._store.clock.now_ms())
            return msgspec.structs.replace(bound, session=opened.session, workspace=chosen.name)

        return await self._store.run(rebind)

    async def set_workspace(self, message: InboundMessage, workspace: ChatWorkspace) -> None:
        """Record the workspace of the conversations that begin in a chat from now on."""

        def record(tx: Transaction) -> None:
            bound = bindings.bind(
                tx,
                chat=message.target.chat,
                place=WORKSPACE_OF_CHAT,
                kind=message.chat_kind,
                root=None,
                session="",
                workspace=workspace.name,
                created_by=message.sender.id,
                now_ms=self._store.clock.now_ms(),
            )
            bindings.rebind(tx, bound.id, session="", workspace=workspace.name)

        await self._store.run(record)

    async def _workspace_of(self, chat: str) -> ChatWorkspace:
        bound = await self._store.run(lambda tx: bindings.at_place(tx, chat, WORKSPACE_OF_CHAT))
        chosen = None if bound is None else self._config.workspace(bound.workspace)
        return chosen or self._config.workspaces[0]

    async def _open_session(self, workspace: ChatWorkspace) -> _Opened:
        params: JsonObject = {"session": "new", "folders": [workspace.folder.as_uri()]}
        config: JsonObject = {
            name: value
            for name, value in (("model", workspace.model), ("mode", workspace.mode))
            if value is not None
        }
        if config:
            params = {**params, "config": config}
        snapshot = as_object(await self._link.request("agent/session/open", params))
        seq = snapshot.get("seq")
        return _Opened(
            session=as_text(snapshot.get("session")),
            epoch=as_text(snapshot.get("epoch")),
            seq=seq if isinstance(seq, int) else 0,
        )

    def _set_begin(self, tx: Transaction, opened: _Opened, now_ms: int) -> None:
        bindings.set_cursor(
            tx, opened.session, epoch=opened.epoch, seq=opened.seq, state="", now_ms=now_ms
        )
