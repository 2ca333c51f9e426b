"""Commands of a person or a script on the tables of a fleet: each has an answer as JSON and as text."""

import argparse
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from agent_core.kernel import json
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import JsonObject, JsonValue
from agent_core.kernel.values import Value
from tiller_server.fleet.config import FleetConfig
from tiller_server.fleet.errors import FleetError, JobUnknown
from tiller_server.fleet.store.database import FleetDatabase, open_database, reason_of, time_of
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.results import CHANGE, PATCH, ResultStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import ChangeName, Job, JobRequest, JobState, WorkerSlot

COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
REPO: Final = re.compile(r"((?!\.+/)[\w.-]+/)+(?!\.+$)[\w.-]+")
MAX_INTEGER: Final = 2**31 - 1
MAX_ID: Final = 2**63 - 1
MAX_DELAY_S: Final = 365 * 24 * 3600


class FleetAnswer(Value, frozen=True, kw_only=True):
    """Answer of a command, for programs and for people."""

    body: JsonObject
    text: str


class FleetCommands:
    """The commands. The methods block."""

    def __init__(self, database: FleetDatabase, config: FleetConfig) -> None:
        """Use a database that is migrated."""
        self._database = database
        self._jobs = JobStore(database, limits=config.limits)
        self._results = ResultStore(database)
        self._slots = SlotStore(database, lease_ms=int(config.lease_s * 1000))

    def submit(self, options: argparse.Namespace) -> FleetAnswer:
        """Store a job.

        Raises:
            UsageError: A value cannot be one of a job.
        """
        submission = self._jobs.submit(_request(options))
        line = _line(submission.job)
        return FleetAnswer(
            body={
                "job": _json(submission.job),
                "isNew": submission.is_new,
                "superseded": list(submission.superseded),
            },
            text=line if submission.is_new else f"it was submitted before: {line}",
        )

    def status(self, *, states: Sequence[JobState], repo: str | None, limit: int) -> FleetAnswer:
        """Return the counts of jobs, and the newest of those that are asked for."""
        if not 0 <= limit <= MAX_INTEGER:
            message = f"--limit is {limit}; name the count of jobs to show"
            raise UsageError(message)
        counts: dict[str, JsonValue] = {**self._jobs.counts()}
        jobs = self._jobs.jobs(states=states, repo=repo, limit=limit)
        shown = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        return FleetAnswer(
            body={"counts": counts, "jobs": [_json(job) for job in jobs]},
            text="\n".join([shown or "there are no jobs", *map(_line, jobs)]),
        )

    def job(self, job: int) -> FleetAnswer:
        """Return a job, with the report of one that edits."""
        there = self._jobs.job(_id(job))
        report = self._results.result(there, CHANGE)
        answer = _answer(there)
        if report is None:
            return answer
        text = str(json.as_object(json.decode(report)).get("text", ""))
        return FleetAnswer(
            body={**answer.body, "report": text}, text=f"{answer.text}\n\n{text}".rstrip()
        )

    def patch(self, job: int) -> bytes:
        """Return the patch of a job that edits.

        Raises:
            FleetError: It has none.
        """
        there = self._jobs.job(_id(job))
        patch = self._results.result(there, PATCH)
        if not patch:
            message = f"job {job} has no patch: it is a review, changed no file, or is too old"
            raise FleetError(message)
        return patch

    def cancel(self, job: int, *, reason: str) -> FleetAnswer:
        """End a job that has not ended."""
        return _answer(self._jobs.cancel(_id(job), reason=reason))

    def retry(self, job: int) -> FleetAnswer:
        """Queue a failed or cancelled job again."""
        return _answer(self._jobs.retry(_id(job)))

    def drain(self, slot: int | None) -> FleetAnswer:
        """Mark one slot, or all, to be drained.

        Raises:
            FleetError: There is no such slot.
        """
        count = 0 if slot is not None and not 0 < slot <= MAX_INTEGER else self._slots.drain(slot)
        if not count:
            message = "there are no slots" if slot is None else f"there is no slot {slot}"
            raise FleetError(message)
        return FleetAnswer(body={"drained": count}, text=f"{count} slots are drained")

    def slots(self) -> FleetAnswer:
        """Return the slots."""
        now_ms = self._database.now_ms()
        slots = self._slots.slots()
        return FleetAnswer(
            body={"slots": [_slot_json(slot, now_ms=now_ms) for slot in slots]},
            text="\n".join(_slot_line(slot, now_ms=now_ms) for slot in slots)
            or "there are no slots; the first worker makes them",
        )


