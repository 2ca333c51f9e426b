"""The intake as a process: the HTTP server, and the polling beside it."""

import logging
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import anyio
import uvicorn
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock, SystemClock
from agent_core.kernel.values import Value
from tiller_server.fleet.config import FleetConfig
from tiller_server.fleet.errors import FleetError
from tiller_server.fleet.forges import Forge, forge_of
from tiller_server.fleet.intake.open_changes import poll
from tiller_server.fleet.intake.routes import FleetIntake, IntakeOptions
from tiller_server.fleet.intake.scheduler import FleetScheduler
from tiller_server.fleet.store.database import FleetDatabase, open_database, reason_of
from tiller_server.fleet.store.retention import remove_old_rows
from tiller_server.review.posting.errors import PostingFailed

LOG: Final = logging.getLogger(__name__)
KEEP_ALIVE_S: Final = 5
END_S: Final = 5
BACKLOG: Final = 128
REMOVE_S: Final = 3600.0
"""Pause between two removals of old rows."""
MOST_CONNECTIONS: Final = 256
Beside = Callable[[], Coroutine[None, None, None]]


class PolledRepository(Value, frozen=True, kw_only=True):
    """A repository whose open changes are polled."""

    forge: Forge
    repo: str


async def serve(config: FleetConfig, env: Mapping[str, str]) -> None:
    """Run the intake of a fleet until SIGINT or SIGTERM.

    Args:
        config: Its settings.
        env: The environment, with the secrets that the settings name.

    Raises:
        FleetError: The database or the port cannot be used.
    """
    database = open_database(config.database)
    try:
        await run_sync(database.migrate)
        forges = {name: forge_of(name, one, env) for name, one in config.forges.items()}
        options = IntakeOptions(
            token_sha256=config.intake.token_sha256,
            provider=config.intake.provider,
            budget_usd=config.job_usd,
            debounce_ms=int(config.intake.debounce_s * 1000),
        )
        polled = [
            PolledRepository(forge=forges[name], repo=repo)
            for name, one in config.forges.items()
            for repo in one.polled
        ]
        listener = listen(config.intake.listen, config.intake.port)
        host, port = listener.getsockname()[:2]
        LOG.info("the intake listens on http://%s:%d", host, port)
        await serve_intake(
            FleetIntake(database, forges, options),
            listener,
            polled=polled,
            poll_s=config.intake.poll_s,
            beside=tuple(_beside(config, database, SystemClock())),
            clock=SystemClock(),
        )
    finally:
        database.close()


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0: any that is free.

    Raises:
        FleetError: The port cannot be used.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"intake.port {port} of {address} cannot be used ({error.strerror}); name another"
        raise FleetError(message) from error
    # Inherited by each connection, as in `tiller web`.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def serve_intake(
    intake: FleetIntake,
    listener: socket.socket,
    *,
    polled: Sequence[PolledRepository] = (),
    poll_s: float = 300.0,
    beside: Sequence[Beside] = (),
    clock: Clock,
) -> None:
    """Serve until SIGINT or SIGTERM, and poll.

    Args:
        intake: The routes.
        listener: Socket that listens; it is closed at the end.
        polled: Repositories to poll.
        poll_s: Time between two polls of all.
        beside: Functions that run beside it until the end.
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
        for work in beside:
            group.start_soon(work)
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


def _beside(config: FleetConfig, database: FleetDatabase, clock: Clock) -> Iterator[Beside]:
    yield partial(_remove_old, database, days=config.keep_days, clock=clock)
    if config.schedules:
        scheduler = FleetScheduler(
            database,
            config.schedules,
            provider=config.intake.provider,
            budget_usd=config.job_usd,
        )
        yield partial(scheduler.run, clock)


async def _remove_old(database: FleetDatabase, *, days: int, clock: Clock) -> None:
    while True:
        try:
            removed = await run_sync(partial(remove_old_rows, database, days=days))
        except SQLAlchemyError as error:
            LOG.warning("old transcripts cannot be removed now: %s", reason_of(error))
        else:
            if removed.jobs:
                LOG.info("the transcripts of %d jobs were removed", removed.jobs)
        await clock.sleep(REMOVE_S)
