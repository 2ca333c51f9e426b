"""The intake as a process: the HTTP server, and the polling beside it."""

import logging
import socket
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
import uvicorn

from agent_core.kernel import Clock
from agent_core.kernel.values import Value
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.intake.polling import poll
from tiller_server.fleet.intake.routes import FleetIntake
from tiller_server.review.posting.errors import PostingFailed

LOG: Final = logging.getLogger(__name__)
KEEP_ALIVE_S: Final = 5
END_S: Final = 5
MOST_CONNECTIONS: Final = 256


class PolledRepository(Value, frozen=True, kw_only=True):
    """A repository whose open changes are polled."""

    forge: Forge
    repo: str


async def serve_intake(
    intake: FleetIntake,
    listener: socket.socket,
    *,
    polled: Sequence[PolledRepository] = (),
    poll_s: float = 300.0,
    clock: Clock,
) -> None:
    """Serve until SIGINT or SIGTERM, and poll.

    Args:
        intake: The routes.
        listener: Socket that listens; it is closed at the end.
        polled: Repositories to poll.
        poll_s: Time between two polls of all.
        clock: Time.
    """
    config = uvicorn.Config(
        intake.app(),
        log_config=None,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=END_S,
        limit_concurrency=MOST_CONNECTIONS,
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        if polled:
            group.start_soon(partial(_poll, intake, polled, poll_s=poll_s, clock=clock))
        await server.serve(sockets=[listener])
        group.cancel_scope.cancel()


async def _poll(
    intake: FleetIntake, polled: Sequence[PolledRepository], *, poll_s: float, clock: Clock
) -> None:
    submit = partial(intake.submit_event, cause="poll")
    while True:
        for one in polled:
            try:
                _ = await poll(one.forge, one.repo, submit, clock=clock)
            except PostingFailed as error:
                LOG.warning("%s of %s cannot be polled: %s", one.repo, one.forge.name, error)
        await clock.sleep(poll_s)
