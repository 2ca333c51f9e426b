"""Opens sessions from settings and files."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import anyio
from msgspec.structs import replace

from agent_core.assembly.builder import build_session
from agent_core.assembly.config import LiveSettings, WorkspaceConfig
from agent_core.assembly.dependencies import choose_session_deps, scratch_of
from agent_core.assembly.extensions import SessionExtensions, register_models
from agent_core.assembly.models import ModelSet, load_models
from agent_core.assembly.request import SessionRequest, StoreKind, TaskOrigin
from agent_core.assembly.resources import LiveResources, load_inputs
from agent_core.assembly.session_parts import SessionDeps
from agent_core.assembly.workspace import AddedRoots, contain, contain_elsewhere, open_worktrees
from agent_core.events import ThinkingLevel
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, JsonObject, SessionId, SystemClock, uuid7
from agent_core.kernel.errors import SessionNotFound, ToolError, UsageError, WorkspaceMissing
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.kernel.values import Value
from agent_core.providers import Model
from agent_core.providers.http.client import HttpPool, StreamTimeouts
from agent_core.providers.registry import NOTHING
from agent_core.resources.agents import BUILT_IN, AgentDefinition
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings.layers import Settings
from agent_core.resources.settings.values import SettingsValues
from agent_core.session import AgentSession
from agent_core.session.permissions.broker import PermissionState
from agent_core.session.tools.task_port import TaskOpening
from agent_core.storage import OpenedSession, Recovery, SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.port import AttachmentBucket, StoredSession
from agent_core.tools import Tool
from agent_core.transcript.entries import Header
from agent_core.workspace import Workspace
from agent_core.workspace.sandbox import Sandbox

if TYPE_CHECKING:
    from agent_core.acp.task import ExternalTask
    from agent_core.extensions.api import ExtensionApi
    from agent_core.workspace.git.worktrees.service import Worktrees


TASK_OF: Final = "taskOf"
"""Field of the header of a task's session: the id of the session that gave the task."""
T = TypeVar("T")

ONLY_READ: Final = (
    "the workspace is not trusted: nothing is changed or run in it, and its own instructions and settings are not used. "
    "To vouch for it: create_session(trusted=True)"
)


@asynccontextmanager
async def open_session(request: SessionRequest) -> AsyncGenerator[AgentSession, None]:
    """Open a session and hold it; leaving the context cancels what goes on and settles the file.

    Broken settings and models are no errors: they are told as notices, and what could be read of them holds.

    Raises:
        TillerError: As `session_deps` says.
    """
    async with session_deps(request) as deps, build_session(deps) as session:
        if not len(deps.opened.transcript):
            if request.title is not None:
                await session.tree.rename(request.title)
            if request.setup is not None:
                await request.setup(session)
        yield session


INSTRUCTIONS: Final = (
    "You work on a task that another agent gave you. The user does not see your messages: your last message is your report, "
    "and only it goes back to that agent. Make it complete and short: what you found or did, where (paths, line numbers), what "
    "is not done or not sure. Nobody answers questions: decide, and say what you assumed."
)


class SharedParts(Value, frozen=True, kw_only=True):
    """Parts of an open session that the sessions of its tasks use as well."""

    config: WorkspaceConfig
    live: LiveSettings | None
    models: ModelSet
    pool: HttpPool
    sandbox: Sandbox
    scratch: Path

    def inputs(self, request: SessionRequest) -> tuple[SessionRequest, WorkspaceConfig]:
        """Return the inputs of a task in the same folder; nothing is read anew. Its rights are still to be limited."""
        settings = self.config.settings if self.live is None else self.live.now
        permissions = PermissionState(is_trusted=self.config.permission_state.is_trusted)
        config = replace(self.config, settings=settings, permission_state=permissions, left_out=())
        return replace(request, memory=None), config


