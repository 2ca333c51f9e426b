"""Opens sessions from settings and files."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec.structs import replace

from agent_core.assembly.builder import build_session
from agent_core.assembly.config import WorkspaceConfig, load_workspace_config
from agent_core.assembly.dependencies import choose_session_deps, outputs_of
from agent_core.assembly.extensions import SessionExtensions
from agent_core.assembly.models import load_models
from agent_core.assembly.request import SessionRequest, StoreKind
from agent_core.assembly.session_parts import SessionDeps
from agent_core.assembly.workspace import contain, contain_elsewhere
from agent_core.events import ThinkingLevel
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, JsonObject, SessionId, SystemClock, uuid7
from agent_core.kernel.errors import WorkspaceMissing
from agent_core.providers.http.client import HttpPool, StreamTimeouts
from agent_core.resources.paths import AppPaths
from agent_core.resources.settings.values import SettingsValues
from agent_core.session import AgentSession
from agent_core.storage import OpenedSession, Recovery, SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools import Tool
from agent_core.transcript.entries import Header
from agent_core.workspace import Workspace
from agent_core.workspace.sandbox import Sandbox

if TYPE_CHECKING:
    from agent_core.extensions.api import ExtensionApi


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
        yield session


@asynccontextmanager
async def session_deps(request: SessionRequest) -> AsyncGenerator[SessionDeps]:
    """Choose the parts of a session, and hold what they use; the log of `opened` is the caller's to close.

    Raises:
        WorkspaceMissing: The workspace is no folder.
        ModelUnknown: The model asked for cannot be used.
        SessionNotFound: No session of that id.
        SessionLocked: Another process has it.
        ToolSetInvalid, ExtensionBroken: Tools or extensions that are asked for are not there or cannot be loaded.
    """
    config = await load_workspace_config(request)
    root, paths, values = config.root, config.paths, config.settings.values
    extensions = SessionExtensions(request, config, values)
    await extensions.load()
    own, cleaning = HttpPool(clock=request.clock), ExitStack()
    pool = (request.pool or own).sharing(_limits(values))
    try:
        extensions.check_named()
        models = await load_models(
            paths=paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            roots=(root, *request.added.trusted),
            block_images=values.images.block_images,
            redactor=request.redactor,
            brought=extensions.models,
        )
        extensions.model_set = models
        models.hold_secrets(request.redactor, request.env)
        store = _store(request, paths)
        opened = await _opened(request, root, store)
        try:
            await anyio.to_thread.run_sync(_check_worktree, config, opened.log.header.cwd)
            sandbox = await _contained(request, config, opened)
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
            )
        except BaseException:
            await opened.log.close()
            raise
        yield replace(deps, pool=pool)
    finally:
        extensions.close()
        with anyio.move_on_after(2, shield=True):
            await own.aclose()
            await anyio.to_thread.run_sync(cleaning.close)


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
    contained = contain if request.ports is None else contain_elsewhere
    return await contained(
        config.root,
        request.added,
        setting=config.settings.values.sandbox,
        more=config.settings.values.containment,
        prober=request.prober,
        env=request.env,
        paths=config.paths,
        outputs=outputs_of(config.paths.outputs, opened.log.header.id),
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
    session: str = "new",
    model: str | None = None,
    thinking: ThinkingLevel | None = None,
    tools: str | Sequence[str] | None = None,
    custom_tools: Sequence[Tool] = (),
    store: StoreKind | SessionStore = "files",
    settings: JsonObject | None = None,
    hooks: HookTable | None = None,
    extensions: "Sequence[str | Path | Callable[[ExtensionApi], object]]" = (),
    trusted: bool = False,
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
        extensions: Extensions besides those that the user has: files, folders, or functions that take an `ExtensionApi`.
        trusted: Whether you vouch for the workspace: only then it may be changed, commands run in it, and its own
            instructions and settings are used. A notice tells it of a session that may only read.
        env: The environment for keys, folders and processes; None: that of this process.
        clock: Time; None: the machine's.

    Raises:
        WorkspaceMissing, ModelUnknown, SessionNotFound, SessionLocked, ToolSetInvalid: On entering.
    """
    return open_session(
        SessionRequest(
            workspace=workspace.root if isinstance(workspace, Workspace) else Path(workspace),
            ports=workspace if isinstance(workspace, Workspace) else None,
            session=session,
            env=dict(os.environ if env is None else env),  # noqa: TID251 - the one place of the library
            settings={} if settings is None else {"request": settings},
            model=model,
            thinking=thinking,
            tools=tools,
            custom_tools=custom_tools,
            store=store,
            hooks=hooks or HookTable(),
            extensions=[Path(one) for one in extensions if isinstance(one, str | Path)],
            own_extensions=[one for one in extensions if not isinstance(one, str | Path)],
            trusted=trusted,
            notices=() if trusted else (ONLY_READ,),
            clock=clock or SystemClock(),
        )
    )


async def _opened(request: SessionRequest, root: Path, store: SessionStore) -> OpenedSession:
    which = request.session
    if which == "latest":
        latest = await store.latest(str(root))
        which = "new" if latest is None else latest
    if which != "new":
        return await store.open(SessionId(which))
    now_ms = request.clock.now_ms()
    header = Header(id=SessionId(uuid7(now_ms)), at_ms=now_ms, cwd=str(root))
    return OpenedSession(log=await store.create(header), entries=(), recovery=Recovery())


def _store(request: SessionRequest, paths: AppPaths) -> SessionStore:
    match request.store:
        case "files":
            return JsonlStore(paths.sessions, request.clock)
        case "memory":
            return MemoryStore()
        case store:
            return store
