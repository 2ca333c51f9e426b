"""Holds the sessions that are loaded, each in a task of its own: one that breaks leaves the others alone."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from msgspec import Struct
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.assembly.library import SessionLibrary, open_library
from agent_core.assembly.request import ClientServers, SharedLedger, SharedTelemetry
from agent_core.assembly.workspace import AddedRoots
from agent_core.kernel import Clock, JsonValue, SessionId, uuid7
from agent_core.kernel.errors import SessionClosed
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import SecretValue, Value
from agent_core.providers.http.client import HttpPool
from agent_core.resources.folder_watch import FolderWatches
from agent_core.resources.paths import AppPaths, home_of
from agent_core.resources.settings.layers import Layer, load_settings
from agent_core.session import AgentSession
from agent_core.tools.builtin.diagnostics import DiagnosticsTool
from agent_core.workspace import Files
from agent_core.workspace.files.disk.disk_files import DiskFiles, PathLocks
from agent_core.workspace.sandbox import Prober
from tiller_server.lsp.events.cache_recovery import open_event_log
from tiller_server.lsp.overlay.editor_diagnostics import EditorDiagnostics
from tiller_server.lsp.overlay.save_barrier import SaveBarrier, SaveBeforeRun
from tiller_server.lsp.overlay.workspace_files import OverlayFiles
from tiller_server.lsp.sessions.caller_environment import CallerEnvironment
from tiller_server.lsp.sessions.extension_views import can_display
from tiller_server.lsp.sessions.open_session import (
    OpenSession,
    OpenSessionState,
    show_error_message,
)

POOL_CLOSE_S = 2.0
BROKEN = (
    "Tiller: a session has broken off because of an error in Tiller itself. What was said in it is kept: go on, and it "
    "is opened again. The log of the server says what happened."
)

SessionOpener = Callable[[SessionRequest], AbstractAsyncContextManager[AgentSession]]

_log = logging.getLogger(__name__)


class SessionSpec(SecretValue, frozen=True, kw_only=True):
    """Where a session is to be opened, and for whom."""

    hidden: ClassVar = frozenset({"env", "mcp_servers"})

    root: Path
    """Absolute and real."""
    settings: Mapping[str, JsonValue]
    env: Mapping[str, str]
    mcp_servers: Mapping[str, JsonValue] = msgspec.field(default_factory=dict[str, JsonValue])
    """MCP servers of the client, as in `mcp.json`."""


class _Root(Struct, kw_only=True):
    """The one task that holds all sessions."""

    group: TaskGroup | None = None
    ready: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    over: anyio.Event = msgspec.field(default_factory=anyio.Event)
    beside: set[anyio.CancelScope] = msgspec.field(default_factory=set["anyio.CancelScope"])
    """Of what is not waited for when all is over."""


class _Shared(Value, frozen=True, kw_only=True):
    """Services that the sessions of a process share."""

    pool: HttpPool
    redactor: Redactor
    locks: PathLocks = msgspec.field(default_factory=PathLocks)
    prober: Prober = msgspec.field(default_factory=Prober)
    ledger: SharedLedger = msgspec.field(default_factory=SharedLedger)
    watches: FolderWatches = msgspec.field(default_factory=FolderWatches)
    telemetry: SharedTelemetry = msgspec.field(
        default_factory=lambda: SharedTelemetry(outlives_sessions=True)
    )


class UsedTokens(Struct, kw_only=True):
    """Sums of what sessions used while they were loaded; those of tasks count with the session that gave them."""

    input: int = 0
    output: int = 0
    usd: float = 0.0
    """Of calls whose price is known."""

    def add(self, open_session: OpenSession) -> None:
        """Add what a session has used since it was loaded."""
        before, now = open_session.kept.used_before, open_session.session.info.snapshot().usage
        output = now.tokens.output - before.output
        self.input += now.tokens.total - before.total - output
        self.output += output
        if now.tokens.cost is not None:
            self.usd += now.tokens.cost.total - (before.cost.total if before.cost else 0.0)


class _WorkspaceLayer(Value, frozen=True, kw_only=True):
    """Layer between a session and its workspace while editors are attached."""

    files: OverlayFiles
    barrier: SaveBarrier


class SessionPool:
    """The loaded sessions of a process."""

    def __init__(
        self, paths: AppPaths, *, clock: Clock, redactor: Redactor, opener: SessionOpener
    ) -> None:
        # The folders are the process's own: every session of the user lies in one place.
        self._paths = paths
        self._clock = clock
        self._opener = opener
        self._shared = _Shared(pool=HttpPool(clock=clock), redactor=redactor)
        self.telemetry = self._shared.telemetry
        self.ledger = self._shared.ledger
        self._root = _Root()
        self._held: dict[SessionId, OpenSession] = {}
        self._used = UsedTokens()
        self._library: SessionLibrary | None = None
        self._looking = anyio.Lock()

    @property
    def pool(self) -> HttpPool:
        """The connections to providers."""
        return self._shared.pool

    # ------------------------------------------------------------------ the task that holds all

    async def run(self, *, beside: Callable[[], Awaitable[None]]) -> None:
        """Hold all sessions until `close`.

        Args:
            beside: Runs meanwhile; it is cancelled then.
        """
        try:
            async with anyio.create_task_group() as group:
                self._root.group = group
                self._root.ready.set()
                self.start(beside, what="the unloading of sessions", is_cut=True)
                await self._root.over.wait()
                for scope in self._root.beside:
                    scope.cancel()
                for open_session in self._held.values():
                    open_session.closing.set()
        finally:
            self._root.group = None
            self._root.ready.set()
            with anyio.move_on_after(POOL_CLOSE_S, shield=True):
                await self._shared.pool.aclose()
            await self._shared.telemetry.close()

    async def ready(self) -> None:
        """Wait until sessions can be loaded."""
        await self._root.ready.wait()

    def close(self) -> None:
        """Settle all sessions; `run` ends when they are."""
        self._root.over.set()

    def start(
        self, work: Callable[[], Awaitable[None]], *, what: str, is_cut: bool = False
    ) -> None:
        """Start work beside the sessions; a failure is only logged, under the name `what`.

        Args:
            work: Work to run. (The caller never gets its exceptions.)
            what: Its name, for the log.
            is_cut: Cancel the work on closing; otherwise closing waits for its end.
        """
        if self._root.group is not None and not self._root.over.is_set():
            self._root.group.start_soon(self._cut if is_cut else _fenced, work, what)

    async def _cut(self, work: Callable[[], Awaitable[None]], what: str) -> None:
        with anyio.CancelScope() as scope:
            self._root.beside.add(scope)
            if self._root.over.is_set():
                scope.cancel()
            try:
                await _fenced(work, what)
            finally:
                self._root.beside.discard(scope)

    # ------------------------------------------------------------------ sessions

    def get(self, session: SessionId) -> OpenSession | None:
        """Return a session that is loaded, or is on its way out."""
        return self._held.get(session)

    def sessions(self) -> tuple[OpenSession, ...]:
        """Return all of them."""
        return tuple(self._held.values())

    def figures(self) -> Mapping[str, float]:
        """Return the figures of `tiller daemon metrics` that sessions know, by the name of the metric."""
        used = replace(self._used)
        snapshots = [one.session.info.snapshot() for one in self._held.values()]
        for one in self._held.values():
            if not one.is_task and not one.closing.is_set():
                used.add(one)
        process = self._shared.telemetry.current
        queue = None if process is None else process.queue
        return {
            "sessions_waiting_for_user": sum(one.state == "requiresAction" for one in snapshots),
            "queued_messages": sum(len(one.queue) for one in snapshots),
            "input_tokens_total": used.input,
            "output_tokens_total": used.output,
            "cost_usd_total": used.usd,
            "telemetry_queue": 0 if queue is None else queue.waiting,
            "telemetry_spans_sent_total": 0 if queue is None else queue.sent,
            "telemetry_dropped_total": 0 if queue is None else queue.dropped,
        }

    def unload(self, open_session: OpenSession) -> None:
        """Begin to settle a session; its clients open it again when they need it."""
        open_session.closing.set()
        for client in open_session.attached_clients:
            client.forget(open_session)

    async def load(self, which: str, spec: SessionSpec) -> OpenSession:
        """Open a session: one by id, the `latest`, or a `new` one.

        Raises:
            TillerError: It cannot be opened; the text says why.
        """
        overlays: list[_WorkspaceLayer] = []

        def before_disk(disk: Files) -> Files:
            files = OverlayFiles(disk)
            overlays.append(_WorkspaceLayer(files=files, barrier=SaveBarrier(files)))
            return files

        request = SessionRequest(
            workspace=spec.root,
            session=which,
            watches=self._shared.watches,
            env=CallerEnvironment(spec.env),
            paths=self._paths,
            pool=self._shared.pool,
            telemetry=self._shared.telemetry,
            locks=self._shared.locks,
            redactor=self._shared.redactor,
            prober=self._shared.prober,
            ledger=self._shared.ledger,
            added=AddedRoots(),
            files=before_disk,
            custom_tools=(DiagnosticsTool(EditorDiagnostics(lambda: overlays[0].files.opened)),),
            processes=lambda plain: SaveBeforeRun(plain, overlays[0].files, overlays[0].barrier),
            settings={"editor": spec.settings} if spec.settings else {},
            on_task=self._hold_task,
            titled=True,
            client_servers=ClientServers(servers=spec.mcp_servers),
        )
        return await self._tasks().start(self._hold, request, overlays)

    async def _hold(
        self,
        request: SessionRequest,
        overlays: list[_WorkspaceLayer],
        *,
        task_status: TaskStatus[OpenSession],
    ) -> None:
        """Hold one session for as long as it is loaded."""
        open_session: OpenSession | None = None
        is_broken = False
        try:
            async with self._opener(request) as session:
                open_session = await self._set_up(session, request, overlays[0])
                self._held[session.id] = open_session
                if self._root.over.is_set():
                    open_session.closing.set()
                task_status.started(open_session)
                await open_session.closing.wait()
        except Exception:
            if open_session is None:
                raise  # told to whoever opens it
            # One session that breaks is no reason to end the others.
            _log.exception("session %s broke off", open_session.session.id)
            is_broken = True
        finally:
            if open_session is not None:
                await self._finish_unload(open_session, is_broken=is_broken)

    @asynccontextmanager
    async def _hold_task(
        self, request: SessionRequest, session: AgentSession
    ) -> AsyncGenerator[None]:
        """Hold the session of a task beside the others, so that clients can follow and steer it."""
        # Its files are those of the session that gave the task; the overlay only takes the clients that attach.
        overlay = OverlayFiles(DiskFiles((request.workspace,), home_of(request.env)))
        events = await open_event_log(
            session,
            new_epoch=lambda: uuid7(self._clock.now_ms()),
            redactor=self._shared.redactor,
        )
        open_session = OpenSession(
            session=session,
            root=request.workspace,
            files=overlay,
            environment=CallerEnvironment(request.env),
            events=events,
            added=request.added,
            kept=OpenSessionState(opened_ms=self._clock.now_ms()),
            is_task=True,
        )
        self._held[session.id] = open_session
        self.start(events.run, what="the replay cache of a task")
        try:
            yield
        finally:
            open_session.closing.set()
            with anyio.CancelScope(shield=True):
                await events.close()
            _ = self._held.pop(session.id, None)
            open_session.closed.set()
            for client in tuple(open_session.attached_clients):
                client.forget(open_session)

    async def _finish_unload(self, open_session: OpenSession, *, is_broken: bool) -> None:
        """Do what is left when a session is over: closing it tells the last of its events."""
        open_session.closing.set()
        self._used.add(open_session)
        open_session.files.edits.undo_tracker.close()
        try:
            with anyio.CancelScope(shield=True):
                await open_session.events.close()
        finally:
            _ = self._held.pop(open_session.session.id, None)
            open_session.closed.set()
            for client in tuple(open_session.attached_clients):
                client.forget(open_session)
                if is_broken:
                    show_error_message(client, BROKEN)

    async def _set_up(
        self, session: AgentSession, request: SessionRequest, overlay: _WorkspaceLayer
    ) -> OpenSession:
        group = self._tasks()
        environment = request.env
        assert isinstance(environment, CallerEnvironment)  # noqa: S101 - made above
        environment.follow(lambda: (one.queue_id for one in session.info.snapshot().queue))
        events = await open_event_log(
            session,
            new_epoch=lambda: uuid7(self._clock.now_ms()),
            redactor=self._shared.redactor,
        )
        open_session = OpenSession(
            session=session,
            root=request.workspace,
            files=overlay.files,
            environment=environment,
            events=events,
            added=request.added,
            kept=OpenSessionState(
                opened_ms=self._clock.now_ms(),
                used_before=session.info.snapshot().usage.tokens,
                said=request.settings.get("editor", {}),
            ),
        )
        files = overlay.files
        files.session = session.id
        files.edits.proposals.keep_in(
            self._paths.data / "proposals" / session.id, root=request.workspace
        )
        files.edits.proposals.on_kept = open_session.report_proposal
        files.contended = open_session.publish_contention
        files.edits.undo_tracker.on_outcome = open_session.report_edit
        request.showing.shows = partial(can_display, open_session)
        overlay.barrier.ask_through(
            session.questions.ask, run=lambda: session.info.snapshot().activity.run
        )
        # Last: what fails before it must leave no task behind that nobody ends.
        group.start_soon(_fenced, files.edits.undo_tracker.run, "the look at edits that landed")
        group.start_soon(_fenced, events.run, "the replay cache of a session")
        alert = partial(_alert_person, open_session, self._paths, self._shared, self._clock)
        self.start(alert, what="the webhook", is_cut=True)
        return open_session

    def _tasks(self) -> TaskGroup:
        if self._root.group is None or self._root.over.is_set():
            message = "the server is closing; open the session again when it has restarted"
            raise SessionClosed(message)
        return self._root.group

    # ------------------------------------------------------------------ what is stored

    async def library(self) -> SessionLibrary:
        """Return the stored sessions; opened when they are first asked for.

        Raises:
            SessionClosed: The server is closing.
        """
        async with self._looking:
            library = self._library or await self._tasks().start(self._hold_library)
            self._library = library
            return library

    async def _hold_library(self, *, task_status: TaskStatus[SessionLibrary]) -> None:
        async with open_library(
            self._paths, clock=self._clock, redactor=self._shared.redactor
        ) as library:
            task_status.started(library)
            await self._root.over.wait()


async def _alert_person(
    open_session: OpenSession, paths: AppPaths, shared: _Shared, clock: Clock
) -> None:
    """Send messages to the webhook of the user's settings, if there is one, until the session is closed."""
    session = open_session.session
    reader = session.subscribe(backlog=False)
    try:
        settings = await load_settings([Layer(name="user", content=paths.settings)])
        notify = settings.values.notify
        if notify.url is None:
            return
        from tiller_server.lsp.events.person_alert import PersonAlert, Webhook  # noqa: PLC0415 - at first use

        name = notify.token_variable
        alert = PersonAlert(
            reader=reader,
            settings=notify,
            webhook=Webhook(
                pool=shared.pool,
                url=notify.url,
                token=lambda: open_session.environment.get(name) if name else None,
                clock=clock,
            ),
            title=lambda: shared.redactor.text(session.tree.title or open_session.root.name),
            link=partial(_web_address, paths.runtime, session.id),
        )
        await alert.run()
    finally:
        reader.close()


def _web_address(runtime: Path, session: SessionId) -> str | None:
    """Return the address of a session in `tiller web`; None: it does not run. Blocking."""
    from tiller_server.process.web_servers import web_servers  # noqa: PLC0415 - at first use

    servers = web_servers(runtime)
    return f"{servers[0].origin}/#session={session}" if servers else None


async def _fenced(work: Callable[[], Awaitable[None]], what: str) -> None:
    try:
        await work()
    except Exception:  # noqa: BLE001 - one that fails must not end the sessions that share its task group
        _log.exception("%s failed", what)