class ChildSessions:
    """Opens the sessions of the tasks of one session, with what they share with it."""

    def __init__(self, request: SessionRequest, store: SessionStore) -> None:
        self.had_background = False
        self.resources: LiveResources | None = None
        self.shared: SharedParts | None = None
        """Set before the first task."""
        self._request = request
        self._store = store

    def agents(self) -> Sequence[AgentDefinition]:
        """Return the agents that tasks can be given to; of two with one name the external one."""
        found = BUILT_IN if self.resources is None else self.resources.agents
        settings = self._settings
        if settings is None or not (named := settings.values.external_agents):
            return found
        external = [
            AgentDefinition(
                name=name,
                description=one.description or f"external agent ({one.command})",
                is_external=True,
            )
            for name, one in named.items()
        ]
        return (*(one for one in found if one.name not in named), *external)

    async def read(self, session: SessionId) -> StoredSession:
        """Read the session of a task as it is stored."""
        return await self._store.tasks.read(session)

    @asynccontextmanager
    async def open(self, opening: TaskOpening) -> AsyncGenerator[AgentSession, None]:
        """Open the session of a task; leaving the context settles it."""
        outer = opening.outer
        shared = self.shared if opening.folder is None else None
        async with session_deps(self._request_of(opening), shared) as deps:
            workspace = deps.workspace
            limit_rights(workspace.permissions, opening)
            workspace.allowance.requested = opening.budget
            if opening.folder is None:
                workspace.detector = outer.workspace.detector
                workspace.secrets = outer.workspace.secrets
            async with (
                build_session(replace(deps, outer=outer)) as session,
                self._request.on_task(self._request, session),
            ):
                yield session

    def worktrees(self) -> "Worktrees":
        """Return the worktrees of the user."""
        request = self._request
        if request.ports is not None:
            message = "The workspace is on another machine, so there are no worktrees: leave isolation out."
            raise ToolError(message)
        paths = request.paths or app_paths(request.env)
        return open_worktrees(paths, env=request.env, clock=request.clock)

    @property
    def _settings(self) -> Settings | None:
        shared = self.shared
        if shared is None:
            return None
        return shared.config.settings if shared.live is None else shared.live.now

    def _external(self, opening: TaskOpening) -> "ExternalTask | None":
        """Return the external agent that a task is given to; None: it is none.

        Raises:
            ToolError: It cannot work here.
        """
        if not opening.agent.is_external or self._settings is None:
            return None
        from agent_core.acp.task import ExternalTask  # noqa: PLC0415 - at first use
        from agent_core.assembly.external.changes import DetectedAgentChanges  # noqa: PLC0415 - at first use
        from agent_core.assembly.external.launch import launch_of  # noqa: PLC0415 - at first use

        if self._request.ports is not None:
            message = "the workspace is on another machine, so no external agent can work in it"
            raise ToolError(message)
        launch = launch_of(
            opening.agent.name, self._settings, env=self._request.env, model=opening.model
        )
        return ExternalTask(
            launch=launch,
            active=opening.tools,
            on_activity=opening.on_activity,
            changes=DetectedAgentChanges(outer=opening.outer, clock=self._request.clock),
        )

    def _request_of(self, opening: TaskOpening) -> SessionRequest:
        request, outer, folder = self._request, opening.outer, opening.folder
        shared, external = self.shared, self._external(opening)
        tools, more, model = opening.tools, outer.mcp_tools, opening.model or opening.agent.model
        if external is not None:
            # The model of the request is an option of the agent.
            tools, more, model = external.tool_names, external.tools, None
        scratch = Path() if shared is None else shared.scratch
        if folder is None:
            inside = outer.workspace.workspace
            files, processes = partial(_instead, inside.files), partial(_instead, inside.processes)
        else:
            # No editor shows the files of a worktree as the session's.
            files = processes = _unchanged
        instructions = f"{INSTRUCTIONS}\n\n{opening.agent.instructions}".strip()
        return replace(
            request,
            session="new" if opening.is_new else opening.session,
            model=model or outer.model,
            thinking=outer.thinking,
            tools=tools,
            custom_tools=(*request.custom_tools, *more),
            workspace=folder or request.workspace,
            added=AddedRoots(),
            folders=request.added.trusted if folder is None else (),
            files=files,
            processes=processes,
            trusted=outer.permissions.is_trusted(),
            watches=None,
            titled=False,
            notices=(),
            pool=None if shared is None else shared.pool,
            task=TaskOrigin(
                id=opening.session,
                outer=outer.parent.session,
                instructions=instructions,
                scratch=scratch,
                sandbox=None if shared is None or folder is not None else shared.sandbox,
                external=external,
            ),
        )


def _instead(own: T, _: object) -> T:
    return own


def _unchanged(own: T) -> T:
    return own


