"""The loaded half of a connection: which session it has, and what it gets to see of it."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from msgspec import Struct

from agent_core.assembly.library import SessionLibrary
from agent_core.assembly.request import SharedLedger, SharedTelemetry
from agent_core.events import Event, EventSubscription, RunEnded, RunStarted
from agent_core.kernel import JsonValue, RunId, SessionId
from agent_core.kernel.errors import SessionNotFound, TillerError
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import AppPaths
from agent_core.session.views import SessionView
from tiller_server.lsp.changes.display import ChangeDisplay
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.clients.options import (
    is_plain,
    opening_of,
    opens_in_own_folder,
    read_options,
    settings_of,
)
from tiller_server.lsp.clients.session_candidates import LATEST, NEW, NONE
from tiller_server.lsp.dialogs.presenter import QuestionPresenter
from tiller_server.lsp.documents.mirror import Mirror
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.documents.workspace_folders import Folders
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.encode.errors import to_rpc_error
from tiller_server.lsp.encode.history import END, cursor_before
from tiller_server.lsp.events import run_progress, task_progress
from tiller_server.lsp.events.flow_control import SendWindow
from tiller_server.lsp.events.subscription import Subscription
from tiller_server.lsp.jsonrpc.errors import INVALID_PARAMS, REQUEST_FAILED, RpcError
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.sign_in import SignInFlows


class Sessions(Protocol):
    """Where a connection gets its sessions."""

    started_ms: int
    paths: AppPaths
    redactor: Redactor
    """Removes secrets from outgoing messages."""
    signing_in: SignInFlows
    telemetry: SharedTelemetry
    """Of the process."""
    ledger: SharedLedger
    """Of the process."""

    async def registry(self, env: Mapping[str, str]) -> ModelRegistry:
        """Return every model there is, and whether its provider can be asked."""
        ...

    async def open(
        self,
        root: Path,
        *,
        asked: str | None,
        settings: Mapping[str, JsonValue],
        client: "ConnectedClient",
        chosen: bool,
    ) -> OpenSession:
        """Return a session of a folder, attached to the connection; None: the one that the client means."""
        ...

    async def library(self) -> SessionLibrary:
        """Return the stored sessions."""
        ...

    def start(
        self, work: Callable[[], Awaitable[None]], *, what: str, is_cut: bool = False
    ) -> None:
        """Do something that nobody waits for; when it fails that is logged, and nothing else. `is_cut`: closing ends it."""
        ...

    async def release(self, session: SessionId) -> None:
        """Settle one session and let it go, when it is loaded."""
        ...

    async def follow_roots(self, client: "ConnectedClient") -> None:
        """Record that a client has opened or closed folders."""
        ...

    def now_ms(self) -> int:
        """Return the time, in Unix milliseconds."""
        ...

    def sessions(self) -> tuple[OpenSession, ...]:
        """Return what is loaded."""
        ...

    def detach(self, client: "ConnectedClient") -> None:
        """Forget a connection."""
        ...


class _ClientState(Struct, kw_only=True):
    """The sessions of a connection, and what it is shown of them."""

    open_session: OpenSession | None = None
    """The one that is meant when none is named."""
    opening_lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    readers: list[EventSubscription] = msgspec.field(default_factory=list[EventSubscription])
    """Of what its runs are shown from, as lines of progress."""
    reported_elsewhere: set[RunId] = msgspec.field(default_factory=set[RunId])
    """Runs that a request waits for and shows in its own way."""
    on_detach: list[Callable[[], None]] = msgspec.field(default_factory=list[Callable[[], None]])


class ConnectedClient:
    """State that the features of one connection share."""

    def __init__(
        self,
        connection: LspConnection,
        mirror: Mirror,
        folders: Folders,
        *,
        host: Sessions,
        origin: ClientEnvironment,
    ) -> None:
        self.connection = connection
        self.origin = origin
        self.host = host
        self.folders = folders
        read = read_options(connection)
        self.options = read.options
        self._refusals = read.refusals
        for problem in read.problems:
            _ = connection.notify(
                "window/showMessage", {"type": 2, "message": f"Tiller: {problem}"}
            )
        self.editor = Editor.of(connection, mirror)
        self.subscriptions: dict[int | str, Subscription] = {}
        self.dialogs = QuestionPresenter(
            connection,
            mirror,
            name=self.editor.name,
            role=self.options.client.role if self.options.client else None,
            shows=self.editor.capabilities.shows,
            blocking=self.editor.blocking_dialogs,
        )
        self.change_display = ChangeDisplay(
            connection, self.editor, self.options, redactor=host.redactor
        )
        self.state = _ClientState()

    def on_detach(self, callback: Callable[[], None]) -> None:
        """Register a callback for the moment when the client has left."""
        self.state.on_detach.append(callback)

    @property
    def bound(self) -> OpenSession | None:
        """The session of this connection, for who must not open one; None: it has none yet."""
        return self.state.open_session

    async def resolve_session(self, session: str | None = None) -> OpenSession:
        """Return the session that a request means: by id, else the one of this connection, opened on demand.

        Raises:
            RpcError: There is none of that id, or no folder to open one in.
        """
        bound = self.state.open_session
        if bound is not None and session in {None, bound.session.id}:
            return bound
        async with self.state.opening_lock:
            if self.state.open_session is not None and session in {
                None,
                self.state.open_session.session.id,
            }:
                return self.state.open_session
            if session is None and opening_of(self.options) == NONE:
                message = (
                    'no session is open here, and `session.open` is "none"; call agent/session/open'
                )
                raise RpcError(
                    REQUEST_FAILED, message, {"kind": "SessionNotFound", "retryable": False}
                )
            if session is not None and self.state.open_session is not None:
                # A request may be about another session than the one in front; only `agent/session/open` changes that.
                return await self._open(session, root=None, chosen=False)
            return await self.bind(session, root=None)

    async def bind(self, asked: str | None, *, root: Path | None) -> OpenSession:
        """Open a session and make it the one of this connection.

        Args:
            asked: An id, `latest` or `new`; None: the one that this window had last, else as it said at the start.
            root: The folder to open it in; None: the first one of the client.

        Raises:
            RpcError: It cannot be opened.
        """
        open_session = await self._open(asked, root=root, chosen=True)
        self.state.open_session = open_session
        return open_session

    async def _open(self, asked: str | None, *, root: Path | None, chosen: bool) -> OpenSession:
        if self._refusals:
            raise RpcError(
                REQUEST_FAILED,
                f"no session is opened: {'; '.join(self._refusals)}",
                {"kind": "PermissionDenied", "retryable": False},
            )
        folder = root or await self._own_folder(asked) or self.root()
        settings = await self.editor.configuration.settings(settings_of(self.options))
        try:
            return await self.host.open(
                folder, asked=asked, settings=settings, client=self, chosen=chosen
            )
        except TillerError as error:
            raise to_rpc_error(error) from error

    async def _own_folder(self, asked: str | None) -> Path | None:
        """Return the folder of a session that is meant by its id; None: the client means its own first one."""
        if asked is None or asked in {LATEST, NEW} or not opens_in_own_folder(self.options):
            return None
        loaded = [one.root for one in self.host.sessions() if one.session.id == asked]
        if loaded:
            return loaded[0]
        library = await self.host.library()
        try:
            return Path((await library.find(asked)).cwd)
        except SessionNotFound:
            return None

    async def release(self, session: str | None) -> None:
        """Close a session, the one of this connection unless it is named."""
        bound = self.state.open_session
        which = session or (bound.session.id if bound is not None else None)
        if which is not None:
            await self.host.release(SessionId(which))

    def forget(self, open_session: OpenSession) -> None:
        """Record that a session was closed: the next request opens another."""
        if self.state.open_session is open_session:
            self.state.open_session = None

    def root(self) -> Path:
        """Return the folder that the client opened first.

        Raises:
            RpcError: It opened none.
        """
        if self.folders.first is not None:
            return self.folders.first
        message = "no folder is open, so there is no workspace to work in; open a folder or give `folders`"
        raise RpcError(REQUEST_FAILED, message, {"kind": "RootNotAllowed", "retryable": False})

    def uses(self, open_session: OpenSession) -> bool:
        """Return whether a session is the one of this connection, or is listened to here."""
        return self.state.open_session is open_session or any(
            one.follows(open_session) for one in self.subscriptions.values()
        )

    def subscribe(
        self,
        open_session: OpenSession,
        token: int | str,
        *,
        detail: str,
        flush_ms: int | None,
        send_window: SendWindow | None = None,
    ) -> Subscription:
        """Begin to listen to a session for a token; an older subscription of that token ends."""
        older = self.subscriptions.pop(token, None)
        if older is not None:
            older.close()
        subscription = Subscription(
            self.connection,
            open_session,
            token=token,
            detail=detail,
            flush_ms=flush_ms,
            send_window=send_window,
            snapshot=lambda: self.snapshot(open_session),
        )
        self.subscriptions[token] = subscription
        return subscription

    async def show_progress(self, open_session: OpenSession) -> None:
        """Show every run and task as a line of progress, in clients that show such and do not listen themselves."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._show_runs, open_session)
            group.start_soon(self._show_tasks, open_session)

    async def _show_runs(self, open_session: OpenSession) -> None:
        is_simple = is_plain(self.connection.client_params, self.options)
        fallback = run_progress.CompletionNotice(self.connection) if is_simple else None
        session = open_session.session
        starts = self._reader(open_session, RunStarted, RunEnded)
        while events := [stamped.event for stamped in await starts.take()]:
            # A run that is over is not shown: the reader of its line would wait for its end.
            over = {event.run for event in events if isinstance(event, RunEnded)}
            over |= self.state.reported_elsewhere
            for event in events:
                if (
                    isinstance(event, RunStarted)
                    and event.run not in over
                    and not self.subscriptions
                ):
                    reader = self._reader(open_session, *run_progress.SHOWN)
                    await run_progress.show_run(
                        self.connection, session, event.run, reader=reader, otherwise=fallback
                    )
                    reader.close()
                    self.state.readers.remove(reader)

    async def _show_tasks(self, open_session: OpenSession) -> None:
        shown = task_progress.TaskProgress(self.connection, open_session.session)
        reader = self._reader(open_session, *task_progress.SHOWN)
        await shown.follow(reader, is_shown=lambda: not self.subscriptions)

    def _reader(self, open_session: OpenSession, *only: type[Event]) -> EventSubscription:
        """Open a reader of some events of a session, which is closed when the client leaves."""
        reader = open_session.session.subscribe(only=only)
        self.state.readers.append(reader)
        return reader

    @contextmanager
    def waits_for(self, run: RunId) -> Generator[None, None, None]:
        """Report that a request of this client waits for a run and shows it in its own way."""
        self.state.reported_elsewhere.add(run)
        try:
            yield
        finally:
            self.state.reported_elsewhere.discard(run)

    async def flush(self) -> None:
        """Send what was told so far before the answer that comes next."""
        for subscription in tuple(self.subscriptions.values()):
            await subscription.flush()

    def snapshot(self, open_session: OpenSession) -> dict[str, JsonValue]:
        """Return the picture of a session as this client gets it."""
        info = open_session.session.info
        seen = info.snapshot()
        run = None if seen.run is None else str(seen.run.run)
        return serializer.snapshot(
            seen,
            epoch=open_session.epoch,
            roots=open_session.roots,
            clients=open_session.clients,
            cursor=_cursor(info, run) if info.is_stored else None,
        )

    async def detach(self) -> None:
        """The client has left: its subscriptions end, its sessions and their runs go on."""
        for subscription in self.subscriptions.values():
            subscription.close()
        for reader in self.state.readers:
            reader.close()
        self.change_display.close()
        self.dialogs.close()
        for callback in self.state.on_detach:
            callback()
        self.host.detach(self)


def _cursor(info: SessionView, run: str | None) -> str | None:
    # Entries are decoded only for a run that goes on: its items are in the snapshot already.
    return END if run is None else cursor_before(info.entries, run)


def file_of(uri: str) -> Path:
    """Return the path of a file that a client names.

    Raises:
        RpcError: It names none.
    """
    path = path_of(uri)
    if path is None:
        message = f"{uri!r} names no file; give its file: URI as it was listed"
        raise invalid_params(message)
    return path


def invalid_params(message: str) -> RpcError:
    """Make the answer for params that cannot be used."""
    return RpcError(INVALID_PARAMS, message)
