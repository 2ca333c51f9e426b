"""The session of `tiller run`: the one that was named, or a copy of it while another process writes that."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from agent_core.assembly import SessionRequest, open_session
from agent_core.assembly.library import open_library
from agent_core.kernel import SessionId
from agent_core.kernel.errors import SessionLocked
from agent_core.resources.paths import app_paths
from agent_core.session import AgentSession
from server.cli.exits import complain


@asynccontextmanager
async def open_or_copy(request: SessionRequest) -> AsyncGenerator[AgentSession, None]:
    """Open a session; one that an editor has open stays as it is, and a copy of what was said so far goes on.

    Raises:
        TillerError: It can be neither opened nor copied.
    """
    async with AsyncExitStack() as stack:
        try:
            session = await stack.enter_async_context(open_session(request))
        except SessionLocked as locked:
            if locked.session is None:
                raise
            copy = await _copied(request, locked.session)
            complain("run", f"{locked}. This goes on in a copy of it, {copy}")
            session = await stack.enter_async_context(open_session(replace(request, session=copy)))
        yield session


async def _copied(request: SessionRequest, session: SessionId) -> SessionId:
    paths = request.paths or app_paths(request.env)
    async with open_library(paths, clock=request.clock) as library:
        there = await library.read(session)
        return await library.copy(session, there.header.cwd)
