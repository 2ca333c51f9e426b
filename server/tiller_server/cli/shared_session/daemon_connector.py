"""Connects processes that serve people, such as `tiller web`, to the daemon, which is started when there is none."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import TillerError
from tiller_server.agent_client.connection import AgentClient, RequestHandler
from tiller_server.cli.shared_session.daemon_client import connected
from tiller_server.daemon.control_client import start_and_wait
from tiller_server.daemon.shim.connection import Unreachable


class DaemonMissing(TillerError):
    """There is no daemon, and none can be started."""


def daemon_connector(
    env: Mapping[str, str], root: Path
) -> Callable[[Mapping[str, RequestHandler]], AbstractAsyncContextManager[AgentClient]]:
    """Return a function that connects to the daemon; its context raises DaemonMissing when there will be none.

    Args:
        env: Environment of the daemon.
        root: The workspace.
    """

    @asynccontextmanager
    async def connect(handlers: Mapping[str, RequestHandler]) -> AsyncGenerator[AgentClient]:
        try:
            await start_and_wait(env, SystemClock())
        except Unreachable as error:
            raise DaemonMissing(str(error)) from error
        async with connected(env, root, handlers=handlers) as client:
            if client is None:
                message = "the daemon cannot be used; see tiller daemon status"
                raise DaemonMissing(message)
            yield client

    return connect
