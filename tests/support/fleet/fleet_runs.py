"""Workers of a fleet as processes under a supervisor, and the invariants of §8 when the dust has settled."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import select

from tests.support.fleet.recording_office import RecordingOffice
from tests.support.fleet.scripted_steps import ANSWERS, OFFICE, POSTS
from tests.support.harness.shared import ROOT
from tiller_server.fleet.fault_points import VARIABLE
from tiller_server.fleet.store import tables
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.jobs import JobStore
from tiller_server.fleet.store.slots import SlotStore
from tiller_server.fleet.values import OPEN_STATES, ChangeName, Job, JobRequest

# `-s` keeps the command from being forked: a fork has read the fault of the process that it is forked from.
CLI = (sys.executable, "-P", "-s", "-m", "tiller_server.cli.entry", "fleet", "worker")
LEASE_S, RENEW_S = 4.0, 0.8
WAIT_S = 180.0
LOOK_S = 0.05
ENTRY = tables.SESSION_ENTRY


def scaled_config(url: str, *, slots: int) -> dict[str, Any]:
    """Return settings with short times, and more attempts than there are kills."""
    return {
        "database": url,
        "slots": slots,
        "sessions": 4,
        "lease_s": LEASE_S,
        "renew_s": RENEW_S,
        "poll_s": 0.1,
        "drain_s": 5,
        "outage_s": 60,
        "retry_wait_s": 0.1,
        "limits": {"max_attempts": 10_000, "per_org": 0},
        "steps": "tests.support.fleet.scripted_steps:make_steps",
    }


@dataclass(slots=True, kw_only=True)
class SupervisedFleet:
    """Workers that are started again when they end, each with the next fault."""

    folder: Path
    config: Path
    office: RecordingOffice
    database: FleetDatabase
    """Of the test: never behind a proxy."""
    env: Mapping[str, str]
    faults: Iterator[str] = field(default_factory=lambda: iter(()))
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    pending: dict[int, str] = field(default_factory=dict)
    """Faults of the processes that run."""
    fired: list[str] = field(default_factory=list)
    kills: int = 0
    started: int = 0

    def submit(self, count: int, *, repos: int = 4, after: int = 0) -> list[Job]:
        """Store jobs of several repositories; `after` is the number of the last change."""
        jobs = JobStore(self.database)
        names = [
            ChangeName(forge="office", repo=f"team/app{number % repos}", number=number + 1)
            for number in range(after, after + count)
        ]
        return [
            jobs.submit(
                JobRequest(kind="review", change=name, head="a" * 40, base="main", cause="api")
            ).job
            for name in names
        ]

    def start(self) -> "subprocess.Popen[bytes]":
        """Start a worker with the next fault, if there is one."""
        fault = next(self.faults, "")
        log = (self.folder / f"worker{self.started}.log").open("wb")
        self.started += 1
        with log:
            process = subprocess.Popen(
                [*CLI, "--config", str(self.config)],
                env={**self.env, **({VARIABLE: fault} if fault else {})},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if fault:
            self.pending[process.pid] = fault
        self.workers.append(process)
        return process

    def supervise(self) -> None:
        """Start each worker again that has ended."""
        for process in [one for one in self.workers if one.poll() is not None]:
            self.workers.remove(process)
            fault = self.pending.pop(process.pid, "")
            if process.returncode == -signal.SIGKILL:
                self.kills += 1
                if fault:
                    self.fired.append(fault)
            _ = self.start()

    def kill(self, turn: int) -> None:
        """Kill one of the workers."""
        self.workers[turn % len(self.workers)].kill()

    def wait_for(self, condition: Callable[[], bool], *, limit_s: float = WAIT_S) -> None:
        """Supervise until a condition holds."""
        end_s = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end_s, self.report()
            self.supervise()
            time.sleep(LOOK_S)

    def wait_until_ended(self, *, limit_s: float = WAIT_S) -> None:
        """Supervise until no job is open."""
        self.wait_for(lambda: self.open_jobs() == 0, limit_s=limit_s)

    def open_jobs(self) -> int:
        """Return the count of jobs that have not ended."""
        counts = JobStore(self.database).counts()
        return sum(counts.get(state, 0) for state in OPEN_STATES)

    def stop(self) -> list[int]:
        """End the workers as a supervisor does, and return their exit codes."""
        for process in self.workers:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(timeout=60) for process in self.workers]
        self.workers.clear()
        return codes

    def report(self) -> str:
        """Return the state of all, for a failed test."""
        jobs = [f"{job.id} {job.state} {job.reason}" for job in JobStore(self.database).jobs()]
        logs = [path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.log")]
        return "\n".join([f"fired: {self.fired}, kills: {self.kills}", *jobs, *logs[-6:]])

    def check(self, jobs: Sequence[Job], *, repeats: int = 0) -> None:
        """Check the invariants.

        Args:
            jobs: All jobs of the run.
            repeats: Model calls that may be paid twice for another reason than a kill.
        """
        store = JobStore(self.database)
        there = {job.id: store.job(job.id) for job in jobs}
        assert {job.state for job in there.values()} == {"done"}, self.report()
        keys = [f"{job}/finding-{number}" for job in there for number in range(POSTS)]
        assert Counter(self.office.posts) == Counter(keys), self.report()
        assert self.entries() == {
            job.session: list(range(1, ANSWERS + 2)) for job in there.values()
        }, self.report()
        assert self.late_writes() == [], self.report()
        allowed = ANSWERS * len(there) + self.kills * 4 + repeats
        assert ANSWERS * len(there) <= sum(self.office.calls.values()) <= allowed, self.report()
        assert set(self.office.calls) == {
            f"{job}/{number}" for job in there for number in range(1, ANSWERS + 1)
        }
        left = [
            child.pid for child in psutil.Process().children(recursive=True) if _is_worker(child)
        ]
        assert left == []

    def entries(self) -> dict[str, list[int]]:
        """Return the numbers of the entries of each session."""
        query = select(ENTRY.c.session, ENTRY.c.seq).order_by(ENTRY.c.session, ENTRY.c.seq)
        numbers: dict[str, list[int]] = {}
        with self.database.begin() as connection:
            for row in connection.execute(query):
                numbers.setdefault(row[0], []).append(row[1])
        return numbers

    def late_writes(self) -> list[tuple[str, int]]:
        """Return entries that a process wrote after its slot was adopted by another that wrote before."""
        query = select(ENTRY.c.session, ENTRY.c.seq, ENTRY.c.slot, ENTRY.c.fence)
        newest: dict[tuple[str, int], int] = {}
        late: list[tuple[str, int]] = []
        with self.database.begin() as connection:
            for row in connection.execute(query.order_by(ENTRY.c.session, ENTRY.c.seq)):
                key = (row.session, row.slot)
                if row.fence < newest.get(key, 0):
                    late.append((row.session, row.seq))
                newest[key] = max(row.fence, newest.get(key, 0))
        return late

    def alive_slots(self) -> dict[int, int]:
        """Return the process of each slot with a lease that is not over."""
        now_ms = self.database.now_ms()
        slots = SlotStore(self.database).slots()
        return {slot.pid: slot.fence for slot in slots if slot.expires_ms >= now_ms}


@contextmanager
def supervised_fleet(
    folder: Path,
    url: str,
    office: RecordingOffice,
    *,
    workers: int = 2,
    slots: int = 2,
    worker_url: str | None = None,
    faults: Sequence[str] = (),
) -> Generator[SupervisedFleet]:
    """Start workers on a migrated database, and kill what is left of them at the end."""
    config = folder / "fleet.json"
    _ = config.write_text(json.dumps(scaled_config(worker_url or url, slots=slots)))
    env = {
        name: value
        for name, value in os.environ.items()  # noqa: TID251 - handed on
        if not name.startswith(("TILLER_", "COV_CORE"))
    }
    home = {f"TILLER_{one}_DIR": str(folder / one.lower()) for one in ("DATA", "CONFIG", "RUNTIME")}
    database = FleetDatabase(url)
    database.migrate()
    fleet = SupervisedFleet(
        folder=folder,
        config=config,
        office=office,
        database=database,
        env={**env, **home, "PYTHONPATH": str(ROOT), OFFICE: office.url},
        faults=iter(faults),
    )
    try:
        for _ in range(workers):
            _ = fleet.start()
        yield fleet
    finally:
        for process in fleet.workers:
            process.kill()
            _ = process.wait()
        database.close()


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "fleet" in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
