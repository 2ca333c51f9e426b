"""Schedules of prompts: their settings, and the jobs of an occurrence. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

from agent_core.kernel.values import Value
from tiller_server.fleet.forges import ForgeSettings
from tiller_server.fleet.values import SCHEDULE, ChangeName, JobRequest

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
LATE: Final = timedelta(hours=1)
"""An occurrence that no process saw for so long is left out, so that a new schedule does not begin in the past."""
FIELDS: Final = 5


class ScheduleSettings(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A prompt that is run on repositories again and again, as jobs of kind `maintain`."""

    cron: str
    """Times in UTC, as the five fields of cron: minute, hour, day of the month, month, day of the week."""
    forge: str
    repos: tuple[str, ...]
    """Paths of the repositories."""
    prompt: str
    base: str = "main"
    """Branch whose tip is worked on, and that the pull request goes into."""
    priority: int = 200
    """Lower is earlier; reviews have 100."""
    budget_usd: float | None = None
    """Budget of each job; None: `job_usd`."""


def schedule_problem(
    name: str, schedule: ScheduleSettings, forges: Mapping[str, ForgeSettings]
) -> str | None:
    """Return the first value that cannot be used, in one sentence."""
    if not NAME.fullmatch(name):
        return "a name has up to 40 small letters, digits and hyphens"
    if not is_cron(schedule.cron):
        return f"cron is {schedule.cron!r}; name the five fields of cron, as '0 3 * * 1'"
    forge = forges.get(schedule.forge)
    if forge is None:
        return f"there is no forge {schedule.forge!r} in forges"
    for repo in schedule.repos:
        if not any(fnmatchcase(repo, pattern) for pattern in forge.repos):
            return f"the repository {repo!r} is not one of forges.{schedule.forge}.repos"
    if not schedule.repos or not schedule.prompt:
        return "it needs repos and a prompt"
    return None


def is_cron(expression: str) -> bool:
    """Return whether a text has the five fields of cron."""
    from croniter import croniter  # noqa: PLC0415 - at first use: of schedules alone

    return len(expression.split()) == FIELDS and croniter.is_valid(expression)


def requests_of(
    name: str, schedule: ScheduleSettings, now: datetime, *, provider: str
) -> Iterator[JobRequest]:
    """Yield the jobs of the last occurrence of a schedule; none if it was too long ago. Pure.

    Args:
        name: Of the schedule.
        schedule: Its settings.
        now: The time, in UTC.
        provider: Provider that the limits count the jobs for.
    """
    from croniter import croniter  # noqa: PLC0415 - at first use: of schedules alone

    at: datetime = croniter(schedule.cron, now + timedelta(seconds=1)).get_prev(datetime)
    if now - at > LATE:
        return
    for repo in schedule.repos:
        yield JobRequest(
            kind="maintain",
            change=ChangeName(forge=schedule.forge, repo=repo, number=0),
            head="",
            base=schedule.base,
            cause=f"{SCHEDULE}{name}",
            provider=provider,
            prompt=schedule.prompt,
            priority=schedule.priority,
            occurrence=at.strftime("%Y-%m-%dT%H:%M"),
        )
