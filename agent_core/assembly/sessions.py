"""Opens sessions from settings and files: adapters are picked here."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from os import defpath
from pathlib import Path
from typing import Literal

import anyio

from agent_core.assembly.build import Ingredients, build_session, offspring_in
from agent_core.assembly.models import ModelSet, load_models
from agent_core.assembly.options import session_options
from agent_core.assembly.outputs import outputs_of
from agent_core.assembly.start import Wishes, choose_start
from agent_core.assembly.start_tools import choose_tools
from agent_core.events import PermissionMode, ThinkingLevel
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, JsonObject, SessionId, SystemClock, uuid7
from agent_core.kernel.errors import WorkspaceMissing
from agent_core.providers.http import HttpPool, StreamLimits
from agent_core.resources.context_files import load_context_files
from agent_core.resources.paths import AppPaths, app_paths
from agent_core.resources.settings import Layer, LayerName, Settings, load_settings
from agent_core.resources.system_prompt import ToolWords, build_system_prompt
from agent_core.session import AgentSession
from agent_core.session.parts import Place, SystemPrompt
from agent_core.storage import Opened, Recovery, SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools import Tool, ToolSpec
from agent_core.tools.builtin import builtin_tools
from agent_core.transcript import Transcript, build_context
from agent_core.transcript.entries import Header
from agent_core.workspace import Files, Processes, Workspace
from agent_core.workspace.adapters.disk import DiskFiles
from agent_core.workspace.adapters.path_locks import PathLocks
from agent_core.workspace.adapters.processes import DiskProcesses
from agent_core.workspace.permission import ModePolicy

StoreKind = Literal["files", "memory"]
NEEDED = frozenset({"HOME", "PATH"})
"""Variables without which no program runs well; a key is never in them, though a header may name them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Which session to open, and how."""

    workspace: Path
    """A folder; made absolute and real on opening."""
    session: str = "new"
    """`new`, `latest` (of this workspace, else a new one) or an id."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """The environment: keys are looked up in it, and processes get it without them."""
    paths: AppPaths | None = None
    """Where configuration and data lie; None: as `env` says."""
    settings: Mapping[LayerName, JsonObject] = field(default_factory=dict["LayerName", JsonObject])
    """Settings above the user's file, by layer."""
    model: str | None = None
    thinking: ThinkingLevel | None = None
    tools: str | Sequence[str] | None = None
    """Active tools, for as long as this has the session open: a preset, or names; None: as the session or the settings say."""
    custom_tools: Sequence[Tool] = ()
    store: StoreKind | SessionStore = "files"
    hooks: HookTable = field(default_factory=HookTable)
    files: Callable[[Files], Files] = lambda disk: disk
    """Puts something before the disk, an editor for one."""
    processes: Callable[[Processes], Processes] = lambda plain: plain
    """The same for processes."""
    ports: Workspace | None = None
    """A workspace that is not on this machine's disk; then `files`, `processes` and `locks` are not used."""
    locks: PathLocks = field(default_factory=PathLocks)
    """One writer per file: to be shared by the sessions of a process."""
    pool: HttpPool | None = None
    """Connections to providers that several sessions share; None: of this session's own."""
    clock: Clock = field(default_factory=SystemClock)


@asynccontextmanager
async def open_session(request: SessionRequest) -> AsyncGenerator[AgentSession, None]:
    """Open a session and hold it; leaving the context cancels what goes on and settles the file.

    Broken settings and models are no errors: they are told as notices, and what could be read of them holds.

    Raises:
        WorkspaceMissing: The workspace is no folder.
        ModelUnknown: The model asked for cannot be used.
        SessionNotFound: No session of that id.
        SessionLocked: Another process has it.
        ToolSetInvalid: No or unknown tools.
    """
    root = (
        request.ports.root
        if request.ports
        else await anyio.to_thread.run_sync(_folder, request.workspace)
    )
    paths = request.paths or app_paths(request.env)
    settings, allowed = await _settings(request, paths)
    values = settings.values
    limits = StreamLimits(
        first_byte_s=values.stream.first_byte_timeout_s, idle_s=values.stream.idle_timeout_s
    )
    own = HttpPool(clock=request.clock)
    pool = (request.pool or own).sharing(limits)
    try:
        models = await load_models(
            paths=paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            block_images=values.images.block_images,
        )
        store = _store(request, paths)
        opened = await _opened(request, root, store)
        context = await load_context_files(config=paths.config, root=root, project_trusted=False)
        ground = _Ground(
            root=root,
            paths=paths,
            store=store,
            settings=settings,
            allowed=allowed,
            left_out=context.problems,
        )
        try:
            ingredients = _ingredients(request, ground, models, opened)
        except BaseException:
            await opened.log.close()
            raise
        try:
            async with build_session(ingredients) as session:
                yield session
        finally:
            await models.local.aclose()
    finally:
        with anyio.move_on_after(2, shield=True):
            await own.aclose()


