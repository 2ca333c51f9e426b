"""The bridge of one account: messages of a chat platform to sessions of the daemon, and their answers back."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from agent_core.channels.messaging.delivery.sender import OutboxSender
from agent_core.channels.messaging.port import (
    ClickReply,
    ConnectionState,
    InboundClick,
    InboundMessage,
    InboundRecall,
    MessagingChannel,
)
from agent_core.channels.messaging.store import bindings, inbox, outbox
from agent_core.channels.messaging.store.database import MessagingDatabase, Transaction
from agent_core.kernel import Clock
from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.kernel.values import Value
from agent_core.storage.adapters.attachments import Attachments
from tiller_server.agent_client.daemon_link import Connect, DaemonLink
from tiller_server.channels.bridge.approver import Approver
from tiller_server.channels.bridge.attachments import ChatAttachments
from tiller_server.channels.bridge.catch_up import QUIET_MS, CatchUp
from tiller_server.channels.bridge.chat_store import ChatStore
from tiller_server.channels.bridge.commands import ChatCommands
from tiller_server.channels.bridge.config import BridgeConfig
from tiller_server.channels.bridge.conversations import Conversations
from tiller_server.channels.bridge.intake import Intake
from tiller_server.channels.bridge.prompt_sender import PromptSender
from tiller_server.channels.bridge.session_follower import SessionFollowers

MOST_DEAD: Final = 20
MOST_BINDINGS: Final = 1000
SILENCE_MS: Final = 2 * QUIET_MS
"""Time without an event or a read history after which a connection counts as deaf."""


class DeadMessage(Value, frozen=True, kw_only=True):
    """A message that was given up."""

    box: str
    """`inbox` or `outbox`."""
    chat: str
    at_ms: int
    reason: str


class BridgeStatus(Value, frozen=True, kw_only=True):
    """State of a bridge, for `status` commands."""

    channel: str
    account: str
    connection: ConnectionState
    reason: str
    """Why the connection is not in use, in one sentence; empty when it is."""
    last_event_ms: int
    last_probe_ms: int | None
    inbox: dict[str, int]
    """Number of messages by state."""
    outbox: dict[str, int]
    dead: tuple[DeadMessage, ...]
    """The newest messages that were given up."""
    bindings: int
    is_healthy: bool


class ChatBridge:
    """The bridge of one account. It is the receiver of the platform's events."""

    def __init__(
        self,
        channel: MessagingChannel,
        connect: Connect,
        config: BridgeConfig,
        *,
        database: MessagingDatabase,
        open_attachments: Callable[[], Attachments],
        cleaner: TextRedactor,
        clock: Clock,
    ) -> None:
        """Prepare it; nothing is opened yet.

        Args:
            channel: The platform; `run` keeps its connection.
            connect: Connects to the daemon.
            config: Rights of people, and workspaces.
            database: File of the account; no other process uses it. The caller closes it.
            open_attachments: Opens the attachments of the user; blocking.
            cleaner: Removes secrets from everything that is sent.
            clock: Time.
        """
        self._channel = channel
        self._database = database
        self._sender = OutboxSender(database, channel, clock=clock)
        self._store = ChatStore(
            database, self._sender, limits=channel.capabilities, cleaner=cleaner, clock=clock
        )
        self._link = DaemonLink(
            connect,
            name=config.client,
            root=config.workspaces[0].folder,
            role="panel",
            clock=clock,
        )
        self._followers = SessionFollowers(
            self._link, self._store, self._sender, client=config.client
        )
        self._approver = Approver(self._link, self._store, config)
        self._intake = self._made_intake(config, ChatAttachments(channel, open_attachments))
        self._catch_up = CatchUp(channel, self._store, self._sender)
        self._connection: ConnectionState = "stopped"
        self._reason = ""

    def _made_intake(self, config: BridgeConfig, attachments: ChatAttachments) -> Intake:
        link, store = self._link, self._store
        conversations = Conversations(link, store, config)
        prompts = PromptSender(
            link,
            store,
            config,
            conversations=conversations,
            followers=self._followers,
            attachments=attachments,
        )
        commands = ChatCommands(
            link, store, config, conversations=conversations, approver=self._approver
        )
        return Intake(
            link, store, config, prompts=prompts, commands=commands, approver=self._approver
        )

    async def run(self) -> None:
        """Serve the account, for as long as it is not cancelled.

        Raises:
            StorageUnavailable: The file of the account cannot be opened.
            ExceptionGroup: It cannot be used any more (StorageUnavailable).
        """
        await self._database.open()
        self._connection = "connecting"
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (
                    self._link.run(),
                    self._sender.run(),
                    self._followers.run(),
                    self._intake.run(),
                    self._catch_up.run(self),
                    self._catch_up.watch(),
                    self._channel.run(self),
                ):
                    _ = tasks.create_task(work)
        finally:
            self._connection = "stopped"

    async def receive(self, event: InboundMessage | InboundRecall) -> None:
        """Store an event; it is acknowledged after that."""
        channel, account = self._channel.name, self._channel.account
        await self._store.run(
            lambda tx: self._intake.store_event(tx, event, channel=channel, account=account)
        )
        self._catch_up.last_event_ms = self._store.clock.now_ms()
        self._intake.notify()

    async def click(self, event: InboundClick) -> ClickReply:
        """Decide a click."""
        self._catch_up.last_event_ms = self._store.clock.now_ms()
        return await self._approver.click(event)

    def connection_changed(self, state: ConnectionState, reason: str = "") -> None:
        """Record the state of the connection; the history is read after `connected`."""
        self._connection, self._reason = state, reason
        if state == "connected":
            self._catch_up.request()

    async def status(self) -> BridgeStatus:
        """Return the state of the bridge.

        Raises:
            StorageUnavailable: The file of the account cannot be read.
        """

        def read(
            tx: Transaction,
        ) -> tuple[dict[str, int], dict[str, int], Sequence[DeadMessage], int]:
            dead = [
                *(
                    DeadMessage(box="inbox", chat=row.chat, at_ms=row.at_ms, reason=row.reason)
                    for row in inbox.dead(tx, limit=MOST_DEAD)
                ),
                *(
                    DeadMessage(
                        box="outbox", chat=row.chat, at_ms=row.created_ms, reason=row.reason
                    )
                    for row in outbox.dead(tx, limit=MOST_DEAD)
                ),
            ]
            bound = len(bindings.bindings(tx, limit=MOST_BINDINGS))
            return dict(inbox.counts(tx)), dict(outbox.counts(tx)), dead, bound

        in_counts, out_counts, dead, bound = await self._store.run(read)
        return BridgeStatus(
            channel=self._channel.name,
            account=self._channel.account,
            connection=self._connection,
            reason=self._reason,
            last_event_ms=self._catch_up.last_event_ms,
            last_probe_ms=self._catch_up.last_probe_ms,
            inbox=in_counts,
            outbox=out_counts,
            dead=tuple(dead),
            bindings=bound,
            is_healthy=self._is_healthy(),
        )

    def _is_healthy(self) -> bool:
        """Return whether it is connected, and an event came or the history could be read not long ago."""
        seen_ms = max(self._catch_up.last_event_ms, self._catch_up.last_probe_ms or 0)
        is_heard = self._store.clock.now_ms() - seen_ms < SILENCE_MS
        return self._connection == "connected" and is_heard
