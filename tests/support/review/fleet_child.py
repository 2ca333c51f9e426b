"""A worker process that runs the steps of one job; the environment names the point at which it is killed."""

import json
import sys
from pathlib import Path

import anyio
import msgspec

from agent_core.assembly import SessionRequest
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.values import SlotLease
from tiller_server.fleet.worker.steps import JobSteps


async def main(*arguments: str) -> None:
    """Run all steps."""
    database, folder, env, settings, job = arguments
    tables = FleetDatabase(database)
    forge = msgspec.json.decode(settings, type=Forge)
    number, slot, fence = map(int, job.split("/"))
    steps = JobSteps(
        tables,
        forges={forge.name: forge},
        folder=Path(folder),
        sessions=lambda lease: FleetSessions(tables, lease),
        is_fresh=lambda: True,
        request=SessionRequest(workspace=Path(folder), env=json.loads(env)),
    )
    lease = SlotLease(slot=slot, fence=fence)
    for step in ("checkout", "review", "prepare_posts", "deliver", "close"):
        await getattr(steps, step)(number, lease)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
