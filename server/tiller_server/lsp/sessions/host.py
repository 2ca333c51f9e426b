"""All sessions of the process, by workspace: the one root task that holds them."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from agent_core.assembly import latest_session, open_session
from agent_core.assembly.library import SessionLibrary
from agent_core.assembly.models import load_models
from agent_core.kernel import Clock, JsonValue, SessionId, SystemClock
from agent_core.kernel.errors import (
    SessionNotFound,
    StorageUnavailable,
    TillerError,
    WorkspaceMissing,
)
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import app_paths
from agent_core.storage.ledger import CallLedger
from agent_core.workspace.files.disk.disk_files import PathLocks
from tiller_server.lsp.clients.environment import ClientEnvironment
from tiller_server.lsp.clients.options import ends_sessions, opening_of, settings_of
from tiller_server.lsp.clients.session_candidates import LATEST, NEW, session_candidates
from tiller_server.lsp.documents.mirror import Mirror
from tiller_server.lsp.documents.workspace_folders import Folders, canonical
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.extension_views import forward
from tiller_server.lsp.sessions.idle_sessions import (
    IdleFolder,
    UsedFolders,
    consolidate_idle,
    idle_limits,
    idle_sessions,
)
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.sessions.pool import SessionOpener, SessionPool, SessionSpec
from tiller_server.lsp.sessions.sign_in import SignInFlows
from tiller_server.lsp.sessions.window_bindings import FILE, Bindings
from tiller_server.process.config import ServerConfig
from tiller_server.process.logs import hide_in_log

LOOK_S = 30.0
"""How often it is looked for sessions that nobody uses."""
COLLECT_S = 86_400.0
"""Time between two searches for unused attachments."""

_log = logging.getLogger(__name__)


class SessionHost:
    """Opens sessions, shares each between the connections that ask for it, and settles them at the end."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        clock: Clock | None = None,
        opener: SessionOpener | None = None,
    ) -> None:
        """Begin with nothing open.

        Args:
            config: The environment of the process.
            clock: Time; None: the machine's.
            opener: Opens a session; None: as `open_session`.
        """
        self._config = config
        self._clock = clock or SystemClock()
        self.started_ms = self._clock.now_ms()
        self.redactor = Redactor()
        self.redactor.hold_environment(config.env)
        hide_in_log(self.redactor)
        self.paths = paths = app_paths(config.env)
        self._pool = SessionPool(
            paths, clock=self._clock, redactor=self.redactor, opener=opener or open_session
        )
        self.telemetry = self._pool.telemetry
        self.ledger = self._pool.ledger
        self.figures = self._pool.figures
        """Returns figures for `tiller daemon metrics`."""
        self._bindings = Bindings(paths.data / FILE)
        self._turns = PathLocks()
        self.signing_in = SignInFlows(paths.auth, clock=self._clock, redactor=self.redactor)

    async def run(self) -> None:
        """Hold all sessions until `close`."""
        await self._pool.run(beside=self._look_for_idle)

    async def ready(self) -> None:
        """Wait until sessions can be opened."""
        await self._pool.ready()

    async def close(self) -> None:
        """Settle all sessions; `run` ends when they are."""
        self._pool.close()

    def connect(
        self,
        connection: LspConnection,
        mirror: Mirror,
        folders: Folders,
        *,
        origin: ClientEnvironment,
    ) -> ConnectedClient:
        """Create the loaded half of a connection; messages to the client are redacted from now on."""
        self.redactor.hold_environment(origin.env)
        connection.outbox.hide(self.redactor)
        return ConnectedClient(connection, mirror, folders, host=self, origin=origin)

    async def registry(self, env: Mapping[str, str]) -> ModelRegistry:
        """Return every model there is, and whether its provider can be asked."""
        models = await load_models(
            paths=app_paths(self._config.env),
            env=env,
            clock=self._clock,
            pool=self._pool.pool,
            redactor=self.redactor,
        )
        return models.registry

    async def library(self) -> SessionLibrary:
        """Return the stored sessions; their index is brought up to date when they are first asked for.

        Raises:
            SessionClosed: The server is closing.
        """
        return await self._pool.library()

    async def release(self, session: SessionId) -> None:
        """Settle one session and let it go, when it is loaded; windows that had it open the latest again."""
        await self._bindings.forget(session)
        loaded_session = self._pool.get(session)
        if loaded_session is not None:
            self._pool.unload(loaded_session)
            await loaded_session.closed.wait()

    def start(
        self, work: Callable[[], Awaitable[None]], *, what: str, is_cut: bool = False
    ) -> None:
        """Do something that nobody waits for; when it fails that is logged, and nothing else. `is_cut`: closing ends it."""
        self._pool.start(work, what=what, is_cut=is_cut)

    def now_ms(self) -> int:
        """Return the time, in Unix milliseconds."""
        return self._clock.now_ms()

    def sessions(self) -> tuple[OpenSession, ...]:
        """Return what is loaded."""
        return self._pool.sessions()

    async def open(
        self,
        root: Path,
        *,
        asked: str | None,
        settings: Mapping[str, JsonValue],
        client: ConnectedClient,
        chosen: bool,
    ) -> OpenSession:
        """Return a session of a folder, with a client attached to it.

        Args:
            root: The folder.
            asked: An id, `latest` or `new`; None: the window's last one in this folder, else its choice at the start.
            settings: Settings of the client's configuration.
            client: The client.
            chosen: Whether a reloaded window has this session in front again.

        Raises:
            TillerError: It cannot be opened; the text says why.
        """
        folder = await anyio.to_thread.run_sync(_folder, root)
        client_id = client.options.client_id
        bound = await self._bindings.get(client_id, folder) if client_id and asked is None else None
        spec = SessionSpec(
            root=folder,
            settings=settings,
            env=client.origin.env,
            mcp_servers=client.origin.mcp_servers,
        )
        async with self._turns.hold(folder):
            loaded_session = await self._first_of(
                session_candidates(asked, bound=bound, opening=opening_of(client.options)),
                bound,
                spec,
            )
            # Nothing waits in between: it cannot be unloaded before it has its client.
            is_new = loaded_session.attach(client)
            if is_new and _is_only_client(loaded_session, client):
                await loaded_session.configure(settings)
        await loaded_session.follow_roots()
        if client_id and chosen:
            await self._bindings.bind(client_id, folder, loaded_session.session.id)
        if is_new:
            self._show(loaded_session, client)
        return loaded_session

    def detach(self, client: ConnectedClient) -> None:
        """Forget a connection; its sessions and their runs go on, unless it said that they end with it."""
        for loaded_session in self.sessions():
            if not loaded_session.detach(client):
                continue
            loaded_session.kept.used_s = self._clock.monotonic_s()
            if not loaded_session.attached_clients and ends_sessions(client.options):
                self._pool.unload(loaded_session)
            elif loaded_session.attached_clients:
                self._pool.start(loaded_session.follow_roots, what="the folders of a session")

    async def follow_roots(self, client: ConnectedClient) -> None:
        """Record that a client has opened or closed folders."""
        for loaded_session in self.sessions():
            if client in loaded_session.attached_clients:
                await loaded_session.follow_roots()

    async def configure(self, client: ConnectedClient, params: Mapping[str, object]) -> None:
        """Record that a client's settings have changed; in force in its sessions from the next run."""
        configuration = client.editor.configuration
        await configuration.changed(params)
        settings = await configuration.settings(settings_of(client.options))
        for loaded_session in self.sessions():
            if client in loaded_session.attached_clients:
                await loaded_session.configure(settings)

    async def _first_of(
        self, names: Sequence[str], bound: str | None, spec: SessionSpec
    ) -> OpenSession:
        for name in names:
            try:
                return await self._find_or_load(name, spec)
            except SessionNotFound:
                if name != bound or name == names[-1]:
                    raise
                # Nothing was said in it, or it was deleted: the window goes on with another.
                await self._bindings.forget(name)
        message = "no session was named; name one, `latest` or `new`"
        raise SessionNotFound(message)

    async def _find_or_load(self, name: str, spec: SessionSpec) -> OpenSession:
        if name == LATEST:
            name = await self._latest(spec.root)
        loaded_session = None if name in {NEW, LATEST} else self._pool.get(SessionId(name))
        if loaded_session is not None and loaded_session.closing.is_set():
            await loaded_session.closed.wait()
            loaded_session = None
        if loaded_session is None:
            loaded_session = await self._pool.load(name, spec)
        loaded_session.kept.used_s = self._clock.monotonic_s()
        return loaded_session

    async def _latest(self, root: Path) -> str:
        """Return the session of a folder in which something was said last, be it loaded or not; `new`: there is none."""
        stored = await latest_session(app_paths(self._config.env), root, clock=self._clock)
        if stored is not None and self._pool.get(stored) is None:
            return stored
        here = [one for one in self.sessions() if _is_here(one, root)]
        newest = max(here, key=lambda one: one.newest_ms, default=None)
        return (stored or NEW) if newest is None else newest.session.id

    def _show(self, loaded_session: OpenSession, client: ConnectedClient) -> None:
        if client in loaded_session.attached_clients:
            # Now that this client's documents are known.
            self._pool.start(loaded_session.session.changes.take_up, what="what was left to reject")
            self._pool.start(
                lambda: client.show_progress(loaded_session), what="the progress of runs and tasks"
            )
            self._pool.start(lambda: forward(client, loaded_session), what="what extensions tell")
            self._pool.start(
                lambda: client.dialogs.follow(
                    loaded_session.session,
                    is_shown=lambda: loaded_session.shows_forms,
                ),
                what="the questions of a session",
            )
            self._pool.start(
                lambda: client.change_display.follow(loaded_session),
                what="the changes of a session",
            )

    async def _look_for_idle(self) -> None:
        """Unload sessions that have been idle for long, which opened again are the same; consolidate the memory of their projects."""
        limits = await idle_limits(self.paths.settings)
        shortest_s = min(LOOK_S, limits.unload_s, limits.consolidate_s or LOOK_S)
        folders = UsedFolders()
        collected_s: float | None = None
        while True:
            await self._clock.sleep(shortest_s)
            if collected_s is None or self._clock.monotonic_s() - collected_s >= COLLECT_S:
                collected_s = self._clock.monotonic_s()
                self._pool.start(
                    self._collect, what="the removal of unused attachments", is_cut=True
                )
            if limits.consolidate_s is not None:
                now_ms = self._clock.now_ms()
                for folder in folders.look(
                    self.sessions(), now_ms=now_ms, limit_s=limits.consolidate_s
                ):
                    self._pool.start(
                        partial(self._consolidate, folder),
                        what=f"the consolidation of the memory of {folder.root}",
                        is_cut=True,
                    )
            now_s = self._clock.monotonic_s()
            for loaded_session in idle_sessions(
                self.sessions(), now_s=now_s, limit_s=limits.unload_s
            ):
                _log.info("A session is unloaded: nobody has used it for %g s.", limits.unload_s)
                self._pool.unload(loaded_session)

    async def _collect(self) -> None:
        from agent_core.assembly.storage.attachments import UserAttachments  # noqa: PLC0415 - once a day

        now_s = self._clock.now_ms() / 1000
        collect = partial(UserAttachments(self.paths, self._config.env).collect, now_s=now_s)
        try:
            removed = await anyio.to_thread.run_sync(collect, abandon_on_cancel=True)
        except (OSError, StorageUnavailable) as error:
            _log.warning("Unused attachments were not removed: %s", error)
            return
        if removed:
            _log.info("%d attachments were removed: no session names them.", removed)

    async def _consolidate(self, folder: IdleFolder) -> None:
        async def services(
            env: Mapping[str, str],
        ) -> tuple[SessionLibrary, ModelRegistry, CallLedger]:
            return await self.library(), await self.registry(env), self.ledger.of(self.paths)

        release = self.ledger.enter()
        try:
            await consolidate_idle(
                folder,
                paths=self.paths,
                clock=self._clock,
                redactor=self.redactor,
                services=services,
            )
        except TillerError as error:
            _log.warning("The memory of %s was not consolidated: %s", folder.root, error)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(release)


def _folder(root: Path) -> Path:
    try:
        real = canonical(root)
    except (OSError, ValueError, RuntimeError) as error:
        message = f"the workspace {str(root)!r} cannot be looked at: {error}"
        raise WorkspaceMissing(message) from error
    if not real.is_dir():
        message = f"the workspace {str(root)!r} is not a folder; open one that exists"
        raise WorkspaceMissing(message)
    return real


def _is_here(open_session: OpenSession, root: Path) -> bool:
    """Return whether a session is one of a folder that a window can go on with."""
    is_own = not open_session.is_task and not open_session.closing.is_set()
    return is_own and open_session.root == root


def _is_only_client(loaded_session: OpenSession, client: ConnectedClient) -> bool:
    """Return whether a session has no other client; a window's former connection, not gone yet, is none."""
    client_id = client.options.client_id
    others = (one for one in loaded_session.attached_clients if one is not client)
    return all(client_id is not None and one.options.client_id == client_id for one in others)