def create_session(
    *,
    workspace: str | Path | Workspace,
    session: str = "new",
    model: str | None = None,
    thinking: ThinkingLevel | None = None,
    tools: str | Sequence[str] | None = None,
    custom_tools: Sequence[Tool] = (),
    store: StoreKind | SessionStore = "files",
    settings: JsonObject | None = None,
    hooks: HookTable | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> AbstractAsyncContextManager[AgentSession]:
    """Open a session for a script, which enters it with `async with`.

    Args:
        workspace: The folder to work in; or ports to one that is elsewhere, in a container for instance. Sessions and
            whole outputs are kept on this machine all the same.
        session: `new`, `latest` of this workspace, or an id.
        model: `provider/id`, an id, a pattern or a part of it, with a thinking level behind a colon if you like; None:
            the session's, the settings', or the first with credentials.
        thinking: How hard the model thinks; None: as `model`, the session or the settings say.
        tools: Active tools, by preset or name; None: as the session or the settings say.
        custom_tools: Tools besides the built-in ones; they are active.
        store: Keep the session in the user's data folder, in memory, or in a store of your own.
        settings: Settings above the user's settings.json, with its keys.
        hooks: Functions that look in on what happens.
        env: The environment for keys and processes; None: only a PATH, no keys.
        clock: Time; None: the machine's.

    Raises:
        WorkspaceMissing, ModelUnknown, SessionNotFound, SessionLocked, ToolSetInvalid: On entering.
    """
    return open_session(
        SessionRequest(
            workspace=workspace.root if isinstance(workspace, Workspace) else Path(workspace),
            ports=workspace if isinstance(workspace, Workspace) else None,
            session=session,
            env={"PATH": defpath} if env is None else dict(env),
            settings={} if settings is None else {"request": settings},
            model=model,
            thinking=thinking,
            tools=tools,
            custom_tools=custom_tools,
            store=store,
            hooks=hooks or HookTable(),
            clock=clock or SystemClock(),
        )
    )


async def _settings(request: SessionRequest, paths: AppPaths) -> tuple[Settings, PermissionMode]:
    """Give the settings in force, and the most that the user's own settings allow."""
    user = Layer(name="user", content=paths.settings)
    above = [Layer(name=name, content=content) for name, content in request.settings.items()]
    settings = await load_settings([user, *above])
    own = [user, *(layer for layer in above if layer.name == "request")]
    allowed = await load_settings(own)
    return settings, allowed.values.permission.mode


async def _opened(request: SessionRequest, root: Path, store: SessionStore) -> Opened:
    which = request.session
    if which == "latest":
        latest = await store.latest(str(root))
        which = "new" if latest is None else latest
    if which != "new":
        return await store.open(SessionId(which))
    now_ms = request.clock.now_ms()
    header = Header(id=SessionId(uuid7(now_ms)), at_ms=now_ms, cwd=str(root))
    return Opened(log=await store.create(header), entries=(), recovery=Recovery())


def _store(request: SessionRequest, paths: AppPaths) -> SessionStore:
    match request.store:
        case "files":
            return JsonlStore(paths.sessions, request.clock)
        case "memory":
            return MemoryStore()
        case store:
            return store


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What was read before the session is built."""

    root: Path
    paths: AppPaths
    store: SessionStore
    settings: Settings
    allowed: PermissionMode
    left_out: tuple[str, ...]
    """Context files that could not be used as they are, a sentence each."""


def _ingredients(
    request: SessionRequest, ground: _Ground, models: ModelSet, opened: Opened
) -> Ingredients:
    values, paths = ground.settings.values, ground.paths
    path = Transcript(opened.entries).path()
    context = build_context(path)
    tools = choose_tools(
        request.tools,
        own=request.custom_tools,
        built_in=builtin_tools(),
        settings=values.default_tools,
        path=path,
    )
    start = choose_start(
        Wishes(model=request.model, thinking=request.thinking),
        values=values,
        registry=models.registry,
        context=context,
    )
    scratch = outputs_of(paths.outputs, opened.log.header.id)
    workspace = _workspace(request, ground, scratch, models)
    return Ingredients(
        clock=request.clock,
        opened=opened,
        offspring=offspring_in(ground.store),
        place=Place(
            workspace=workspace, policy=ModePolicy(values.permission.mode), allowed=ground.allowed
        ),
        source=models.registry,
        model=start.model,
        why_no_model=start.why_no_model,
        thinking=start.thinking,
        asked_for=start.asked_for,
        scoped_models=values.scoped_models,
        tools=(*builtin_tools(), *request.custom_tools),
        active_tools=tools.active,
        hooks=request.hooks,
        system_prompt=_system_prompt(ground.root, paths),
        steering=values.steering_mode,
        follow_up=values.follow_up_mode,
        options=session_options(values, scratch=scratch),
        notices=(
            *_notices(ground.settings, models, opened),
            *start.notices,
            *tools.notices,
            *ground.left_out,
        ),
    )


def _workspace(
    request: SessionRequest, ground: _Ground, scratch: Path, models: ModelSet
) -> Workspace:
    if request.ports is not None:
        return replace(request.ports, env=_without_keys(request.ports.env, models))
    roots = (ground.root,)
    disk = DiskFiles(roots, _home(request.env), read_roots=(scratch,), locks=request.locks)
    return Workspace(
        roots=roots,
        files=request.files(disk),
        processes=request.processes(DiskProcesses()),
        env=_without_keys(request.env, models),
    )


def _notices(settings: Settings, models: ModelSet, opened: Opened) -> tuple[str, ...]:
    notices = [str(problem) for problem in settings.problems]
    notices.extend(str(problem) for problem in models.problems)
    if opened.recovery.torn_tail is not None:
        notices.append(
            f"the session's last line was cut off; the fragment is in {opened.recovery.torn_tail}"
        )
    if opened.recovery.patched_lines:
        lines = ", ".join(str(line) for line in opened.recovery.patched_lines)
        notices.append(
            f"the session's file has halves of characters, shown as U+FFFD: lines {lines}"
        )
    if opened.recovery.loose:
        loose = ", ".join(opened.recovery.loose)
        notices.append(
            f"entries of the session follow nothing that is there, or themselves: {loose}"
        )
    if opened.recovery.skipped_lines:
        lines = ", ".join(str(line) for line in opened.recovery.skipped_lines)
        notices.append(f"the session's file has damaged lines, which were left out: {lines}")
    return tuple(notices)


def _system_prompt(root: Path, paths: AppPaths) -> SystemPrompt:
    """Read the context files anew for every run: they are part of what the user edits."""

    async def build(specs: Sequence[ToolSpec]) -> str:
        files = await load_context_files(config=paths.config, root=root, project_trusted=False)
        return build_system_prompt(
            root=root,
            tools=[
                ToolWords(name=spec.name, snippet=spec.snippet, guidelines=spec.guidelines)
                for spec in specs
            ],
            context=files.files,
            custom=files.system.text if files.system else None,
            append=[files.append.text] if files.append else [],
        )

    return build


def _without_keys(env: Mapping[str, str], models: ModelSet) -> Mapping[str, str]:
    """Give the environment of processes: a command that a model chose has no use for our keys."""
    secret = models.registry.secret_variables() - NEEDED
    return {name: value for name, value in env.items() if name not in secret}


def _home(env: Mapping[str, str]) -> Path:
    home = env.get("HOME")
    return Path(home) if home else Path("/")


def _folder(path: Path) -> Path:
    try:
        real = path.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        message = f"the workspace {str(path)!r} cannot be found: {error}"
        raise WorkspaceMissing(message) from error
    if not real.is_dir():
        message = f"the workspace {str(path)!r} is not a folder; name one that exists"
        raise WorkspaceMissing(message)
    return real
