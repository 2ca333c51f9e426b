"""Schedules: each occurrence is one job per repository, whichever process sees it, and how often."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import BigInteger, ColumnElement, Engine, literal
from typing_extensions import override

from tests.support.harness.clock import FakeClock
from tiller_server.fleet.config import read_config
from tiller_server.fleet.intake.scheduler import FleetScheduler
from tiller_server.fleet.schedules import ScheduleSettings, is_cron
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore

NIGHTLY = ScheduleSettings(
    cron="0 3 * * *", forge="hub", repos=("team/app", "team/lib"), prompt="Update what is old."
)


def at(day: int, hour: int, minute: int = 0) -> Callable[[Engine], ColumnElement[int]]:
    """Return a clock of the database that stands at a time in November 2026."""
    ms = int(datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp() * 1000)
    return lambda _: literal(ms, BigInteger)


def due(url: str, time: Callable[[Engine], ColumnElement[int]]) -> list[bool]:
    """Submit what is due at a time, as a new process does; returns for each job whether it is new."""
    database = FleetDatabase(url, now=time)
    database.migrate()
    scheduler = FleetScheduler(database, {"nightly": NIGHTLY}, provider="lab", budget_usd=2.0)
    made = scheduler.submit_due()
    database.close()
    return [one.is_new for one in made]


def test_an_occurrence_is_one_job_per_repository(database_url: str) -> None:
    assert due(database_url, at(10, 3)) == [True, True]
    assert due(database_url, at(10, 3)) == [False, False]
    assert due(database_url, at(10, 3, 59)) == [False, False]
    assert due(database_url, at(11, 3, 1)) == [True, True]
    database = FleetDatabase(database_url)
    jobs = JobStore(database).jobs()
    database.close()
    assert [(job.repo, job.state) for job in jobs] == [
        ("team/lib", "queued"),
        ("team/app", "queued"),
        ("team/lib", "superseded"),
        ("team/app", "superseded"),
    ]
    newest = jobs[1]
    assert newest.key == "maintain/hub/team/app/0/schedule:nightly/2026-11-11T03:00"
    assert (newest.head, newest.base, newest.provider) == ("", "main", "lab")
    assert (newest.priority, newest.budget_usd) == (200, 2.0)
    assert jobs[3].reason == "the occurrence of 2026-11-11T03:00 followed"


def test_an_occurrence_that_was_missed_for_an_hour_is_left_out(database_url: str) -> None:
    assert due(database_url, at(10, 4, 1)) == []
    assert due(database_url, at(10, 2, 59)) == []


async def test_the_scheduler_looks_again_after_each_pause(tmp_path: Path) -> None:
    database = FleetDatabase(f"sqlite:///{tmp_path}/fleet.db", now=at(10, 3))
    database.migrate()
    scheduler = FleetScheduler(database, {"nightly": NIGHTLY})

    class EndsAfterTwoPauses(FakeClock):
        pauses = 0

        @override
        async def sleep(self, seconds: float) -> None:
            self.pauses += 1
            if self.pauses == 2:
                raise InterruptedError

    with pytest.raises(InterruptedError):
        await scheduler.run(EndsAfterTwoPauses())
    assert len(JobStore(database).jobs()) == 2
    database.close()


@pytest.mark.parametrize(
    ("expression", "is_valid"),
    [
        ("0 3 * * *", True),
        ("*/15 8-18 * * mon-fri", True),
        ("0 3 * * * *", False),
        ("61 3 * * *", False),
        ("daily", False),
        ("", False),
    ],
)
def test_five_fields_of_cron_are_read(expression: str, is_valid: bool) -> None:
    assert is_cron(expression) is is_valid


def test_schedules_are_read_from_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    file.write_text(
        '{"forges": {"hub": {"kind": "github", "push": true}}, "schedules": {"nightly": '
        '{"cron": "0 3 * * *", "forge": "hub", "repos": ["team/app", "team/lib"], '
        '"prompt": "Update what is old."}}}'
    )
    config = read_config(file, data=tmp_path)
    assert config.schedules == {"nightly": NIGHTLY}
    assert config.forges["hub"].push