def limit_rights(permissions: PermissionState, opening: TaskOpening) -> None:
    """Allow a task what both the session which gave it and its own agent allow; not more when that is loosened later."""
    outer = opening.outer.permissions
    permissions.outer = outer
    permissions.ceiling = opening.agent.mode or "yolo"
    permissions.mode = outer.snapshot(()).mode
    permissions.fallback, permissions.timeout_s = outer.fallback, outer.timeout_s


@asynccontextmanager
async def session_deps(
    request: SessionRequest, shared: SharedParts | None = None
) -> AsyncGenerator[SessionDeps]:
    """Choose the parts of a session, and hold what they use; the log of `opened` is the caller's to close.

    Args:
        request: Which session.
        shared: Parts of the session that gave this task; None: all are read anew.

    Raises:
        WorkspaceMissing: The workspace is no folder.
        ModelUnknown: The model asked for cannot be used.
        SessionNotFound, SessionLocked: No session of that id, or another process has it.
        ToolSetInvalid, ExtensionBroken: Tools or extensions that are asked for are not there or cannot be loaded.
    """
    async with (
        _chosen_deps(request, shared) as deps,
        _traced(request, deps) as observed,
    ):
        yield observed


@asynccontextmanager
async def _chosen_deps(
    request: SessionRequest, shared: SharedParts | None
) -> AsyncGenerator[SessionDeps]:
    request, config = await load_inputs(request) if shared is None else shared.inputs(request)
    values = config.settings.values
    extensions = SessionExtensions(request, config, values)
    await extensions.load()
    own, cleaning = HttpPool(clock=request.clock), ExitStack()
    cleaning.callback(request.ledger.enter())
    pool = (request.pool or own).sharing(_limits(values))
    try:
        extensions.check_named()
        models = await _models(request, config, pool, extensions=extensions, shared=shared)
        store = _store(request, config)
        opened = await _opened(request, config.root, store)
        children = ChildSessions(request, store) if request.task is None else None
        try:
            sandbox = await _contained(request, config, opened)
            if shared is None:
                cleaning.callback(sandbox.close)
            config.permission_state.containment = lambda: sandbox.containing.level
            deps = choose_session_deps(
                request,
                config,
                models,
                opened,
                store=store,
                sandbox=sandbox,
                extensions=extensions,
                agents=children,
            )
            if children is not None:
                children.shared = SharedParts(
                    config=config,
                    live=deps.settings,
                    models=models,
                    pool=pool,
                    sandbox=sandbox,
                    scratch=scratch_of(request, config, opened),
                )
        except BaseException:
            await opened.log.close()
            raise
        async with _working(request, deps, sandbox) as deps:
            yield replace(deps, pool=pool, tasks=children, titled=request.titled)
    finally:
        extensions.close()
        with anyio.move_on_after(2, shield=True):
            await own.aclose()
            await anyio.to_thread.run_sync(cleaning.close)


def _working(
    request: SessionRequest, deps: SessionDeps, sandbox: Sandbox
) -> AbstractAsyncContextManager[SessionDeps]:
    """Return the parts with the external agent that a task is given to as the model, if it is given to one."""
    task = request.task
    if task is None or task.external is None:
        return nullcontext(deps)
    from agent_core.assembly.external.agent import with_external_agent  # noqa: PLC0415 - at first use

    return with_external_agent(task.external, deps, sandbox, instructions=task.instructions)


async def _models(
    request: SessionRequest,
    config: WorkspaceConfig,
    pool: HttpPool,
    *,
    extensions: SessionExtensions,
    shared: SharedParts | None,
) -> ModelSet:
    """Return the models of a session: those of the session that gave the task, unless extensions bring some."""
    brought = extensions.models
    if shared is not None and brought == NOTHING:
        return shared.models
    models = await load_models(
        paths=config.paths,
        env=request.env,
        clock=request.clock,
        pool=pool,
        roots=(config.root, *request.added.trusted),
        block_images=config.settings.values.images.block_images,
        redactor=request.redactor,
        brought=brought,
    )
    extensions.model_set = models
    models.hold_secrets(request.redactor, request.env)
    return models


