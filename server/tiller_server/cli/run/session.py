"""The session that a command works in: the one that was named, a copy of it, and its name."""

import argparse
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly import SessionRequest, open_session
from agent_core.assembly.factory import latest_session
from agent_core.extensions.ports import ViewFilter
from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionLocked, SessionNotFound
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import complain
from tiller_server.cli.session_options import HERE, REMOTE, Placing, request_of

ENDING: Final = ".jsonl"
SPECIAL: Final = frozenset({"new", "latest"})
ID_CHARS: Final = 36


@asynccontextmanager
async def open_wanted(
    options: argparse.Namespace, environment: Environment
) -> AsyncGenerator[AgentSession, None]:
    """Open the session that a command line asks for: found, copied, named.

    Raises:
        TillerError: It cannot be opened, or the options contradict one another.
    """
    async with placed(options, environment) as place:
        request = place(await wanted(options, environment))
        if not options.json:
            # Nothing but the title of the window is left out of what a run prints.
            request = replace(request, showing=ViewFilter(shows=lambda what: what != "title"))
        async with open_or_copy(request) as session:
            await named(session, options.name)
            yield session


@asynccontextmanager
async def placed(
    options: argparse.Namespace, environment: Environment
) -> AsyncGenerator[Placing, None]:
    """Connect to the remote workspace that the command line or the user's settings name, if they name one.

    Raises:
        TillerError: It cannot be reached, or the options contradict one another.
    """
    address = await to_thread.run_sync(_remote_address, options, environment)
    if address is None:
        yield lambda request: request
        return
    from tiller_server.cli.run.remote import opened_remotely  # noqa: PLC0415 - only remote workspaces need it

    async with opened_remotely(address, options, environment) as place:
        yield place


def local_folder(options: argparse.Namespace) -> Path:
    """Return the folder of this machine from which the files of a prompt are named."""
    return Path(HERE if options.workspace.startswith(REMOTE) else options.workspace)


def _remote_address(options: argparse.Namespace, environment: Environment) -> str | None:
    """Return the address of the remote workspace; None: the workspace is on this machine. Blocking."""
    if options.workspace.startswith(REMOTE):
        return options.workspace
    path = app_paths(environment.variables).settings
    try:
        has_setting = options.workspace == HERE and b'"workspace"' in path.read_bytes()
    except OSError:
        return None
    if not has_setting:
        return None
    from agent_core.resources.settings.layers import Layer, load_settings_now  # noqa: PLC0415 - see above

    return load_settings_now((Layer(name="user", content=path),)).values.workspace


async def wanted(options: argparse.Namespace, environment: Environment) -> SessionRequest:
    """Return the request that a command line makes: with the whole id of a session, and with a copy if one is asked for.

    Raises:
        TillerError: The options contradict one another, no session or more than one is meant, or it cannot be copied.
    """
    request = request_of(options, environment)
    if options.session:
        from tiller_server.cli.run.worktree import in_its_worktree  # noqa: PLC0415 - at first use

        request = await in_its_worktree(replace(request, session=await _found(request)))
    return await forked(request) if options.fork else request


async def _found(request: SessionRequest) -> SessionId:
    """Return the id of the session that is named by a part of its id or by its file."""
    from agent_core.assembly.library import open_library  # noqa: PLC0415 - at first use
    from tiller_server.cli.stored_sessions.session_list import numbered  # noqa: PLC0415 - see above

    part = request.session
    if part.endswith(ENDING):
        part = Path(part).stem.rpartition("_")[2]
    if part in SPECIAL or len(part) == ID_CHARS:
        return SessionId(part)
    paths = request.paths or app_paths(request.env)
    folder = str(await anyio.Path(request.workspace).resolve())
    async with open_library(paths, clock=request.clock) as library:
        return (await library.find(await numbered(library, part, folder))).session


async def named(session: AgentSession, title: str | None) -> None:
    """Make a session ready that was just opened, and name it when there is a name."""
    if title:
        await session.tree.rename(title)
    await session.changes.take_up()


@asynccontextmanager
async def open_or_copy(
    request: SessionRequest, *, copies: bool = True
) -> AsyncGenerator[AgentSession, None]:
    """Open a session; one that an editor has open stays as it is, and a copy of what was said so far goes on.

    Args:
        request: Session to open, and how.
        copies: Whether to continue in a copy of a session that another process has open.

    Raises:
        TillerError: It can be neither opened nor copied.
    """
    async with AsyncExitStack() as stack:
        try:
            session = await stack.enter_async_context(open_session(request))
        except SessionLocked as locked:
            if locked.session is None or not copies:
                raise
            copy = await _copied(request, locked.session)
            complain("run", f"{locked}. This goes on in a copy of it, {copy}")
            session = await stack.enter_async_context(open_session(replace(request, session=copy)))
        for folder in request.added.untrusted:
            complain("run", f"{folder} is read-only until you trust it: tiller trust add {folder}")
        yield session


async def forked(request: SessionRequest) -> SessionRequest:
    """Return the request for a copy of the session that is asked for, which stays as it is.

    Raises:
        SessionNotFound: There is none.
        StorageError: It cannot be read, or the copy cannot be written.
    """
    session: SessionId | None = SessionId(request.session)
    if request.session == "latest":
        paths = request.paths or app_paths(request.env)
        root = Path(await anyio.Path(request.workspace).resolve())
        session = await latest_session(paths, root, clock=request.clock)
    if session is None:
        message = (
            f"there is no session of {str(request.workspace)!r} to copy; begin one without --fork"
        )
        raise SessionNotFound(message)
    return replace(request, session=await _copied(request, session))


async def _copied(request: SessionRequest, session: SessionId) -> SessionId:
    from agent_core.assembly.library import open_library  # noqa: PLC0415 - at first use

    paths = request.paths or app_paths(request.env)
    async with open_library(paths, clock=request.clock) as library:
        there = await library.read(session)
        return await library.copy(session, there.header.cwd)
