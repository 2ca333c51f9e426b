"""All sessions of the process, by workspace: the one root task that holds them."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio

from agent_core.assembly import latest_session, open_session
from agent_core.assembly.library.session_library import SessionLibrary
from agent_core.assembly.models.loader import load_models
from agent_core.kernel import Clock, JsonValue, SessionId, SystemClock
from agent_core.kernel.errors import SessionNotFound, WorkspaceMissing
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import app_paths
from agent_core.workspace.files.disk.path_locks import PathLocks
from tiller_server.lsp.documents.mirror import Mirror
from tiller_server.lsp.documents.workspace_folders import Folders, canonical
from tiller_server.lsp.jsonrpc.lsp_connection import Connection
from tiller_server.lsp.sessions.client import Front
from tiller_server.lsp.sessions.client_environment import Origin
from tiller_server.lsp.sessions.client_options import ends_sessions, opening_of, settings_of
from tiller_server.lsp.sessions.extension_views import tell
from tiller_server.lsp.sessions.idle_sessions import idle_unload_s, unloading
from tiller_server.lsp.sessions.open_session import Hosted
from tiller_server.lsp.sessions.pool import Holding, Opener, Wanted
from tiller_server.lsp.sessions.session_candidates import LATEST, NEW, candidates
from tiller_server.lsp.sessions.sign_in import SigningIn
from tiller_server.lsp.sessions.window_bindings import FILE, Bindings
from tiller_server.process.config import ServerConfig
from tiller_server.process.redacted_log import hide_in_log

LOOK_S = 30.0
"""How often it is looked for sessions that nobody uses."""

_log = logging.getLogger(__name__)


class Host:
    """Opens sessions, shares each between the connections that ask for it, and settles them at the end."""

    def __init__(
        self, config: ServerConfig, *, clock: Clock | None = None, opener: Opener = open_session
    ) -> None:
        """Begin with nothing open.

        Args:
            config: The environment of the process.
            clock: Time; None: the machine's.
            opener: Opens a session; as `open_session`.
        """
        self._config = config
        self._clock = clock or SystemClock()
        self.started_ms = self._clock.now_ms()
        self.redactor = Redactor()
        self.redactor.hold_environment(config.env)
        hide_in_log(self.redactor)
        paths = app_paths(config.env)
        self._holding = Holding(paths, clock=self._clock, redactor=self.redactor, opener=opener)
        self._bindings = Bindings(paths.data / FILE)
        self._turns = PathLocks()
        self.signing_in = SigningIn(paths.auth, clock=self._clock, redactor=self.redactor)

    async def run(self) -> None:
        """Hold all sessions until `close`."""
        await self._holding.run(beside=self._unload_idle)

    async def ready(self) -> None:
        """Wait until sessions can be opened."""
        await self._holding.ready()

    async def close(self) -> None:
        """Settle all sessions; `run` ends when they are."""
        self._holding.close()

    def connect(
        self, connection: Connection, mirror: Mirror, folders: Folders, *, origin: Origin
    ) -> Front:
        """Create the loaded half of a connection; messages to the client are redacted from now on."""
        self.redactor.hold_environment(origin.env)
        connection.outbox.hide(self.redactor)
        return Front(connection, mirror, folders, host=self, origin=origin)

    async def registry(self, env: Mapping[str, str]) -> ModelRegistry:
        """Return every model there is, and whether its provider can be asked."""
        models = await load_models(
            paths=app_paths(self._config.env),
            env=env,
            clock=self._clock,
            pool=self._holding.pool,
            redactor=self.redactor,
        )
        return models.registry

    async def library(self) -> SessionLibrary:
        """Return the stored sessions; their index is brought up to date when they are first asked for.

        Raises:
            SessionClosed: The server is closing.
        """
        return await self._holding.library()

    async def release(self, session: SessionId) -> None:
        """Settle one session and let it go, when it is loaded; windows that had it open the latest again."""
        await self._bindings.forget(session)
        hosted = self._holding.get(session)
        if hosted is not None:
            self._holding.let_go(hosted)
            await hosted.closed.wait()

    def start(
        self, work: Callable[[], Awaitable[None]], *, what: str, is_cut: bool = False
    ) -> None:
        """Do something that nobody waits for; when it fails that is logged, and nothing else. `is_cut`: closing ends it."""
        self._holding.start(work, what=what, is_cut=is_cut)

    def now_ms(self) -> int:
        """Return the time, in Unix milliseconds."""
        return self._clock.now_ms()

    def sessions(self) -> tuple[Hosted, ...]:
        """Return what is loaded."""
        return self._holding.sessions()

    async def open(
        self,
        root: Path,
        *,
        asked: str | None,
        settings: Mapping[str, JsonValue],
        front: Front,
        chosen: bool,
    ) -> Hosted:
        """Return a session of a folder, with a client attached to it.

        Args:
            root: The folder.
            asked: An id, `latest` or `new`; None: the window's last one in this folder, else its choice at the start.
            settings: Settings of the client's configuration.
            front: The client.
            chosen: Whether a reloaded window has this session in front again.

        Raises:
            TillerError: It cannot be opened; the text says why.
        """
        folder = await anyio.to_thread.run_sync(_folder, root)
        client = front.options.client_id
        bound = await self._bindings.get(client, folder) if client and asked is None else None
        wanted = Wanted(root=folder, settings=settings, env=front.origin.env)
        async with self._turns.hold(folder):
            hosted = await self._first_of(
                candidates(asked, bound=bound, opening=opening_of(front.options)), bound, wanted
            )
            # Nothing waits in between: it cannot be unloaded before it has its client.
            is_new = hosted.attach(front)
            if is_new and _speaks_for_all(hosted, front):
                await hosted.configure(settings)
        await hosted.follow_roots()
        if client and chosen:
            await self._bindings.bind(client, folder, hosted.session.id)
        if is_new:
            self._show(hosted, front)
        return hosted

    def detach(self, front: Front) -> None:
        """Forget a connection; its sessions and their runs go on, unless it said that they end with it."""
        for hosted in self.sessions():
            if not hosted.detach(front):
                continue
            hosted.kept.used_s = self._clock.monotonic_s()
            if not hosted.fronts and ends_sessions(front.options):
                self._holding.let_go(hosted)
            elif hosted.fronts:
                self._holding.start(hosted.follow_roots, what="the folders of a session")

    async def follow_roots(self, front: Front) -> None:
        """Record that a client has opened or closed folders."""
        for hosted in self.sessions():
            if front in hosted.fronts:
                await hosted.follow_roots()

    async def configure(self, front: Front, params: Mapping[str, JsonValue]) -> None:
        """Record that a client's settings have changed; in force in its sessions from the next run."""
        configuration = front.editor.configuration
        await configuration.changed(params)
        settings = await configuration.settings(settings_of(front.options))
        for hosted in self.sessions():
            if front in hosted.fronts:
                await hosted.configure(settings)

    async def _first_of(self, names: Sequence[str], bound: str | None, wanted: Wanted) -> Hosted:
        for name in names:
            try:
                return await self._give(name, wanted)
            except SessionNotFound:
                if name != bound or name == names[-1]:
                    raise
                # Nothing was said in it, or it was deleted: the window goes on with another.
                await self._bindings.forget(name)
        message = "no session was named; name one, `latest` or `new`"
        raise SessionNotFound(message)

    async def _give(self, name: str, wanted: Wanted) -> Hosted:
        if name == LATEST:
            name = await self._latest(wanted.root)
        hosted = None if name in {NEW, LATEST} else self._holding.get(SessionId(name))
        if hosted is not None and hosted.closing.is_set():
            await hosted.closed.wait()
            hosted = None
        if hosted is None:
            hosted = await self._holding.load(name, wanted)
        hosted.kept.used_s = self._clock.monotonic_s()
        return hosted

    async def _latest(self, root: Path) -> str:
        """Return the session of a folder in which something was said last, be it loaded or not; `new`: there is none."""
        stored = await latest_session(app_paths(self._config.env), root, clock=self._clock)
        if stored is not None and self._holding.get(stored) is None:
            return stored
        here = [one for one in self.sessions() if one.root == root and not one.closing.is_set()]
        newest = max(here, key=lambda one: one.newest_ms, default=None)
        return (stored or NEW) if newest is None else newest.session.id

    def _show(self, hosted: Hosted, front: Front) -> None:
        if front in hosted.fronts:
            # Now that this client's documents are known.
            self._holding.start(hosted.session.changes.take_up, what="what was left to reject")
            self._holding.start(lambda: front.show_runs(hosted), what="the progress of runs")
            self._holding.start(lambda: tell(front, hosted), what="what extensions tell")
            self._holding.start(
                lambda: front.dialogs.follow(
                    hosted.session,
                    is_shown=lambda: hosted.shows_forms,
                ),
                what="the questions of a session",
            )
            self._holding.start(
                lambda: front.review.follow(hosted), what="the changes of a session"
            )

    async def _unload_idle(self) -> None:
        """Unload sessions that have been idle for long; opened again they are the same."""
        limit_s = await idle_unload_s(app_paths(self._config.env).settings)
        while True:
            await self._clock.sleep(min(LOOK_S, limit_s))
            now_s = self._clock.monotonic_s()
            for hosted in unloading(self.sessions(), now_s=now_s, limit_s=limit_s):
                _log.info("A session is unloaded: nobody has used it for %g s.", limit_s)
                self._holding.let_go(hosted)


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


def _speaks_for_all(hosted: Hosted, front: Front) -> bool:
    """Return whether a session has no other client; a window's former connection, not gone yet, is none."""
    client = front.options.client_id
    others = (one for one in hosted.fronts if one is not front)
    return all(client is not None and one.options.client_id == client for one in others)