def _traced(request: SessionRequest, deps: SessionDeps) -> AbstractAsyncContextManager[SessionDeps]:
    """Have telemetry observe a session, if the user's settings say so."""
    settings = None if deps.settings is None else deps.settings.now.values.telemetry
    if settings is None or not settings.enabled:
        return nullcontext(deps)
    from agent_core.assembly.telemetry.traced_session import traced_deps  # noqa: PLC0415 - at first use

    return traced_deps(request, deps, settings)


def _check_worktree(config: WorkspaceConfig, cwd: str) -> None:
    """Check that a session of a worktree is opened in it, and never in another folder. Blocking.

    Raises:
        WorkspaceMissing: It is not.
    """
    folder = config.paths.worktrees.resolve()
    there = Path(cwd)
    if (
        there != folder
        and there.is_relative_to(folder)
        and not config.root.is_relative_to(folder / there.relative_to(folder).parts[0])
    ):
        message = (
            f"the session works in the worktree {cwd!r}, not in {str(config.root)!r}; open it there"
        )
        raise WorkspaceMissing(message)


def _limits(values: SettingsValues) -> StreamTimeouts:
    stream = values.stream
    return StreamTimeouts(first_byte_s=stream.first_byte_timeout_s, idle_s=stream.idle_timeout_s)


async def _contained(
    request: SessionRequest, config: WorkspaceConfig, opened: OpenedSession
) -> Sandbox:
    if request.task is not None and request.task.sandbox is not None:
        return request.task.sandbox
    await anyio.to_thread.run_sync(_check_worktree, config, opened.log.header.cwd)
    contained = contain if request.ports is None else contain_elsewhere
    return await contained(
        config.root,
        request.added,
        setting=config.settings.values.sandbox,
        more=config.settings.values.containment,
        prober=request.prober,
        env=request.env,
        paths=config.paths,
        outputs=scratch_of(request, config, opened),
        secrets=config.secrets,
    )


async def latest_session(paths: AppPaths, root: Path, *, clock: Clock) -> SessionId | None:
    """Return the stored session of a folder in which something was said last.

    Args:
        paths: Where sessions are kept.
        root: The workspace, absolute and resolved.
        clock: Time.
    """
    return await JsonlStore(paths.sessions, clock).latest(str(root))


def create_session(
    *,
    workspace: str | Path | Workspace,
    session: str | Path = "new",
    parent: str | None = None,
    title: str | None = None,
    setup: "Callable[[AgentSession], Awaitable[object]] | None" = None,
    model: str | None = None,
    models: Sequence[Model] = (),
    thinking: ThinkingLevel | None = None,
    tools: str | Sequence[str] | None = None,
    custom_tools: Sequence[Tool] = (),
    store: StoreKind | SessionStore = "files",
    settings: JsonObject | None = None,
    hooks: HookTable | None = None,
    extensions: "Sequence[str | Path | Callable[[ExtensionApi], object]]" = (),
    trusted: bool = False,
    env: Mapping[str, str] | None = None,
    paths: AppPaths | None = None,
    clock: Clock | None = None,
) -> AbstractAsyncContextManager[AgentSession]:
    """Open a session for a script, which enters it with `async with`.

    Args:
        workspace: The folder to work in; or ports to one that is elsewhere, in a container for instance. Sessions and
            whole outputs are kept on this machine all the same.
        session: `new`, `latest` of this workspace, an id, or the path of a session file, which is continued where it is.
        parent: Origin of a new session: the id or the file of another one. It is stored in the header.
        title: Name of a new session.
        setup: Prepares a new session, before it is entered; one that continues is not set up again.
        model: `provider/id`, an id, a pattern or a part of it, with a thinking level behind a colon if you like; None:
            the first of `models`, the session's, the settings', or the first with credentials.
        models: Models of your own besides those of the user, each found by the `provider` and `id` of its facts.
        thinking: How hard the model thinks; None: as `model`, the session or the settings say.
        tools: Active tools, by preset or name; None: as the session or the settings say.
        custom_tools: Tools besides the built-in ones; they are active.
        store: Keep the session in the user's data folder, in memory, or in a store of your own.
        settings: Settings above the user's settings.json, with its keys.
        hooks: Functions that look in on what happens.
        extensions: Extensions besides those that the user has: files, folders, or functions that take an `ExtensionApi`.
        trusted: Whether you vouch for the workspace: only then it may be changed, commands run in it, and its own
            instructions and settings are used. A notice tells it of a session that may only read.
        env: The environment for keys, folders and processes; None: that of this process.
        paths: Folders of configuration, sessions and runtime files; None: as `env` says.
        clock: Time; None: the machine's.

    Raises:
        WorkspaceMissing, ModelUnknown, SessionNotFound, SessionLocked, ToolSetInvalid: On entering.
        SessionDamaged: On entering, if the path names no session file.
        UsageError: On entering, if a path is given and sessions are not kept in files.
    """
    own = [one for one in extensions if not isinstance(one, str | Path)]
    if models:
        own.append(partial(register_models, models))
        model = models[0].facts.ref if model is None and session == "new" else model
    return open_session(
        SessionRequest(
            workspace=workspace.root if isinstance(workspace, Workspace) else Path(workspace),
            ports=workspace if isinstance(workspace, Workspace) else None,
            session=str(session) if isinstance(session, str) else "new",
            file=None if isinstance(session, str) else session,
            parent=parent,
            title=title,
            setup=setup,
            env=dict(os.environ if env is None else env),  # noqa: TID251 - the one place of the library
            settings={} if settings is None else {"request": settings},
            model=model,
            thinking=thinking,
            tools=tools,
            custom_tools=custom_tools,
            store=store,
            hooks=hooks or HookTable(),
            extensions=[Path(one) for one in extensions if isinstance(one, str | Path)],
            own_extensions=own,
            paths=paths,
            trusted=trusted,
            notices=() if trusted else (ONLY_READ,),
            clock=clock or SystemClock(),
        )
    )


