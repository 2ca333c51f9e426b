"""Faults that a test combines: each begins at once, and ends when its consequence is there."""

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlalchemy.exc import OperationalError

from tests.support.fleet.fleet_runs import SupervisedFleet
from tests.support.fleet.tcp_proxy import TcpProxy
from tests.support.programs.postgres import PostgresCluster
from tiller_server.fleet.store.database import FleetDatabase

Fault = Literal["kill", "stop", "forge", "provider", "restart", "backend", "stall", "cut"]
ANYWHERE: tuple[Fault, ...] = ("kill", "stop", "forge", "provider")
"""Faults of processes, forges and providers, on both databases."""
OF_POSTGRES: tuple[Fault, ...] = ("restart", "backend", "stall", "cut")
REPEATS: Mapping[Fault, int] = {
    "kill": 0, "stop": 4, "forge": 0, "provider": 0, "restart": 8, "backend": 8, "stall": 8, "cut": 8,
}  # fmt: skip
"""Model calls of each job that a fault may repeat, beside those of kills, which the fleet counts itself."""


@dataclass(slots=True, kw_only=True)
class FaultBench:
    """A fleet, and what its faults happen to."""

    fleet: SupervisedFleet
    cluster: PostgresCluster | None = None
    name: str = ""
    """Of the database."""
    proxy: TcpProxy | None = None
    """Before the workers, not before the test."""
    stopped: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def begin(self, fault: Fault, *, turn: int) -> None:
        """Begin a fault; `turn` chooses the process or connection."""
        fleet, office = self.fleet, self.fleet.office
        match fault:
            case "kill":
                going = [one for one in fleet.workers if one not in self.stopped]
                going[turn % len(going)].kill()
            case "stop":
                self._stop(turn)
            case "forge":
                office.fails_every = 2
            case "provider":
                with office.lock:
                    for job in {name.partition("/")[0] for name in office.calls}:
                        office.outages[job] += 1
            case "restart" | "backend":
                assert self.cluster is not None
                if fault == "restart":
                    self.cluster.restart_immediately()
                else:
                    self.cluster.kill_backend(self.name, turn=turn)
                    self.cluster.wait_until_ready()
                fleet.database.engine.dispose()
            case "stall":
                assert self.proxy is not None
                self.proxy.stall()
            case "cut":
                assert self.proxy is not None
                self.proxy.cut()

    def end(self, fault: Fault) -> None:
        """Wait for the consequence of a fault, and end it."""
        fleet = self.fleet
        match fault:
            case "stop":
                process = self.stopped.pop()
                fleet.wait_for(lambda: process.pid not in fleet.alive_slots())
                process.send_signal(signal.SIGCONT)
                # It may write nothing more, and ends; the supervisor starts another one.
                fleet.wait_for(lambda: process not in fleet.workers)
                assert process.returncode == 1, fleet.report()
            case "stall":
                assert self.proxy is not None
                before = set(fleet.alive_slots())
                fleet.wait_for(lambda: not before & set(fleet.alive_slots()))
                self.proxy.go_on()
            case _:
                return

    def _stop(self, turn: int) -> None:
        """Stop a worker that has a slot."""
        fleet = self.fleet
        fleet.wait_for(lambda: bool(self._living()))
        living = self._living()
        process = living[turn % len(living)]
        stop_between_writes(process, fleet.database)
        self.stopped.append(process)
        _ = fleet.start()

    def _living(self) -> list["subprocess.Popen[bytes]"]:
        alive = self.fleet.alive_slots()
        return [one for one in self.fleet.workers if one.pid in alive and one.poll() is None]


def stop_between_writes(process: "subprocess.Popen[bytes]", database: FleetDatabase) -> None:
    """Stop a worker outside of a transaction: on SQLite the lock of its transaction would stop all others, too."""
    while True:
        process.send_signal(signal.SIGSTOP)
        # All of its threads stand when it is reported; until then one may begin a transaction.
        _ = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            _ = database.now_ms()
        except OperationalError:
            process.send_signal(signal.SIGCONT)
            # Its transaction ends first: stopped again at once, it would never run.
            _ = database.now_ms()
        else:
            return
