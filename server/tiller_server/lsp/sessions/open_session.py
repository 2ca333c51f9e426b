"""A session that is loaded, with the clients that are attached to it."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from agent_core.assembly.workspace import AddedRoots
from agent_core.events import (
    Attendant,
    FolderTrust,
    Notice,
    SessionClients,
    SessionRoots,
    SessionTrust,
    WorkspaceRoot,
)
from agent_core.kernel import JsonValue
from agent_core.kernel.errors import DocumentContention, TillerError
from agent_core.messages import Usage
from agent_core.session import AgentSession
from agent_core.session.changes.detection import UserEdit
from tiller_server.lsp.clients.options import attendant_of
from tiller_server.lsp.dialogs.presenter import QuestionPresenter
from tiller_server.lsp.documents.workspace_folders import Folders, reals
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.edits.undo_tracker import EditOutcome
from tiller_server.lsp.events.replay_log import EventLog
from tiller_server.lsp.events.subscription import Subscription
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.overlay.workspace_files import OverlayFiles
from tiller_server.lsp.sessions.caller_environment import CallerEnvironment
from tiller_server.lsp.wire.capabilities import AgentOptions

CONTENTION_S = 60.0
"""A model that tries the same edit again and again is no reason to say so each time."""

_log = logging.getLogger(__name__)


class AttachedClient(Protocol):
    """A client as the sessions see it that it is attached to."""

    connection: LspConnection
    options: AgentOptions
    folders: Folders
    editor: Editor
    dialogs: QuestionPresenter
    subscriptions: dict[int | str, Subscription]

    def uses(self, open_session: "OpenSession", /) -> bool:
        """Return whether a session is the one of this connection, or is listened to here."""
        ...

    def forget(self, open_session: "OpenSession", /) -> None:
        """Record that a session was closed."""
        ...


class SessionChat(Protocol):
    """The chat file of a session."""

    @property
    def clients(self) -> Sequence[AttachedClient]:
        """The clients that have it open."""
        ...


class OpenSessionState(Struct, kw_only=True):
    """Notes about a session, kept while it is loaded."""

    opened_ms: int
    """When it was opened, in Unix milliseconds."""
    used_before: Usage = msgspec.field(default_factory=Usage)
    """Usage of the session at the time it was opened."""
    said: Mapping[str, JsonValue] = msgspec.field(default_factory=dict[str, JsonValue])
    """Configuration of an editor that is in force."""
    used_s: float = -math.inf
    """When it was last seen in use, in seconds of the host's clock."""
    contended_s: dict[Path, float] = msgspec.field(default_factory=dict[Path, float])
    """When it was last told of a file that two editors have unsaved text of it."""
    following: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    chat: SessionChat | None = None
    """Created when an editor first uses it."""


