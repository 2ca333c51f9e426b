"""The worker process: adopts a slot, runs jobs in it, and releases it."""

import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import anyio
from anyio.to_thread import run_sync
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock, SystemClock
from agent_core.kernel.errors import TillerError, UsageError
from tiller_server.fleet.config import FleetConfig
from tiller_server.fleet.engine.dbos_engine import DbosEngine, EngineOptions
from tiller_server.fleet.engine.port import StepRunner
from tiller_server.fleet.errors import FleetError, SchemaRefused, SlotMissing
from tiller_server.fleet.fault_points import pass_point
from tiller_server.fleet.store.database import FleetDatabase, open_database, reason_of
from tiller_server.fleet.store.handover import HandoverStore
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import SlotLease
from tiller_server.fleet.worker.keeper import SlotKeeper

LOG: Final = logging.getLogger(__name__)
_Done = TypeVar("_Done")
LOST: Final = 1
"""Exit code of a process that lost its slot."""
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
LONGEST_PAUSE_S: Final = 10.0


class WorkerParts(Struct, frozen=True, kw_only=True):
    """Parts of a worker, for the steps of its jobs."""

    config: FleetConfig
    database: FleetDatabase
    jobs: JobStore
    sessions: FleetSessions
    """The store of the jobs' sessions, for writing by this worker."""
    keeper: SlotKeeper
    env: Mapping[str, str]
    """The environment, with the keys of providers and the tokens of forges."""
    clock: Clock


StepsMaker = Callable[[WorkerParts], StepRunner]


def steps_maker(name: str) -> StepsMaker:
    """Load the function `module:function` that makes the steps of jobs.

    Raises:
        UsageError: There is none of that name.
    """
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"steps is {name!r}, which cannot be loaded: {error}; name a module:function"
        raise UsageError(message) from error


class FleetWorker:
    """One worker process of a fleet."""

    def __init__(
        self,
        config: FleetConfig,
        make_steps: StepsMaker,
        *,
        env: Mapping[str, str],
        clock: Clock | None = None,
    ) -> None:
        """Connect when it is run."""
        self._config = config
        self._make_steps = make_steps
        self._env = env
        self._clock = clock or SystemClock()
        self._stopping = anyio.Event()

    async def run(self) -> None:
        """Run jobs until a signal or a drain ends the worker.

        Raises:
            SchemaRefused: The tables are of a later version.
            FleetError: The database was gone for too long.
        """
        database = open_database(self._config.database)
        failures: list[TillerError] = []
        try:
            await self._run(database)
        except* TillerError as group:
            failures.extend(leaves(group))
        finally:
            database.close()
        if failures:
            raise failures[0]

    async def _run(self, database: FleetDatabase) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_signals)
            await self._outlasted(database.migrate)
            slots = SlotStore(database, lease_ms=int(self._config.lease_s * 1000))
            await self._outlasted(partial(slots.make, self._config.slots))
            lease = await self._adopted(slots)
            if lease is not None:
                await self._work(database, slots, lease)
            group.cancel_scope.cancel()

    async def _work(self, database: FleetDatabase, slots: SlotStore, lease: SlotLease) -> None:
        config = self._config
        keeper = SlotKeeper(
            slots, lease, renew_s=config.renew_s, on_lost=end_process, clock=self._clock
        )
        keeper.start()
        pass_point("adopt.after")
        jobs = JobStore(database, limits=config.limits)
        parts = WorkerParts(
            config=config,
            database=database,
            jobs=jobs,
            sessions=FleetSessions(database, lease),
            keeper=keeper,
            env=self._env,
            clock=self._clock,
        )
        options = EngineOptions(
            limits=config.limits,
            poll_s=config.poll_s,
            retry_wait_ms=int(config.retry_wait_s * 1000),
            outage_s=config.outage_s,
        )
        engine = DbosEngine(
            config.database,
            jobs,
            HandoverStore(database),
            self._make_steps(parts),
            options,
            takes_work=keeper.takes_work,
            on_lost=end_process,
            clock=self._clock,
        )
        LOG.info("slot %d was adopted with fence %d", lease.slot, lease.fence)
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch_drain, keeper, engine)
            await engine.run(lease, sessions=config.sessions)
            group.cancel_scope.cancel()
        keeper.stop()
        await self._outlasted(partial(slots.release, lease))

    async def _watch_drain(self, keeper: SlotKeeper, engine: DbosEngine) -> None:
        while not (self._stopping.is_set() or keeper.is_drained):
            with anyio.move_on_after(self._config.poll_s):
                await self._stopping.wait()
        await engine.stop(grace_s=self._config.drain_s)

    async def _watch_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                if self._stopping.is_set():
                    end_process("it was ended before its jobs were")
                self._stopping.set()

    async def _adopted(self, slots: SlotStore) -> SlotLease | None:
        """Wait for a slot, as a spare does; None: the worker is ended before."""
        was_logged = False
        adopt = partial(slots.adopt, host=platform.node(), boot=_boot_id())
        while not self._stopping.is_set():
            try:
                return await self._outlasted(adopt)
            except SlotMissing as error:
                if not was_logged:
                    LOG.info("%s; this one waits as a spare", error)
                was_logged = True
            with anyio.move_on_after(self._config.lease_s / 10):
                await self._stopping.wait()
        return None

    async def _outlasted(self, use: Callable[[], _Done]) -> _Done:
        """Run statements; wait for a database that is gone.

        Raises:
            FleetError: It was gone for too long.
        """
        began_s, pause_s = self._clock.monotonic_s(), 0.1
        while True:
            try:
                return await run_sync(use)
            except (SchemaRefused, SlotMissing):
                raise
            except (FleetError, SQLAlchemyError) as error:
                if self._clock.monotonic_s() - began_s > self._config.outage_s or (
                    self._stopping.is_set()
                ):
                    raise FleetError(_reason(error)) from error
                LOG.warning("%s", _reason(error))
            with anyio.move_on_after(pause_s):
                await self._stopping.wait()
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def end_process(reason: str) -> NoReturn:
    """End this process now, and the processes that it started: it must write nothing more."""
    import psutil  # noqa: PLC0415 - at the end

    _ = sys.stderr.write(f"tiller fleet worker: {reason}; this process ends\n")
    sys.stderr.flush()
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            continue
    os._exit(LOST)


def leaves(group: BaseExceptionGroup[TillerError]) -> Iterator[TillerError]:
    """Return the errors of a group of tasks, and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def _reason(error: FleetError | SQLAlchemyError) -> str:
    if isinstance(error, FleetError):
        return str(error)
    return f"the database of the fleet cannot be used: {reason_of(error)}"


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