async def export_session(session: AgentSession, how: Literal["jsonl", "md", "html"]) -> bytes:
    """Return an open session as a document, one in memory as well.

    Images that are stored beside a session file stay references; `SessionLibrary.export` reads them.

    Args:
        session: The session.
        how: The format: `jsonl`, `md` or `html`.

    Raises:
        StorageError: Its file cannot be read.
    """
    from agent_core.assembly.library import document  # noqa: PLC0415 - only exports need it

    tree = session.tree
    entries = await tree.load(tree.entries)
    stored = StoredSession(header=tree.header, entries=entries, recovery=Recovery(), location=None)
    return await anyio.to_thread.run_sync(document, stored, how, Redactor(), None)


async def _opened(request: SessionRequest, root: Path, store: SessionStore) -> OpenedSession:
    which, task = request.session, request.task
    if request.file is not None:
        if not isinstance(store, JsonlStore):
            message = f"the session file {str(request.file)!r} is opened with store='files' only"
            raise UsageError(message)
        return await store.open_file(request.file)
    if task is not None:
        return await _opened_task(request, task, root, store.tasks)
    if which == "latest":
        latest = await store.latest(str(root))
        which = "new" if latest is None else latest
    if which != "new":
        try:
            return await store.open(SessionId(which))
        except SessionNotFound:
            return await store.tasks.open(SessionId(which))
    now_ms = request.clock.now_ms()
    header = Header(
        id=SessionId(uuid7(now_ms)), at_ms=now_ms, cwd=str(root), parent_session=request.parent
    )
    return OpenedSession(log=await store.create(header), entries=(), recovery=Recovery())


async def _opened_task(
    request: SessionRequest, task: TaskOrigin, root: Path, store: SessionStore
) -> OpenedSession:
    if request.session != "new":
        return await store.open(task.id)
    now_ms = request.clock.now_ms()
    extra = {TASK_OF: task.outer}
    header = Header(id=task.id, at_ms=now_ms, cwd=str(root), extra=extra)
    return OpenedSession(log=await store.create(header), entries=(), recovery=Recovery())


def _bucket(config: WorkspaceConfig, env: Mapping[str, str]) -> AttachmentBucket | None:
    settings = config.settings.values.attachments
    if settings.store is None:
        return None
    from agent_core.assembly.storage.attachments import bucket_of  # noqa: PLC0415 - few users have a bucket

    return bucket_of(settings, env)


def _store(request: SessionRequest, config: WorkspaceConfig) -> SessionStore:
    paths = config.paths
    match request.store:
        case "files":
            bucket = _bucket(config, request.env)
            return JsonlStore(paths.sessions, request.clock, bucket=bucket)
        case "memory":
            from agent_core.storage.adapters.memory import MemoryStore  # noqa: PLC0415 - at first use

            return MemoryStore()
        case store:
            return store
