"""Opens sessions from settings and files."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from os import defpath
from pathlib import Path

import anyio

from agent_core.assembly.build import build_session
from agent_core.assembly.containment import contain, contain_elsewhere
from agent_core.assembly.ground import lay_ground
from agent_core.assembly.ingredients import NEEDED, choose_ingredients
from agent_core.assembly.models import ModelSet, load_models
from agent_core.assembly.outputs import outputs_of
from agent_core.assembly.request import SessionRequest, StoreKind
from agent_core.events import ThinkingLevel
from agent_core.hooks import HookTable
from agent_core.kernel import Clock, JsonObject, SessionId, SystemClock, uuid7
from agent_core.providers.http import HttpPool, StreamLimits
from agent_core.resources.paths import AppPaths
from agent_core.session import AgentSession
from agent_core.storage import Opened, Recovery, SessionStore
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.storage.adapters.memory import MemoryStore
from agent_core.tools import Tool
from agent_core.transcript.entries import Header
from agent_core.workspace import Workspace


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
    ground = await lay_ground(request)
    root, paths, values = ground.root, ground.paths, ground.settings.values
    limits = StreamLimits(
        first_byte_s=values.stream.first_byte_timeout_s, idle_s=values.stream.idle_timeout_s
    )
    own = HttpPool(clock=request.clock)
    cleaning = ExitStack()
    pool = (request.pool or own).sharing(limits)
    try:
        models = await load_models(
            paths=paths,
            env=request.env,
            clock=request.clock,
            pool=pool,
            block_images=values.images.block_images,
            redactor=request.redactor,
        )
        _hold_secrets(request, models)
        store = _store(request, paths)
        opened = await _opened(request, root, store)
        try:
            contained = contain if request.ports is None else contain_elsewhere
            sandbox = await contained(
                root,
                request.added,
                setting=values.sandbox,
                prober=request.prober,
                env=request.env,
                paths=paths,
                outputs=outputs_of(paths.outputs, opened.log.header.id),
            )
            cleaning.callback(sandbox.close)
            ground.standing.containment = lambda: sandbox.containing.level
            ingredients = choose_ingredients(
                request, ground, models, opened, store=store, sandbox=sandbox
            )
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
            await anyio.to_thread.run_sync(cleaning.close)


async def latest_session(paths: AppPaths, root: Path, *, clock: Clock) -> SessionId | None:
    """Give the stored session of a folder in which something was said last.

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
    trusted: bool = True,
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
        trusted: Whether you vouch for the workspace: its instructions and settings are used and it may be changed. Say
            False for a folder that strangers write.
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
            trusted=trusted,
            clock=clock or SystemClock(),
        )
    )


def _hold_secrets(request: SessionRequest, models: ModelSet) -> None:
    secret = models.registry.secret_variables() - NEEDED
    request.redactor.hold(*(request.env.get(name) for name in secret))


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