@contextmanager
def opened(config: FleetConfig) -> Generator[FleetCommands]:
    """Open the database of a fleet for commands.

    Raises:
        FleetError: It cannot be used.
    """
    database = open_database(config.database)
    try:
        database.migrate()
        yield FleetCommands(database, config)
    except SQLAlchemyError as error:
        message = f"the database of the fleet cannot be used: {reason_of(error)}"
        raise FleetError(message) from error
    finally:
        database.close()


def _request(options: argparse.Namespace) -> JobRequest:
    ranges = (
        ("--number", options.number, 0, MAX_INTEGER),
        ("--priority", options.priority, 1, MAX_INTEGER),
        ("--delay", options.delay, 0, MAX_DELAY_S),
    )
    for name, value, least, most in ranges:
        if not least <= value <= most:
            message = f"{name} is {value}; it is from {least} to {most}"
            raise UsageError(message)
    if not REPO.fullmatch(options.repo):
        message = f"--repo is {options.repo!r}; name a repository as owner/name"
        raise UsageError(message)
    if not COMMIT.fullmatch(options.head):
        message = f"--head is {options.head!r}; name a commit by 7 to 64 hexadecimal digits"
        raise UsageError(message)
    if options.budget is not None and not options.budget > 0:
        message = f"--budget is {options.budget}; it is more than 0"
        raise UsageError(message)
    if options.kind != "review" and not options.prompt:
        message = f"a job of kind {options.kind} needs a --prompt"
        raise UsageError(message)
    return JobRequest(
        kind=options.kind,
        change=ChangeName(forge=options.forge, repo=options.repo, number=options.number),
        head=options.head,
        base=options.base,
        cause="person",
        provider=options.provider,
        prompt=options.prompt,
        priority=options.priority,
        budget_usd=options.budget,
        delay_ms=int(options.delay * 1000),
    )


def _id(job: int) -> int:
    if not 0 < job <= MAX_ID:
        message = f"there is no job {job}"
        raise JobUnknown(message)
    return job


def _answer(job: Job) -> FleetAnswer:
    lines = [_line(job)]
    if job.reason:
        lines.append(f"reason: {job.reason}")
    lines.append(f"head {job.head}, base {job.base}, {job.attempts} attempts, cause {job.cause}")
    return FleetAnswer(body={"job": _json(job)}, text="\n".join(lines))


def _json(job: Job) -> JsonObject:
    return {**_fields(job), "session": job.session}


def _fields(value: Job | WorkerSlot) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = msgspec.to_builtins(value)
    return {re.sub(r"_(.)", lambda match: match[1].upper(), name): fields[name] for name in fields}


def _line(job: Job) -> str:
    line = f"job {job.id}: {job.kind} of {job.change} at {job.head[:12]}, {job.state}"
    return f"{line} since {time_of(job.ended_ms)}" if job.ended_ms is not None else line


def _slot_json(slot: WorkerSlot, *, now_ms: int) -> JsonObject:
    return {**_fields(slot), "isAlive": slot.expires_ms >= now_ms}


def _slot_line(slot: WorkerSlot, *, now_ms: int) -> str:
    if slot.expires_ms < now_ms:
        return f"slot {slot.id}: free"
    drained = ", drained" if slot.is_drained else ""
    return f"slot {slot.id}: process {slot.pid} on {slot.host}, fence {slot.fence}{drained}"
