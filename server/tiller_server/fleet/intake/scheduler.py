"""The scheduler: each occurrence is one job per repository, whichever process of the fleet sees it first."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from anyio.to_thread import run_sync
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import Clock
from tiller_server.fleet.schedules import ScheduleSettings, requests_of
from tiller_server.fleet.store.database import FleetDatabase, reason_of
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.values import Submission

LOG: Final = logging.getLogger(__name__)
LOOK_S: Final = 30.0


class FleetScheduler:
    """The schedules of a fleet over its tables: the key of a job names schedule, time and repository."""

    def __init__(
        self,
        database: FleetDatabase,
        schedules: Mapping[str, ScheduleSettings],
        *,
        provider: str = "",
        budget_usd: float | None = None,
    ) -> None:
        """Prepare; the database is migrated.

        Args:
            database: Its clock decides.
            schedules: By name.
            provider: Provider that the limits count the jobs for.
            budget_usd: Budget of a job whose schedule names none.
        """
        self._database = database
        self._jobs = JobStore(database)
        self._schedules = schedules
        self._provider = provider
        self._budget_usd = budget_usd

    def submit_due(self) -> tuple[Submission, ...]:
        """Submit the jobs of occurrences that are due; repeating it has no effect. Blocks."""
        now = datetime.fromtimestamp(self._database.now_ms() / 1000, UTC)
        made: list[Submission] = []
        for name, schedule in self._schedules.items():
            budget_usd = schedule.budget_usd or self._budget_usd
            wanted = requests_of(name, schedule, now, provider=self._provider)
            made += [self._jobs.submit(replace(one, budget_usd=budget_usd)) for one in wanted]
        return tuple(made)

    async def run(self, clock: Clock) -> None:
        """Submit what is due, for ever."""
        while True:
            try:
                made = await run_sync(self.submit_due)
            except SQLAlchemyError as error:
                LOG.warning("schedules wait for the database: %s", reason_of(error))
            else:
                for one in made:
                    if one.is_new:
                        LOG.info(
                            "%s of %s was queued as job %d", one.job.cause, one.job.repo, one.job.id
                        )
            await clock.sleep(LOOK_S)
