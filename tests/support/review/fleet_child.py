"""A worker process that runs the steps of one job; the environment names the point at which it is killed."""

import json
import sys
from pathlib import Path

import anyio

from agent_core.assembly import SessionRequest
from tests.support.review.github_api import TOKEN
from tiller_server.fleet.forges import Forge
from tiller_server.fleet.store.database import FleetDatabase
from tiller_server.fleet.store.sessions import FleetSessions
from tiller_server.fleet.values import SlotLease
from tiller_server.fleet.worker.steps import JobSteps


async def main(*arguments: str) -> None:
    """Run all steps."""
    database, folder, env, host, clone, job = arguments
    tables = FleetDatabase(database)
    number, slot, fence = map(int, job.split("/"))
    lease = SlotLease(slot=slot, fence=fence)
    steps = JobSteps(
        tables,
        forges={
            "hub": Forge(
                name="hub",
                kind="github",
                api_url=host,
                graphql_url=f"{host}/graphql",
                clone_url=clone,
                token=TOKEN,
            )
        },
        folder=Path(folder),
        sessions=lambda lease: FleetSessions(tables, lease),
        is_fresh=lambda: True,
        request=SessionRequest(workspace=Path(folder), env=json.loads(env)),
    )
    for step in ("checkout", "review", "prepare_posts", "deliver", "close"):
        await getattr(steps, step)(number, lease)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
