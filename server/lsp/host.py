"""All sessions of the process, by workspace: the one root task that holds them."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agent_core.assembly import SessionRequest, open_session
from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.assembly.models import load_models
from agent_core.kernel import JsonValue, SessionId, SystemClock, uuid7
from agent_core.kernel.errors import SessionClosed, WorkspaceMissing
from agent_core.kernel.redaction import Redactor
from agent_core.providers import ModelFacts
from agent_core.providers.http import HttpPool
from agent_core.providers.registry import ModelRegistry
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from agent_core.workspace import Files
from agent_core.workspace.adapters.path_locks import PathLocks
from agent_core.workspace.sandbox import Prober
from server.lsp.config import ServerConfig
from server.lsp.documents import Mirror
from server.lsp.edits import EditorFiles, EditorProcesses
from server.lsp.front import Front
from server.lsp.protocol import Connection
from server.lsp.redacted_log import hide_in_log

CLOSE_S = 10.0

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Hosted:
    """A session that is loaded, and the editors through which it sees the workspace."""

    session: AgentSession
    root: Path
    files: EditorFiles
    epoch: str
    fronts: list[Front] = field(default_factory=list)
    closing: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)


@dataclass(slots=True, kw_only=True)
class _Root:
    """The one task that holds all sessions."""

    group: TaskGroup | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What the sessions of a process have in common."""

    pool: HttpPool
    locks: PathLocks = field(default_factory=PathLocks)
    prober: Prober = field(default_factory=Prober)


class Host:
    """Opens sessions, shares each between the connections that ask for it, and settles them at the end."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._clock = SystemClock()
        self.started_ms = self._clock.now_ms()
        self._shared = _Shared(pool=HttpPool(clock=self._clock))
        self.redactor = Redactor()
        self.redactor.hold_environment(config.env)
        hide_in_log(self.redactor)
        self._root = _Root()
        self._open: dict[SessionId, Hosted] = {}
        self._opening = anyio.Lock()
        self._library: SessionLibrary | None = None

    async def run(self) -> None:
        """Hold all sessions until `close`."""
        try:
            async with anyio.create_task_group() as group:
                self._root.group = group
                self._root.ready.set()
                await self._root.over.wait()
                for hosted in self._open.values():
                    hosted.closing.set()
        finally:
            self._root.ready.set()
            with anyio.move_on_after(2, shield=True):
                await self._shared.pool.aclose()

    async def ready(self) -> None:
        """Wait until sessions can be opened."""
        await self._root.ready.wait()

    async def close(self) -> None:
        """Settle all sessions; `run` ends when they are."""
        self._root.over.set()

    def connect(self, connection: Connection, mirror: Mirror) -> Front:
        """Make the loaded half of a connection; what it sends holds no secret from now on."""
        connection.outbox.hide(self.redactor)
        return Front(connection, mirror, host=self)

    async def accounts(self) -> tuple[tuple[str, str], ...]:
        """Give the providers there are, and whether each can be asked; never a key."""
        registry = await self._registry()
        return tuple((one.id, registry.auth(one.id)) for one in registry.providers())

    async def models(self) -> tuple[ModelFacts, ...]:
        """Give every model whose API is spoken."""
        return (await self._registry()).models()

    async def library(self) -> SessionLibrary:
        """Give the stored sessions; their index is brought up to date when they are first asked for.

        Raises:
            SessionClosed: The server is closing.
        """
        async with self._opening:
            library = self._library or await self._tasks().start(self._hold_library)
            self._library = library
            return library

    async def release(self, session: SessionId) -> None:
        """Settle one session and let it go, when it is loaded."""
        hosted = self._open.get(session)
        if hosted is None:
            return
        hosted.closing.set()
        for front in hosted.fronts:
            front.forget(hosted)
        await hosted.closed.wait()

    def now_ms(self) -> int:
        """Give the time, in Unix milliseconds."""
        return self._clock.now_ms()

    async def _registry(self) -> ModelRegistry:
        models = await load_models(
            paths=app_paths(self._config.env),
            env=self._config.env,
            clock=self._clock,
            pool=self._shared.pool,
            redactor=self.redactor,
        )
        return models.registry

    def sessions(self) -> tuple[Hosted, ...]:
        """Give what is loaded."""
        return tuple(self._open.values())

    async def open(
        self, root: Path, *, which: str, settings: Mapping[str, JsonValue], front: Front
    ) -> Hosted:
        """Give a session of a folder: one by id, the `latest`, or a `new` one.

        Raises:
            TillerError: It cannot be opened; the text says why.
        """
        real = await anyio.to_thread.run_sync(_folder, root)
        async with self._opening:
            hosted = self._loaded(real, which)
            if hosted is None:
                hosted = await self._load(real, which, settings)
                self._open[hosted.session.id] = hosted
        if front not in hosted.fronts and self._root.group is not None:
            hosted.fronts.append(front)
            hosted.files.attach(front.editor)
            self._root.group.start_soon(front.show_runs, hosted)
            self._root.group.start_soon(front.dialogs.follow, hosted.session)
        return hosted

    def detach(self, front: Front) -> None:
        """Forget a connection; its sessions and their runs go on."""
        for hosted in self._open.values():
            if front in hosted.fronts:
                hosted.fronts.remove(front)
                hosted.files.detach(front.editor)

    def _loaded(self, root: Path, which: str) -> Hosted | None:
        if which == "new":
            return None
        if which != "latest":
            return self._open.get(SessionId(which))
        here = [one for one in self._open.values() if one.root == root]
        return here[-1] if here else None

    async def _load(self, root: Path, which: str, settings: Mapping[str, JsonValue]) -> Hosted:
        group = self._tasks()
        overlays: list[EditorFiles] = []

        def before_disk(disk: Files) -> Files:
            overlays.append(EditorFiles(disk))
            return overlays[0]

        request = SessionRequest(
            workspace=root,
            session=which,
            env=self._config.env,
            pool=self._shared.pool,
            locks=self._shared.locks,
            redactor=self.redactor,
            prober=self._shared.prober,
            files=before_disk,
            processes=lambda plain: EditorProcesses(plain, overlays[0]),
            settings={"editor": settings} if settings else {},
        )
        return await group.start(self._hold, request, overlays)

    def _tasks(self) -> TaskGroup:
        if self._root.group is None:
            message = "the server is closing; open the session again when it has restarted"
            raise SessionClosed(message)
        return self._root.group

    async def _hold_library(self, *, task_status: TaskStatus[SessionLibrary]) -> None:
        """Hold the stored sessions until the server closes."""
        async with open_library(
            app_paths(self._config.env), clock=self._clock, redactor=self.redactor
        ) as library:
            task_status.started(library)
            await self._root.over.wait()

    async def _hold(
        self,
        request: SessionRequest,
        overlays: list[EditorFiles],
        *,
        task_status: TaskStatus[Hosted],
    ) -> None:
        """Hold one session for as long as it is loaded."""
        async with open_session(request) as session:
            hosted = Hosted(
                session=session,
                root=request.workspace,
                files=overlays[0],
                epoch=uuid7(self._clock.now_ms()),
            )
            task_status.started(hosted)
            try:
                await hosted.closing.wait()
            finally:
                _ = self._open.pop(session.id, None)
        hosted.closed.set()


def _folder(root: Path) -> Path:
    real = root.resolve()
    if not real.is_dir():
        message = f"the workspace {str(root)!r} is not a folder; open one that exists"
        raise WorkspaceMissing(message)
    return real