class OpenSession(Struct, kw_only=True):
    """A session that is loaded, and the editors through which it sees the workspace."""

    session: AgentSession
    root: Path
    files: OverlayFiles
    environment: CallerEnvironment
    events: EventLog
    added: AddedRoots
    kept: OpenSessionState
    is_task: bool = False
    """Whether another session gave it as a task: that one holds it."""
    attached_clients: list[AttachedClient] = msgspec.field(default_factory=list)
    closing: anyio.Event = msgspec.field(default_factory=anyio.Event)
    closed: anyio.Event = msgspec.field(default_factory=anyio.Event)

    @property
    def epoch(self) -> str:
        """Epoch that the numbers of its events belong to."""
        return self.events.epoch

    @property
    def newest_ms(self) -> tuple[int, int]:
        """When something was said in it last and when it was opened, in Unix milliseconds; 0: nothing was."""
        last = self.session.info.last_entry
        return (0 if last is None else last.at_ms), self.kept.opened_ms

    @property
    def clients(self) -> Sequence[Attendant]:
        """The attached clients."""
        return tuple(
            attendant_of(client.options, editor=client.editor.name)
            for client in self.attached_clients
        )

    @property
    def roots(self) -> Sequence[WorkspaceRoot]:
        """The folders of the workspace, the primary one first."""
        primary = WorkspaceRoot(
            folder=self.root,
            name=self.root.name,
            primary=True,
            trusted=self.session.permissions.trust.trusted,
        )
        return (primary, *self.added.roots)

    @property
    def is_used(self) -> bool:
        """Whether somebody has it open, or something goes on in it."""
        if any(client.uses(self) for client in self.attached_clients):
            return True
        now = self.session.info.snapshot()
        works = any(not one.is_ended for one in now.tasks)
        return now.state != "idle" or works or bool(now.activity.bash or now.pending)

    @property
    def shows_forms(self) -> bool:
        """Whether every question can be answered somewhere: by a client of ours, or in the chat file."""
        chat = self.kept.chat
        in_chat = chat is not None and bool(chat.clients)
        return in_chat or any(client.dialogs.shows_forms for client in self.attached_clients)

    def attach(self, client: AttachedClient) -> bool:
        """Attach a client and publish the list of clients; False when it is attached already."""
        if client in self.attached_clients:
            return False
        self.attached_clients.append(client)
        self.files.attach(client.editor)
        self._publish_clients()
        return True

    async def configure(self, settings: Mapping[str, JsonValue]) -> None:
        """Apply an editor's configuration, in force from the next run."""
        if settings != self.kept.said:
            self.kept.said = dict(settings)
            await self.session.resources.configure(self.kept.said)

    def detach(self, client: AttachedClient) -> bool:
        """Detach a client and publish the list of clients; False when it was not attached."""
        if client not in self.attached_clients:
            return False
        self.attached_clients.remove(client)
        self.files.detach(client.editor)
        self._publish_clients()
        return True

    async def follow_roots(self) -> None:
        """Update the workspace to the folders that its clients have open; without clients it keeps its folders."""
        if not self.attached_clients:
            return
        async with self.kept.following:
            wanted = [one for one in await self._folders() if one != self.root]
            if await self.added.follow(wanted):
                self.publish_roots()

    async def decide_trust(self, folder: Path, *, trusted: bool) -> None:
        """Record the user's trust decision about an added folder; about any other folder it changes nothing.

        Raises:
            ConfigError: The decision could not be stored.
        """
        if await self.added.decide(folder, trusted=trusted):
            items = (FolderTrust(folder=folder, trusted=trusted),)
            self._publish(lambda: self.session.info.events.publish(SessionTrust(items=items)))
            self.publish_roots()

    async def _folders(self) -> Sequence[Path]:
        """Return the folders of the clients that have the primary root open; other clients add none."""
        found: list[Path] = []
        for client in tuple(self.attached_clients):
            folders = await anyio.to_thread.run_sync(reals, client.folders.paths)
            if self.root in folders:
                found.extend(folders)
        return found

    def publish_roots(self) -> None:
        """Publish the folders of the workspace."""
        self._publish(
            lambda: self.session.info.events.publish(SessionRoots(roots=tuple(self.roots)))
        )

    def publish_contention(self, path: Path, error: DocumentContention) -> None:
        """Publish to all clients, once a minute at most, the reason why an edit of a file was refused."""
        now_s = anyio.current_time()
        if now_s - self.kept.contended_s.get(path, -math.inf) < CONTENTION_S:
            return
        self.kept.contended_s = {path: now_s}
        text = error.happened or str(error)
        self._publish(lambda: self.session.info.events.publish(Notice(level="warning", text=text)))
        for client in self.attached_clients:
            if not client.subscriptions:
                show_error_message(client, f"Tiller: {text}")

    def report_proposal(self, path: Path, patch: Path) -> None:
        """Report the users of clients that do not follow the events of an edit that no editor could take."""
        for client in self.attached_clients:
            if not client.subscriptions:
                text = f"Tiller: {path.name} has unsaved text and this editor takes no edits; the edit is in {patch}"
                show_error_message(client, text)

    async def report_edit(self, outcome: EditOutcome) -> None:
        """Report to the session the fate of an edit in one of the clients."""
        if outcome.origin is None or self.closing.is_set():
            return
        edit = UserEdit(
            fate=outcome.fate,
            path=outcome.path,
            origin=outcome.origin,
            sha256=outcome.now.sha256,
            version=outcome.now.version,
            is_saved=outcome.fate == "saved",
        )
        try:
            await self.session.info.edits.take(edit)
            _ = await self.session.changes.at(outcome.path, outcome.now.text)
        except TillerError as error:
            _log.warning("The model cannot be told of an edit that was %s: %s", outcome.fate, error)

    def _publish_clients(self) -> None:
        self._publish(
            lambda: self.session.info.events.publish(SessionClients(clients=tuple(self.clients)))
        )

    def _publish(self, publish: Callable[[], object]) -> None:
        if not self.closing.is_set():
            _ = publish()


def show_error_message(client: AttachedClient, text: str) -> None:
    """Show the user of a client an error that is the answer to nothing they asked."""
    _ = client.connection.notify("window/showMessage", {"type": 1, "message": text})
